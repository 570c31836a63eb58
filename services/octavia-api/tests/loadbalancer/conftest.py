"""A migrated database for each test, and a world around it."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer
from roadstead_octavia.db.postgres import PostgresDatabase


@pytest.fixture(scope="session")
def database_template(postgres_server: PostgresServer) -> str:
    """A database that was migrated once; each test gets a copy."""
    name = f"octavia_lb_template_{os.getpid()}"
    url = postgres_server.create_database(name)
    asyncio.run(migrate(url, ["octavia"]))
    return name


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[PostgresDatabase]:
    opened = PostgresDatabase(database_url, patience=2.0)
    await opened.open()
    yield opened
    await opened.close()
