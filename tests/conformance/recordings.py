"""Where the recordings are; they are data that this project does not hold."""

import os
from pathlib import Path

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
