"""Fixtures of the volumes service's tests."""

import pytest
from services.volumes.tests.world import World


@pytest.fixture
def world() -> World:
    return World()
