"""The volumes service: Volumes, their claims, and the classes that regions offer."""

from roadstead.assembly import Service
from roadstead_volumes.requests import install
from roadstead_volumes.volume import KIND as VOLUME

SERVICE = Service("volumes", kinds=(VOLUME,), follows=("region", "identity", "network"), setup=install)


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
