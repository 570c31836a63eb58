"""A database with the API's tables, made once and copied for each test."""

import asyncio
import os

import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer


@pytest.fixture(scope="session")
def database_template(postgres_server: PostgresServer) -> str:
    """Name of the database that was migrated."""
    name = f"octavia_answering_{os.getpid()}"
    url = postgres_server.create_database(name)
    asyncio.run(migrate(url, ["octavia"]))
    return name
