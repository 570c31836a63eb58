"""OVN and its worker in a local stack: the Octavia API's provider `ovn`, over the simulated cloud's networks in a real OVN.

Databases and northd alone: what a load balancer would do with packets can be read in OVN, and nothing here sends any
(`deploy/ovn/ovn dp-up` adds a data path; docs/ovn.md).
"""

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from roadstead.cli.failures import UserError
from roadstead.cli.stack.home import Home
from roadstead.cli.stack.octavia import PROJECT, USER, Environment, Health, OctaviaParts
from roadstead.cli.stack.parts import Child
from roadstead.testing.private_ovn import SCRIPT, OvnProblem, PrivateOvn
from roadstead.testing.server_process import ServerError

WORKER, MODULE = "ovn-worker", "roadstead_ovn"
DAEMONS = ("nb", "sb", "northd")
LONGEST_SOCKET = 107  # bytes of a socket's path


class OvnPart:
    """The daemons of a private OVN as one part; `begin` waits for them, a fraction of a second."""

    name = "ovn"
    health = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log" / "northd.log"
        self._ovn = PrivateOvn(folder)

    @property
    def northbound(self) -> str:
        return f"unix:{self.folder}/run/nb.sock"

    @property
    def southbound(self) -> str:
        return f"unix:{self.folder}/run/sb.sock"

    @property
    def address(self) -> str:
        return self.northbound

    @property
    def pid(self) -> int:
        return self._pid("nb") if self.is_running() else 0

    def begin(self) -> None:
        try:
            self._ovn.start()
        except OvnProblem as error:
            raise ServerError(str(error)) from None

    def is_running(self) -> bool:
        return all(_runs(self._pid(name)) for name in DAEMONS)

    async def fault(self) -> str | None:
        return None if self.is_running() else "not all of its daemons run"

    def ask_to_end(self) -> None:
        # What does not end is looked at again by whoever starts the folder next.
        with suppress(OvnProblem):
            self._ovn.ask("down")

    def kill(self) -> None:
        self.ask_to_end()

    def exit_status(self) -> int | None:
        return None

    def _pid(self, name: str) -> int:
        try:
            return int((self.folder / "run" / f"{name}.pid").read_text())
        except (OSError, ValueError):
            return 0


def _runs(pid: int) -> bool:
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class OvnParts(OctaviaParts):
    """The API with the OVN worker as its provider.  UserError where OVN or the worker cannot be run."""

    schemas = (*OctaviaParts.schemas, MODULE)

    def __init__(self, home: Home, port: int, auth_url: str) -> None:
        super().__init__(home, port, auth_url)
        if find_spec(MODULE) is None:
            raise UserError(
                "the OVN worker is not installed: run `make setup`, or install roadstead-ovn-worker"
            )
        if not SCRIPT.is_file():
            raise UserError(
                f"{SCRIPT} is not here: --ovn needs the repository, whose deploy/ovn/ovn starts OVN"
            )
        self.part = OvnPart(home.ovn)
        if len(self.part.southbound.removeprefix("unix:").encode()) > LONGEST_SOCKET:
            raise UserError(
                f"{home.path} is too long a path for OVN's sockets: set ROADSTEAD_HOME to a shorter one"
            )

    @property
    def ground(self) -> list[OvnPart]:
        return [self.part]

    @property
    def simulator_arguments(self) -> list[str]:
        return [*super().simulator_arguments, "--northbound", self.part.northbound]

    def providers(self, health: Health, environment: Environment) -> list[Child]:
        port = health()
        settings = {
            "ROADSTEAD_OVN_NB_CONNECTION": self.part.northbound,
            "ROADSTEAD_OVN_SB_CONNECTION": self.part.southbound,
            "ROADSTEAD_OVN_AUTH_URL": self.auth_url,
            "ROADSTEAD_OVN_USERNAME": USER,
            "ROADSTEAD_OVN_PROJECT_NAME": PROJECT,
            "ROADSTEAD_OVN_PASSWORD_FILE": str(self.home.octavia_password),
        }
        command = [sys.executable, "-m", MODULE]
        log = self.home.log(WORKER)
        return [Child(WORKER, command, log, environment={**environment(port), **settings}, health=port)]

    def drivers(self) -> tuple[str, str]:
        return "ovn", "Load balancing by Open Virtual Network."
