"""Fixtures: a private OVN for each module that asks for one, a small region on it, and the whole path over them."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.cloudsim import Cloud
from roadstead.testing.private_ovn import PrivateOvn
from roadstead.testing.servers import PostgresServer
from roadstead_ovn.store.postgres import SCHEMA

from .region import Region
from .stack import Stack


@pytest.fixture(scope="module")
def ovn() -> Iterator[PrivateOvn]:
    """Databases, northd and a data path."""
    with PrivateOvn(data_path=True) as made:
        yield made


@pytest.fixture(scope="module")
def region(ovn: PrivateOvn) -> Iterator[Region]:
    """Without the Octavia API: what reaches OVN comes from the simulated Neutron and from the test."""
    cloud = Cloud(seed=7)
    cloud.settings.durations.scale(0)
    made = Region(cloud, ovn)
    yield made
    made.close()


@pytest.fixture(scope="session")
def stack_template(postgres_server: PostgresServer) -> str:
    """A database that was migrated once."""
    name = f"ovn_stack_{os.getpid()}"
    asyncio.run(migrate(postgres_server.create_database(name), ["octavia", SCHEMA]))
    return name


@pytest.fixture(scope="module")
def make_stack(
    postgres_server: PostgresServer, stack_template: str, server_directory: Path
) -> Iterator[Callable[..., Stack]]:
    """Makes whole paths over an OVN; settings of the API as they are, those of the worker begin with ovn_."""
    made: list[Stack] = []

    def make(ovn: PrivateOvn, **settings: Any) -> Stack:
        name = f"{stack_template}_{len(made)}_{os.urandom(3).hex()}"
        postgres_server.create_database(name, template=stack_template)
        stack = Stack(server_directory / name, postgres_server, name, ovn, **settings)
        made.append(stack)
        return stack.start()

    yield make
    for stack in made:
        stack.stop()


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack], ovn: PrivateOvn) -> Stack:
    """One path with packets, shared by a module's tests."""
    return make_stack(ovn)
