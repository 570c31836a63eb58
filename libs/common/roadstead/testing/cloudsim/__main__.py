"""`python -m roadstead.testing.cloudsim`: a simulated cloud on a port of this machine."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from .cloud import Cloud
from .http import Front, clouds_yaml
from .settings import SimSettings


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    made = argparse.ArgumentParser(prog="cloudsim", description="Serve a simulated OpenStack cloud.")
    made.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    made.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    made.add_argument("--seed", type=int, default=0, help="seed of every identifier (default 0)")
    made.add_argument(
        "--pace", type=float, default=1.0, help="factor on every duration; 0 is at once (default 1)"
    )
    made.add_argument("--policy", choices=("region", "stock"), default="region", help="policies of the cloud")
    made.add_argument("--password", default="admin", help="password of the user admin (default admin)")
    made.add_argument(
        "--clouds", action="store_true", help="print a clouds.yaml for --host and --port, and end"
    )
    made.add_argument(
        "--write-clouds", type=Path, metavar="FILE", help="write a clouds.yaml for this cloud to FILE"
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = parser().parse_args(arguments)
    if options.pace < 0:
        print("cloudsim: --pace must be 0 or more", file=sys.stderr)
        return 2
    if options.clouds:
        if not options.port:
            print("cloudsim: --clouds needs --port, the port that the cloud will have", file=sys.stderr)
            return 2
        print(clouds_yaml(f"http://{options.host}:{options.port}/identity/v3", options.password), end="")
        return 0
    settings = SimSettings(admin_password=options.password)
    settings.durations.scale(options.pace)
    settings.change({"policy": options.policy})
    try:
        front = Front(Cloud(settings=settings, seed=options.seed), options.host, options.port)
    except OSError as error:
        print(f"cloudsim: cannot listen on {options.host}:{options.port}: {error.strerror}", file=sys.stderr)
        return 1
    try:
        if options.write_clouds is not None:
            options.write_clouds.write_text(front.clouds_yaml())
        print(f"simulated cloud at {front.url}, auth_url {front.auth_url}", flush=True)
        asyncio.run(front.run())
    except KeyboardInterrupt:
        pass  # the way in which the command is meant to end
    except OSError as error:
        print(f"cloudsim: cannot write {options.write_clouds}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
