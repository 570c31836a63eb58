"""The network service: Networks, SecurityGroups, external networks and the VLAN tables."""

from roadstead.assembly import Service
from roadstead_network.network import KIND as NETWORK
from roadstead_network.requests import install
from roadstead_network.securitygroup import KIND as SECURITYGROUP
from roadstead_network.vlan import documents_of

SERVICE = Service(
    "network",
    kinds=(NETWORK, SECURITYGROUP),
    follows=("region", "identity", "network", "securitygroup"),
    setup=install,
    documents_of=documents_of,
)


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
