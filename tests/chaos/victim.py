"""`python -m tests.chaos.victim EXITS SERVICE...`: starts services as processes of their own on request, each with armed points in it.

The services are imported once; each process is forked from here, so that a killed one is back at once (the import takes
seconds).  Requests are JSON lines on standard input; the answer to a start is the process id.  How a process ended is written
to `<exits>/<pid>`.  The end of the input ends everything.
"""

import importlib
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAUSE = 0.05


def be(service: str, environment: Mapping[str, str], log: str, arms: str, again: float) -> int:
    """Be one service until it ends; the exit status."""
    import uvloop

    from roadstead.service import Process
    from roadstead.settings import load_settings
    from tests.chaos.disorder import deliver_again
    from tests.chaos.points import Points, wrapped

    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(environment)
    if again:
        deliver_again(again, seed=os.getpid())
    points = Points(service, Path(arms))
    made = importlib.import_module(f"roadstead_{service}.__main__").SERVICE
    process = Process(made, load_settings(), wrap=lambda platform: wrapped(platform, points))
    return uvloop.run(process.main())


class Cradle:
    """The parent of all victims."""

    def __init__(self, exits: Path) -> None:
        self._exits = exits
        self._living: set[int] = set()

    def run(self) -> None:
        while True:
            readable, _, _ = select.select([sys.stdin], [], [], PAUSE)
            self._reap()
            if readable:
                line = sys.stdin.readline()
                if not line:
                    break
                print(json.dumps({"pid": self._start(json.loads(line))}), flush=True)
        for pid in self._living:
            os.kill(pid, signal.SIGKILL)

    def _start(self, wish: dict[str, Any]) -> int:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = be(**wish)
            except BaseException:  # noqa: BLE001 - a fork may never return into the parent's loop, whatever happens
                traceback.print_exc()
            os._exit(status)
        self._living.add(pid)
        return pid

    def _reap(self) -> None:
        for pid in list(self._living):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._living.discard(pid)
                fresh = self._exits / f"{pid}.new"
                fresh.write_text(str(os.waitstatus_to_exitcode(status)))
                fresh.rename(self._exits / str(pid))


def main() -> None:
    for service in sys.argv[2:]:
        importlib.import_module(f"roadstead_{service}.__main__")
    importlib.import_module("roadstead.service")
    print(json.dumps({"ready": True}), flush=True)
    Cradle(Path(sys.argv[1])).run()


if __name__ == "__main__":
    main()
