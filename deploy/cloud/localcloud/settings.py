"""Where the cloud lives, which ports it takes and what may be chosen.

Everything comes from ROADSTEAD_CLOUD_* variables.  Those that end up in the databases
are fixed by the first install and kept in settings.json, so that a later command
cannot disagree with them.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from localcloud.console import CloudError

SOURCE = Path(__file__).resolve().parent.parent
REPOSITORY = SOURCE.parent.parent

PORT_NAMES = (
    "keystone", "placement", "glance", "neutron", "nova", "cinder", "octavia", "ironic",
    "mysql", "rabbit", "rabbit_dist", "epmd", "memcached", "ovn_nb", "ovn_sb", "images",
)  # fmt: skip
POLICIES = ("region", "stock")
MEMBER_HEALTH = ("online", "offline", "error")
FIXED = ("PORT_BASE", "PASSWORD", "REGION")

# A Unix socket's path may have 107 bytes; the longest name of ours has 24.
LONGEST_SOCKET_DIRECTORY = 80

COMPUTE_HOST = "hypervisor-1"
SECOND_COMPUTE_HOST = "hypervisor-2"
BAREMETAL_HOST = "baremetal-1"


@dataclass(frozen=True)
class Settings:
    """Every choice of one cloud.  Ports are port_base + position in PORT_NAMES."""

    home: Path
    port_base: int
    password: str
    region: str
    policy: str
    debug: bool
    token_seconds: int
    member_health: str
    python: str | None

    @property
    def etc(self) -> Path:
        return self.home / "etc"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def golden(self) -> Path:
        return self.home / "golden"

    @property
    def venv(self) -> Path:
        return self.home / "venv"

    @property
    def drivers(self) -> Path:
        return self.home / "drivers"

    @property
    def clouds_yaml(self) -> Path:
        return self.etc / "clouds.yaml"

    @property
    def sockets(self) -> Path:
        """Directory of Unix sockets: in the home, or a short one elsewhere when the home's path is long."""
        if len(str(self.run)) <= LONGEST_SOCKET_DIRECTORY:
            return self.run
        tag = hashlib.sha256(str(self.home).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"roadstead-cloud-{tag}"

    def program(self, name: str) -> str:
        """Path of a program of the virtual environment."""
        return str(self.venv / "bin" / name)

    def port(self, name: str) -> int:
        return self.port_base + PORT_NAMES.index(name)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port(name)}"


def load(environ: Mapping[str, str]) -> Settings:
    """Read and check the settings; CloudError names the variable at fault."""

    def asked(name: str) -> str | None:
        return environ.get(f"ROADSTEAD_CLOUD_{name}") or None

    home = Path(asked("HOME") or REPOSITORY / ".run" / "cloud").resolve()
    if not re.fullmatch(r"[\w./+=@-]+", f"{home}{SOURCE}"):
        raise CloudError(
            f"the paths {home} and {SOURCE} may hold letters, digits and ./+=@_- only; set ROADSTEAD_CLOUD_HOME"
        )
    saved = _saved(home)
    for name in FIXED:
        if name in saved and asked(name) not in (None, saved[name]):
            raise CloudError(
                f"{home} was installed with ROADSTEAD_CLOUD_{name}={saved[name]};"
                " unset it or choose another ROADSTEAD_CLOUD_HOME"
            )

    def fixed(name: str, default: str) -> str:
        return saved.get(name) or asked(name) or default

    settings = Settings(
        home=home,
        port_base=_number("PORT_BASE", fixed("PORT_BASE", "21000"), 1024, 65535 - len(PORT_NAMES)),
        password=fixed("PASSWORD", "roadstead"),
        region=fixed("REGION", "RegionOne"),
        policy=_choice("POLICY", asked("POLICY") or "region", POLICIES),
        debug=_choice("DEBUG", asked("DEBUG") or "false", ("true", "false")) == "true",
        token_seconds=_number("TOKEN_SECONDS", asked("TOKEN_SECONDS") or "14400", 5, 86400 * 30),
        member_health=_choice("MEMBER_HEALTH", asked("MEMBER_HEALTH") or "online", MEMBER_HEALTH),
        python=asked("PYTHON"),
    )
    for name, value in (("PASSWORD", settings.password), ("REGION", settings.region)):
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
            raise CloudError(f"ROADSTEAD_CLOUD_{name} may hold letters, digits, - and _ only")
    return settings


def fix(settings: Settings) -> None:
    """Remember the settings that the databases will depend on."""
    settings.home.mkdir(parents=True, exist_ok=True)
    values = {"PORT_BASE": str(settings.port_base), "PASSWORD": settings.password, "REGION": settings.region}
    target = settings.home / "settings.json"
    fresh = target.with_suffix(".new")
    fresh.write_text(json.dumps(values, indent=2) + "\n")
    fresh.replace(target)


def _saved(home: Path) -> dict[str, str]:
    path = home / "settings.json"
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    try:
        values = json.loads(text)
    except ValueError:
        raise CloudError(f"{path} is no JSON; remove {home} and install again") from None
    return {name: str(values[name]) for name in FIXED if name in values}


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise CloudError(f"ROADSTEAD_CLOUD_{name}={value} is not one of {', '.join(allowed)}")
    return value


def _number(name: str, value: str, low: int, high: int) -> int:
    if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
        raise CloudError(f"ROADSTEAD_CLOUD_{name}={value} is not a number from {low} to {high}")
    return int(value)
