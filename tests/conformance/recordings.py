"""Where the recordings are; they are data that this project does not hold."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("ROADSTEAD_SHARED") or ROOT.parent / "shared")
FOLDER = SHARED / "conformance"


def missing() -> str | None:
    """The reason for which nothing can be replayed here; None when it can."""
    if (FOLDER / "replay.py").is_file():
        return None
    return f"{FOLDER} with the recorded exchanges and their replayer is missing; set ROADSTEAD_SHARED to the folder above it"


needs_recordings = pytest.mark.skipif(missing() is not None, reason=missing() or "")


def module(name: str) -> Any:
    """A module of the replayer: it lies beside the recordings."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)
