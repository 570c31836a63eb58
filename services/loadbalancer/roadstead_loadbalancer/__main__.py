"""The loadbalancer service: load balancers, as a client of whatever Octavia the region's catalog names."""

from roadstead.assembly import Service
from roadstead_loadbalancer.loadbalancer import KIND as LOADBALANCER

SERVICE = Service("loadbalancer", kinds=(LOADBALANCER,), follows=("region", "identity", "network"))


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
