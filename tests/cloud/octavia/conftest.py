"""One service in the reference cloud for all of these tests, under the names that the tests of tests/octavia use."""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer
from tests.conftest import CLOUD_HOME
from tests.octavia.client import Client
from tests.octavia.people import Home

from .reference import ReferenceCloud, ReferenceService

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They are for the reference cloud; who takes the place of its Octavia comes after everybody who uses that."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("cloud")
    items.sort(key=lambda item: item.path == HERE / "test_takeover.py")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item] | None:
    """Coroutines here are plain asynchronous tests, not scenarios of a world as in the folder above."""
    if name.startswith("test") and inspect.iscoroutinefunction(obj):
        return list(collector._genfunctions(name, obj))
    return None


@pytest.fixture(scope="session")
def reference_cloud() -> ReferenceCloud:
    clouds = CLOUD_HOME / "etc/clouds.yaml"
    if not clouds.exists():
        pytest.skip(f"no cloud at {CLOUD_HOME}: start one with `make cloud`")
    return ReferenceCloud(clouds)


@pytest.fixture(scope="session")
def ground(
    reference_cloud: ReferenceCloud, postgres_server: PostgresServer, server_directory: Path
) -> Iterator[ReferenceService]:
    """One replica, providers noop (the default) and plain."""
    name = f"octavia_reference_{os.getpid()}"
    asyncio.run(migrate(postgres_server.create_database(name), ["octavia"]))
    service = ReferenceService(reference_cloud, server_directory / name, postgres_server, name)
    try:
        yield service.start()
    finally:
        service.stop()


@pytest.fixture
def red(ground: ReferenceService) -> Home:
    return ground.people.red


@pytest.fixture
def blue(ground: ReferenceService) -> Home:
    return ground.people.blue


@pytest.fixture
async def user(ground: ReferenceService) -> AsyncIterator[Client]:
    client = Client(ground.url, ground.people.token_of(ground.people.red))
    yield client
    client.close()


@pytest.fixture
async def other(ground: ReferenceService) -> AsyncIterator[Client]:
    client = Client(ground.url, ground.people.token_of(ground.people.blue))
    yield client
    client.close()


@pytest.fixture
async def admin(ground: ReferenceService) -> AsyncIterator[Client]:
    client = Client(ground.url, ground.people.admin_token)
    yield client
    client.close()
