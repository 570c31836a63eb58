"""The suite in a virtual environment of its own under `.run/`: pinned, hashed, unmodified."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
HOME = ROOT / ".run" / "tempest"
WITHIN = 900.0


class NotHere(Exception):
    """The suite cannot be installed; the text says why in one line."""


def installed() -> Path:
    """Its folder of programs; made when it is not there or the list has changed.  NotHere."""
    venv = HOME / "venv"
    stamp = venv / "requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return venv / "bin"
    uv = ROOT / ".tools" / "bin" / "uv"
    if not uv.exists():
        raise NotHere("uv is not here: run `make setup`")
    HOME.mkdir(parents=True, exist_ok=True)
    interpreter = str(Path(sys.base_prefix) / "bin" / "python3")
    for words in (
        ["venv", "--quiet", "--clear", "--python", interpreter, str(venv)],
        [
            "pip",
            "sync",
            "--quiet",
            "--python",
            str(venv / "bin/python"),
            "--require-hashes",
            str(REQUIREMENTS),
        ],
    ):
        done = subprocess.run(
            [str(uv), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
            env=_surroundings(),
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["uv failed"])[-1]
            raise NotHere(f"octavia-tempest-plugin cannot be installed here: {last}")
    stamp.write_text(wanted)
    return venv / "bin"


def _surroundings() -> dict[str, str]:
    """uv does not read pip's settings: an index that is set for pip counts for it too."""
    given = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"} | {"UV_PYTHON_DOWNLOADS": "never"}
    if not given.get("UV_DEFAULT_INDEX") and given.get("PIP_INDEX_URL"):
        given["UV_DEFAULT_INDEX"] = given["PIP_INDEX_URL"]
    return given
