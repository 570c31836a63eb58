"""Tests that span services: logs that a person can read where one fails, and the stacks that scenarios share."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.world.adapter_stack import Session

ROOT = Path(__file__).resolve().parents[1]
CLOUD_HOME = Path(os.environ.get("ROADSTEAD_CLOUD_HOME", ROOT / ".run/cloud"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "worlds(*names): the worlds that a scenario is for; without it, those of its folder"
    )


@pytest.fixture(scope="package", autouse=True)
def _readable_logs() -> Iterator[None]:
    """Errors only, with plain tracebacks: drawing local variables takes longer than a test may wait.

    Undone at the end of these tests, because others in the same run look at logs themselves.
    """
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
    )
    yield
    if before is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**before)


@pytest.fixture(scope="session")
def integration_stack(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Every service as a process, over the simulator's process."""
    yield from _opened(Session("integration", pace=0.1, at_once=12, patience=60), request)


@pytest.fixture(scope="session")
def cloud_stack(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The same over the reference cloud: quicker rhythms, and the usual times for what a real cloud may take."""
    clouds = CLOUD_HOME / "etc/clouds.yaml"
    if not clouds.exists():
        pytest.skip(f"no cloud at {CLOUD_HOME}: start one with `make cloud`")
    wanted = Session("cloud", pace=0.35, at_once=6, patience=240, cloud=(clouds, "roadstead-admin"))
    yield from _opened(wanted, request)


def _opened(session: Session, request: pytest.FixtureRequest) -> Iterator[Session]:
    try:
        session.open()
        session.schedule(_jobs(request, session.level))
        yield session
    finally:
        session.close()


def _jobs(request: pytest.FixtureRequest, level: str) -> list[Any]:
    """The selected scenarios of a level: function, item, and its other parameters."""
    found = []
    for item in request.session.items:
        call = getattr(item, "callspec", None)
        if isinstance(item, pytest.Function) and call is not None and call.params.get("world") == level:
            given = {k: v for k, v in call.params.items() if k != "world"}
            found.append((item.function.__wrapped__, item.nodeid, given))
    return found
