"""The `openstack` command, unmodified, kept running: `python -m tests.octavia.osc` reads one command a line and says what it printed.

Starting the command takes seconds, most of them for its own imports; here each command runs in the same process, through the program's
own entry point, with a login of its own.
"""

import contextlib
import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

WITHIN = 90.0


class Osc:
    """One user's command line.  `settings`: OS_... variables."""

    def __init__(self, **settings: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OS_")} | settings
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.octavia.osc"],
            cwd=Path(__file__).parents[2],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._child.kill()
        self._child.wait()

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit status, what it printed, what it complained of."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(words) + "\n")
        self._child.stdin.flush()
        ready, _, _ = select.select([self._child.stdout], [], [], WITHIN)
        assert ready, f"openstack {' '.join(words)} does not end"
        status, out, err = json.loads(self._child.stdout.readline())
        return status, out, err

    def do(self, line: str, **given: str) -> None:
        """`openstack loadbalancer LINE`, which must succeed; {names} in it are replaced."""
        words = [word.format(**given) for word in line.split()]
        status, out, err = self.run("loadbalancer", *words)
        assert status == 0, f"openstack loadbalancer {' '.join(words)}: {err[-600:]}{out[-300:]}"

    def see(self, line: str, **given: str) -> Any:
        """The same, as JSON."""
        words = [word.format(**given) for word in line.split()]
        status, out, err = self.run("loadbalancer", *words, "-f", "json")
        assert status == 0, f"openstack loadbalancer {' '.join(words)}: {err[-600:]}"
        return json.loads(out)


def serve() -> None:
    """Until standard input ends."""
    from openstackclient import shell

    real = sys.stdout
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status: object
            try:
                status = shell.main(json.loads(line))
            except SystemExit as end:
                status = end.code
        code = status if isinstance(status, int) else 1
        real.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\n")
        real.flush()


if __name__ == "__main__":
    serve()
