"""An OVN of its own for tests and the local stack: what deploy/ovn/ovn starts, in a folder short enough for its sockets."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .ovn_mirror.ovsdb import Session

SCRIPT = Path(__file__).resolve().parents[4] / "deploy/ovn/ovn"
COMMAND_LIMIT = 60.0  # seconds


class OvnProblem(RuntimeError):
    """The script could not do what was asked; the text is its own."""


class PrivateOvn:
    """members: of the Northbound database, 0 for a plain one.  northd and data_path: whether they run as well."""

    def __init__(
        self,
        home: Path | None = None,
        *,
        members: int = 0,
        northd: bool = True,
        data_path: bool = False,
        chassis: str = "chassis-1",
    ) -> None:
        self.home = home if home is not None else Path(tempfile.mkdtemp(prefix="ovn-", dir="/tmp"))
        self.chassis = chassis
        self._data_path = data_path
        self._environment = {
            **os.environ,
            "OVN_HOME": str(self.home),
            "OVN_NB": str(members),
            "OVN_NORTHD": str(int(northd)),
            "OVN_CHASSIS": chassis,
        }
        self._variables: dict[str, str] = {}

    def start(self) -> "PrivateOvn":
        """Bring it up, and up again what is down."""
        self.ask("dp-up" if self._data_path else "up")
        exports = self.ask("env").replace("export ", "")
        self._variables = dict(item.split("=", 1) for item in shlex.split(exports))
        return self

    def clean(self) -> None:
        """End everything and remove the folder."""
        self.ask("clean")

    def ask(self, *words: str) -> str:
        """One command of the script; what it printed.  OvnProblem."""
        done = subprocess.run(
            [str(SCRIPT), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_LIMIT,
        )
        if done.returncode != 0:
            raise OvnProblem(done.stderr.strip() or f"ovn {' '.join(words)}: exit status {done.returncode}")
        return done.stdout.strip()

    @property
    def northbound(self) -> str:
        """Its remotes, comma-joined."""
        return self._variables["OVN_NB_DB"]

    @property
    def southbound(self) -> str:
        return self._variables["OVN_SB_DB"]

    @property
    def switch(self) -> str:
        """Of Open vSwitch's own database on the chassis."""
        return self._variables["OVS_DB"]

    @property
    def namespace(self) -> str:
        """The network namespace that the data path runs in."""
        return self._variables["OVN_NETNS"]

    def nb(self) -> Session:
        """A session of its own; the caller closes it."""
        return Session(self.northbound)

    def sb(self) -> Session:
        return Session(self.southbound, "OVN_Southbound")

    def settled(self, seconds: int = 30) -> None:
        """Wait until what is in the Northbound database holds in the data path (without one: in the Southbound database)."""
        wait = "hv" if self._data_path else "sb"
        subprocess.run(
            ["ovn-nbctl", f"--db={self.northbound}", f"--wait={wait}", f"--timeout={seconds}", "sync"],
            check=True,
            capture_output=True,
            timeout=seconds + 10,
        )

    def __enter__(self) -> "PrivateOvn":
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.clean()
