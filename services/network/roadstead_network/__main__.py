"""The network service: Networks, SecurityGroups, external networks and the VLAN tables."""

from roadstead.assembly import Service
from roadstead_network.network import KIND as NETWORK
from roadstead_network.requests import install
from roadstead_network.securitygroup import KIND as SECURITYGROUP

SERVICE = Service(
    "network",
    kinds=(NETWORK, SECURITYGROUP),
    follows=("region", "identity", "network", "securitygroup"),
    setup=install,
)


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
