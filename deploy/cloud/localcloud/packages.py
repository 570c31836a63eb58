"""Debian packages and the virtual environment.  What is there is left alone."""

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from localcloud.console import CloudError, say
from localcloud.settings import REPOSITORY, SOURCE, Settings
from localcloud.shell import run

REQUIREMENTS = SOURCE / "requirements.txt"
INSTALL_LIMIT_SECONDS = 1800.0
PYTHON = "3.11"

# (a program or file that tells whether it is there, Debian package)
DEBIAN = (
    ("mariadbd", "mariadb-server"),
    ("memcached", "memcached"),
    ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"),
    ("epmd", "erlang-base"),
    ("ovsdb-server", "openvswitch-common"),
    ("ovn-northd", "ovn-central"),
    ("gcc", "gcc"),
    ("/usr/include/stdio.h", "libc6-dev"),
)


def search_path() -> str:
    """PATH with the folders where Debian keeps daemons."""
    return f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"


def missing_debian_packages(python: str) -> list[str]:
    """Debian packages that have to be installed before the virtual environment."""
    found = [
        package for sign, package in DEBIAN
        if not (Path(sign).exists() if sign.startswith("/") else shutil.which(sign, path=search_path()))
    ]  # fmt: skip
    # uwsgi is built from source, against the headers of the Python that runs it.
    if (
        Path(python).resolve().parent == Path("/usr/bin")
        and not Path(f"/usr/include/python{PYTHON}/Python.h").exists()
    ):
        found.append("python3-dev")
    if not _uv() and not _has_pip():
        found.append("python3-pip")
    return found


def install_debian_packages(settings: Settings) -> None:
    """Install what is missing, without letting a package start its own daemon."""
    missing = missing_debian_packages(_python(settings))
    if not missing:
        return
    if os.getuid() != 0:
        raise CloudError(
            f"needs root once to install Debian packages; or run: apt-get install {' '.join(missing)}"
        )
    if not shutil.which("apt-get"):
        raise CloudError(f"no apt-get here; this needs Debian 12 or the programs of: {' '.join(missing)}")
    say(f"Debian packages: {' '.join(missing)}")
    log = settings.log / "install.log"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": search_path()}
    # Debian asks this file before it starts a daemon; 101 means "not allowed".
    gate = Path("/usr/sbin/policy-rc.d")
    ours = not gate.exists()
    if ours:
        gate.write_text("#!/bin/sh\nexit 101\n")
        gate.chmod(0o755)
    try:
        run(["apt-get", "update"], log=log, environment=environment, limit=INSTALL_LIMIT_SECONDS)
        run(
            ["apt-get", "install", "-y", "--no-install-recommends", *missing],
            log=log, environment=environment, limit=INSTALL_LIMIT_SECONDS,
        )  # fmt: skip
    finally:
        if ours:
            gate.unlink()
    still = missing_debian_packages(_python(settings))
    if still:
        raise CloudError(f"still missing after apt-get: {' '.join(still)}; see {log}")


def environment_stamp(settings: Settings) -> str:
    """Names the virtual environment's content; it cannot be moved, so its place is part of it."""
    return hashlib.sha256(REQUIREMENTS.read_bytes() + str(settings.venv).encode()).hexdigest()


def install_environment(settings: Settings) -> None:
    """Make the virtual environment hold exactly requirements.txt; a half-made one is completed."""
    stamp = settings.venv / "roadstead.stamp"
    wanted = environment_stamp(settings)
    python = settings.program("python")
    # A link to an interpreter that has gone "exists" only when followed.
    if Path(python).exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    say("Python packages (one virtual environment, about 200 packages)")
    stamp.unlink(missing_ok=True)
    log = settings.log / "install.log"
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    uv = _uv() or _bootstrap_uv(settings)
    if not Path(python).exists():
        run(
            [uv, "venv", "--clear", "--python", _python(settings), str(settings.venv)],
            log=log, environment=environment, limit=60.0,
        )  # fmt: skip
    # uwsgi holds the Python it was built with, and uv's cache would hand it to another: make that part of its key.
    built_for = f"uwsgi:interpreter={Path(python).resolve()}"
    run(
        [uv, "pip", "sync", "--python", python, "--require-hashes", "--compile-bytecode",
         "--config-settings-package", built_for, str(REQUIREMENTS)],
        log=log, environment=environment, limit=INSTALL_LIMIT_SECONDS,
    )  # fmt: skip
    stamp.write_text(wanted)


def _python(settings: Settings) -> str:
    """The interpreter of the environment: a real path, of the version that the pins were made for."""
    if settings.python:
        found = shutil.which(settings.python)
        if not found:
            raise CloudError(f"ROADSTEAD_CLOUD_PYTHON={settings.python} is no program")
        return found
    if ".".join(platform.python_version_tuple()[:2]) == PYTHON:
        # Of a virtual environment take the interpreter beneath: the environment may go.
        beneath = Path(sys.base_prefix) / "bin" / f"python{PYTHON}"
        return str(beneath if beneath.exists() else Path(sys.executable))
    found = shutil.which(f"python{PYTHON}")
    if not found:
        raise CloudError(f"needs python{PYTHON} on the PATH, or name one in ROADSTEAD_CLOUD_PYTHON")
    return found


def _uv() -> str | None:
    ours = REPOSITORY / ".tools" / "bin" / "uv"
    return str(ours) if ours.exists() else shutil.which("uv")


def _has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def _bootstrap_uv(settings: Settings) -> str:
    target = settings.home / "tools"
    uv = target / "bin" / "uv"
    if not uv.exists():
        run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), "uv"],
            log=settings.log / "install.log", environment=os.environ, limit=300.0,
        )  # fmt: skip
    return str(uv)
