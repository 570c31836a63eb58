"""`python -m roadstead.cli.stack.simulator`: the simulated cloud of the local stack, which keeps what it holds over a restart.

The state is saved a second after it changed, whenever no build or deletion is under way, and once more at the end, when what is
under way is brought to its end first.
"""

import argparse
import asyncio
import contextlib
import hashlib
import io
import pickle
import signal
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

from roadstead.testing import cloudsim
from roadstead.testing.cloudsim import Cloud, SimSettings
from roadstead.testing.cloudsim.http import Front
from roadstead.testing.ovn_mirror import OvnMirror, OvsdbError, OvsdbRefused

SAVE_EVERY = 1.0
CALLS_KEPT = 5000

_Lock = type(threading.RLock())


class _Saver(pickle.Pickler):
    """Locks are made anew instead of saved."""

    def reducer_override(self, value: Any) -> Any:
        return (threading.RLock, ()) if isinstance(value, _Lock) else NotImplemented


def save(cloud: Cloud, path: Path) -> None:
    """Replace the file as a whole.  The caller has seen that nothing is under way."""
    with cloud.lock:
        target = io.BytesIO()
        _Saver(target, pickle.HIGHEST_PROTOCOL).dump(cloud)
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(release_of_simulator() + b"\n" + target.getvalue())
    fresh.replace(path)


def load(path: Path) -> Cloud | None:
    """The saved cloud; None when there is none.  ValueError with the remedy when another release of the simulator saved it."""
    if not path.exists():
        return None
    stamp, _, data = path.read_bytes().partition(b"\n")
    if stamp != release_of_simulator():
        raise ValueError(
            "the simulated cloud was saved by another release of the simulator: `roadstead down --wipe` removes it, "
            "and with it all that was made there"
        )
    cloud: Cloud = pickle.loads(data)  # noqa: S301 - our own file, readable by its owner alone
    return cloud


@cache
def release_of_simulator() -> bytes:
    """Changes with every change of the simulator's program: objects that were saved by another one may lack what this one uses."""
    digest = hashlib.sha256()
    for source in sorted(Path(str(cloudsim.__file__)).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest().encode()


async def _serve(front: Front, path: Path) -> None:
    saving = asyncio.create_task(_save_again_and_again(front.cloud, path))
    try:
        await front.run()
    finally:
        saving.cancel()
        front.cloud.rest()
        save(front.cloud, path)


async def _save_again_and_again(cloud: Cloud, path: Path) -> None:
    saved = -1
    while True:
        await asyncio.sleep(SAVE_EVERY)
        with cloud.lock:
            cloud.settle()
        if cloud.sequence != saved and cloud.next_change() is None:
            saved = cloud.sequence
            save(cloud, path)


def _endpoint(text: str) -> tuple[str, str]:
    kind, _, url = text.partition("=")
    if not kind or not url:
        raise argparse.ArgumentTypeError(f"{text!r} is not TYPE=URL")
    return kind, url


def main(arguments: list[str] | None = None) -> int:
    """Run the cloud until a signal ends it; the exit status."""
    parser = argparse.ArgumentParser(prog="simulator", description="Serve the local stack's simulated cloud.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True, help="file that holds the cloud between runs")
    parser.add_argument("--clouds", type=Path, required=True, help="clouds.yaml to write for it")
    parser.add_argument(
        "--endpoint",
        action="append",
        default=[],
        metavar="TYPE=URL",
        type=_endpoint,
        help="a service of the catalog that is another program's",
    )
    parser.add_argument("--northbound", help="Northbound database of OVN that the networks are written to")
    given = parser.parse_args(arguments)
    try:
        cloud = load(given.state)
    except ValueError as error:
        print(str(error), file=sys.stderr)
        return 1
    try:
        front = Front(cloud or Cloud(settings=SimSettings(log_limit=CALLS_KEPT)), "127.0.0.1", given.port)
    except OSError as error:
        print(f"port {given.port} cannot be bound: {error.strerror}", file=sys.stderr)
        return 1
    # What was saved may name programs of an earlier run.
    front.cloud.settings.endpoints = dict(given.endpoint)
    if given.northbound:
        try:
            OvnMirror(given.northbound).follow(front.cloud)
        except (OvsdbError, OvsdbRefused) as error:
            print(f"OVN's database at {given.northbound} cannot be written: {error}", file=sys.stderr)
            return 1
    # uvicorn hands a signal on when it has stopped; the default of SIGTERM would end the process before the last save.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given.clouds.write_text(front.clouds_yaml())
    print(f"simulated cloud at {front.url}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(front, given.state))
    return 0


if __name__ == "__main__":
    sys.exit(main())
