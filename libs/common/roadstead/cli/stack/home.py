"""The folder of a local stack and what is where in it."""

import os
from dataclasses import dataclass
from pathlib import Path

from roadstead.cli.failures import UserError

HOME = "ROADSTEAD_HOME"
FOLDER = ".run"
SIMULATOR = "simulator"
STATE, CONTEXT, CLAIM = "stack.json", "context.yaml", "stack.lock"


@dataclass(frozen=True)
class Home:
    """Paths of one stack; nothing is made by asking for them."""

    path: Path

    @property
    def state(self) -> Path:
        """Which processes run, written by their supervisor."""
        return self.path / STATE

    @property
    def claim(self) -> Path:
        """Locked by whoever starts, runs or ends this stack."""
        return self.path / CLAIM

    @property
    def context(self) -> Path:
        """How the command line reaches this stack."""
        return self.path / CONTEXT

    @property
    def ports(self) -> Path:
        return self.path / "ports.json"

    @property
    def seal_keys(self) -> Path:
        return self.path / "seal.keys"

    @property
    def ovn(self) -> Path:
        """OVN's databases, sockets and logs."""
        return self.path / "ovn"

    @property
    def ovn_sockets(self) -> dict[str, Path]:
        """Of OVN's databases `nb` and `sb`, those that are served."""
        paths = {side: self.ovn / "run" / f"{side}.sock" for side in ("nb", "sb")}
        return {side: path for side, path in paths.items() if path.is_socket()}

    @property
    def octavia_password(self) -> Path:
        """Of the Octavia API's user in the simulated cloud; for the owner alone."""
        return self.path / SIMULATOR / "octavia.password"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def nats(self) -> Path:
        return self.path / "nats"

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def simulator(self) -> Path:
        return self.path / SIMULATOR

    @property
    def saved_cloud(self) -> Path:
        """What the simulated cloud holds between runs."""
        return self.simulator / "cloud.pickle"

    def region(self, cloud: str) -> Path:
        """The variables of `region configure` for a cloud: credentials, for the owner alone."""
        return self.path / "regions" / f"{cloud}.env"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def make(self) -> None:
        """Make the folders; UserError when that is not allowed."""
        try:
            for folder in (self.path, self.logs, self.simulator, self.path / "regions"):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"{error.filename} cannot be made: {error.strerror}; set {HOME} to a folder of yours"
            ) from None


def find_home() -> Home:
    """ROADSTEAD_HOME; else the `.run` with a stack in it that is nearest above; else `.run` here."""
    if given := os.environ.get(HOME):
        return Home(Path(given).expanduser().absolute())
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / FOLDER / name).exists() for name in (STATE, CONTEXT, CLAIM)):
            return Home(folder / FOLDER)
    return Home(here / FOLDER)
