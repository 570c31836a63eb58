"""Pytest fixtures with real servers, known to every test run of an environment that has the distribution.

A test gets servers or databases that nobody else touches. PostgreSQL is one server a session with a fresh database
a test; NATS is so quick to start (about 20 ms) that a test gets a server of its own, which it may kill. Nothing is
started for a test that does not ask.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from roadstead.testing.servers import NatsServer, PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server_directory() -> Iterator[Path]:
    """A folder for the session's servers, removed at the end.

    It is not one of pytest's, whose folders only their owner may enter: PostgreSQL may run as another user.
    """
    directory = Path(tempfile.mkdtemp(prefix="roadstead-test-"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(server_directory: Path) -> Iterator[PostgresServer]:
    """The session's PostgreSQL, not durable. A test that kills it must leave it running."""
    server = PostgresServer(server_directory / "postgres", durable=False, die_with_parent=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def database_template(postgres_server: PostgresServer) -> str:
    """Name of the database that fresh ones are copied from: an empty one.

    A conftest overrides this with a session fixture that prepares a schema once and returns that database's name.
    """
    return "template1"


@pytest.fixture
def database_url(postgres_server: PostgresServer, database_template: str) -> Iterator[str]:
    """Address (`postgresql://...`) of a database made for this test and dropped after it."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield postgres_server.create_database(name, template=database_template)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def nats_server(server_directory: Path) -> Iterator[NatsServer]:
    """The session's NATS, for wider fixtures that make their own streams; tests take `own_nats` or `nats_url`."""
    server = NatsServer(server_directory / "nats", die_with_parent=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_nats(server_directory: Path) -> Iterator[NatsServer]:
    """A NATS server of this test alone, empty; the test may stop, kill and restart it."""
    directory = server_directory / f"nats-{next(_numbers)}"
    server = NatsServer(directory, die_with_parent=True)
    server.start()
    yield server
    server.kill()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def nats_url(own_nats: NatsServer) -> str:
    """Address of a NATS server of this test alone."""
    return own_nats.url
