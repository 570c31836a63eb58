"""The monitor: reads the clouds in paged lists and tells the owners what changed."""

from roadstead.assembly import Service
from roadstead_monitor.watch import install

SERVICE = Service("monitor", kinds=(), follows=("region", "identity", "network", "server"), setup=install)


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
