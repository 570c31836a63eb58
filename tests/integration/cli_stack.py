"""A local stack in a folder of its own, driven by the `roadstead` command as a person drives it."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roadstead.cli.stack.state import PartState, read_state
from roadstead.testing.paced import paced_environment

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "roadstead.cli"]
PACE = 0.2


@dataclass(frozen=True)
class Ended:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str


@dataclass
class Home:
    """`path` is ROADSTEAD_HOME; commands run in the folder that holds it."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROADSTEAD_", "OS_", "NATS_"))}
        return {
            **kept,
            "ROADSTEAD_HOME": str(self.path),
            **paced_environment(PACE),
            "XDG_CONFIG_HOME": str(self.path / "none"),
        }

    def run(self, *words: str, timeout: float = 240) -> Ended:
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def good(self, *words: str, timeout: float = 240) -> str:
        """The output of a command that must succeed."""
        done = self.run(*words, timeout=timeout)
        assert done.status == 0, f"roadstead {' '.join(words)}: {done.status}\n{done.out}\n{done.err}"
        return done.out

    def json(self, *words: str) -> Any:
        return json.loads(self.good(*words, "-o", "json"))

    def parts(self) -> dict[str, PartState]:
        """The processes as the supervisor wrote them down; empty without a stack."""
        state = read_state(self.path / "stack.json")
        return {part.name: part for part in state.parts} if state is not None else {}

    def supervisor(self) -> int:
        state = read_state(self.path / "stack.json")
        assert state is not None
        return state.pid

    def writes(self) -> list[tuple[str, str]]:
        """(method, path) of everything that the simulated cloud was asked to change, but for grants of `region configure`."""
        port = json.loads((self.path / "ports.json").read_text())["simulator"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/admin/log?writes=1", timeout=10) as answer:
            body = json.loads(answer.read())
        calls = body["calls"] if isinstance(body, dict) else body
        grant = re.compile(r"/(domains|projects)/\w+/users/\w+/roles/\w+$")
        return [
            (c["method"], c["path"]) for c in calls if not (c["method"] == "PUT" and grant.search(c["path"]))
        ]


def new_home(folder: Path) -> Home:
    """A folder that PostgreSQL may reach even where it runs as another user."""
    for place in (folder.parent, folder):
        place.chmod(0o711)
    return Home(folder / "run")
