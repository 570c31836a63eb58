"""Marks tests by the folder of their level: all under tests/simulation are simulation tests, and so on.

Hypothesis judges by the clock whether inputs are made quickly enough; on a busy machine that says nothing about a test.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("roadstead", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("roadstead")

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
    # Tests across services take longest: they begin first, so that processes side by side end together.
    items.sort(key=lambda item: TESTS not in item.path.parents)


@pytest.fixture(scope="session", autouse=True)
def _loggers_can_be_configured_again() -> Iterator[None]:
    """A logger that is cached at its first use keeps the settings of whichever test used it first."""
    patch = pytest.MonkeyPatch()
    configure = structlog.configure

    def uncached(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    patch.setattr(structlog, "configure", uncached)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _log_settings_are_put_back() -> Iterator[None]:
    """What a test set up for logging ends with it, as others look at what is logged."""
    before = structlog.get_config() if structlog.is_configured() else None
    yield
    if before is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**before)
