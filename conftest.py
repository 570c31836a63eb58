"""Marks tests by the folder of their level: all under tests/simulation are simulation tests, and so on."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"
LEVELS = {"integration", "simulation", "cloud", "conformance", "chaos", "ovn"}


@pytest.hookimpl(tryfirst=True)  # before pytest's own hook picks by -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the level's mark to each test that lies under its folder and bears none of its own."""
    for item in items:
        if TESTS in item.path.parents and not LEVELS & {mark.name for mark in item.iter_markers()}:
            level = item.path.relative_to(TESTS).parts[0]
            if level in LEVELS:
                item.add_marker(level)
