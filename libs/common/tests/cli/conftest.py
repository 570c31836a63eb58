"""Tests of the command line: no context of this machine may reach them."""

from pathlib import Path

import pytest

from roadstead.cli import chosen
from roadstead.cli.context import Choice


@pytest.fixture(autouse=True)
def nobody_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder, an empty home, and no variable of ours."""
    for name in (
        "HOME",
        "CONTEXT",
        "CONTEXTS",
        "REGION",
        "PROJECT",
        "ORGANIZATION",
        "NATS_URL",
        "DATABASE_URL",
    ):
        monkeypatch.delenv(f"ROADSTEAD_{name}", raising=False)
    monkeypatch.setenv("ROADSTEAD_HOME", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chosen, "choice", Choice())
