"""Running a program to its end, its output in a log, a failure told in one line."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from localcloud.console import CloudError, last_lines


def run(
    argv: Sequence[str], *, log: Path, environment: Mapping[str, str], limit: float, may_fail: bool = False
) -> bool:
    """Run argv for at most `limit` seconds; True when it exits 0.  CloudError otherwise, unless it may fail."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"\n$ {shlex.join(argv)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(
                list(argv), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=dict(environment), timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise CloudError(f"`{argv[0]} ...` took more than {limit:.0f} s; see {log}") from None
        except FileNotFoundError:
            raise CloudError(f"{argv[0]} is not there; run `cloud install`") from None
    if done.returncode and not may_fail:
        raise CloudError(
            f"`{shlex.join(argv)[:160]}` failed with {done.returncode}: {last_lines(log, 2)} (log: {log})"
        )
    return done.returncode == 0
