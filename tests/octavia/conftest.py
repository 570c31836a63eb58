"""Fixtures: one running service for most tests, and services of their own for those that kill parts of it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer

from .client import Client
from .ground import Ground
from .people import Home

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They start real servers: integration tests, all of them."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("integration")


@pytest.fixture(scope="session")
def octavia_template(postgres_server: PostgresServer) -> str:
    """A database that was migrated once."""
    name = f"octavia_service_{os.getpid()}"
    asyncio.run(migrate(postgres_server.create_database(name), ["octavia"]))
    return name


@pytest.fixture(scope="session")
def make_ground(
    postgres_server: PostgresServer, octavia_template: str, server_directory: Path
) -> Iterator[Callable[..., Ground]]:
    """Makes services; ended with the session unless before."""
    made: list[Ground] = []

    def make(**settings: Any) -> Ground:
        name = f"octavia_ground_{os.getpid()}_{len(made)}"
        postgres_server.create_database(name, template=octavia_template)
        ground = Ground(server_directory / name, postgres_server, name, **settings)
        made.append(ground)
        return ground.start()

    yield make
    for ground in made:
        ground.stop()
        with suppress(OSError):
            _keep_log(ground)


def _keep_log(ground: Ground) -> None:
    """Where ROADSTEAD_KEEP_LOGS names a folder, the services' logs go there."""
    if kept := os.environ.get("ROADSTEAD_KEEP_LOGS"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        for program in (*ground.replicas, *ground.providers.values()):
            (Path(kept) / f"{ground.folder.name}-{program.directory.name}.log").write_text(program.words())


@pytest.fixture(scope="session")
def ground(make_ground: Callable[..., Ground]) -> Ground:
    """The service that most tests share: one replica, providers noop (the default) and plain."""
    return make_ground()


@pytest.fixture
def red(ground: Ground) -> Home:
    return ground.people.red


@pytest.fixture
def blue(ground: Ground) -> Home:
    return ground.people.blue


@pytest.fixture
async def user(ground: Ground) -> AsyncIterator[Client]:
    """The user of the project red."""
    client = Client(ground.url, ground.people.token_of(ground.people.red))
    yield client
    client.close()


@pytest.fixture
async def other(ground: Ground) -> AsyncIterator[Client]:
    """The user of the project blue."""
    client = Client(ground.url, ground.people.token_of(ground.people.blue))
    yield client
    client.close()


@pytest.fixture
async def admin(ground: Ground) -> AsyncIterator[Client]:
    client = Client(ground.url, ground.people.admin_token)
    yield client
    client.close()
