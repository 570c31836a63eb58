"""The compute service: servers, and the flavors and images that regions offer to them."""

from roadstead.assembly import Service
from roadstead_compute.requests import install
from roadstead_compute.server import KIND as SERVER

SERVICE = Service(
    "compute",
    kinds=(SERVER,),
    follows=("region", "identity", "network", "securitygroup", "volume", "server"),
    setup=install,
)


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
