"""Scenarios: see tests/world/plugin.py for how they run."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.world.adapter_stack import Session
from tests.world.plugin import scenario_items, world, worlds_of

__all__ = ["world"]

ROOT = Path(__file__).resolve().parents[2]
CLOUD_HOME = Path(os.environ.get("ROADSTEAD_CLOUD_HOME", ROOT / ".run/cloud"))


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: Any) -> Any:
    return scenario_items(collector, name, obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        metafunc.parametrize("world", worlds_of(metafunc), indirect=True)


def _jobs(request: pytest.FixtureRequest, level: str) -> list[Any]:
    found = []
    for item in request.session.items:
        call = getattr(item, "callspec", None)
        if call is not None and call.params.get("world") == level:
            given = {k: v for k, v in call.params.items() if k != "world"}
            found.append((item.function.__wrapped__, item.nodeid, given))
    return found


@pytest.fixture(scope="session")
def integration_stack(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Every service as a process, over the simulator's process."""
    yield from _opened(Session("integration", pace=0.1, at_once=12, patience=60), request)


@pytest.fixture(scope="session")
def cloud_stack(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The same over the reference cloud, with other time-outs because real services take their time."""
    clouds = CLOUD_HOME / "etc/clouds.yaml"
    if not clouds.exists():
        pytest.skip(f"no cloud at {CLOUD_HOME}: start one with `make cloud`")
    yield from _opened(
        Session("cloud", pace=0.25, at_once=8, patience=240, cloud=(clouds, "roadstead-admin")), request
    )


def _opened(session: Session, request: pytest.FixtureRequest) -> Iterator[Session]:
    try:
        session.open()
        session.schedule(_jobs(request, session.level))
        yield session
    finally:
        session.close()
