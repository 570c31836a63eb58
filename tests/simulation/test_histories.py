"""Seeded histories hold the invariants; ROADSTEAD_HISTORIES says how many (make soak: thousands)."""

import os

import pytest
from tests.simulation.histories import run_history

from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_network.__main__ import SERVICE as NETWORK

NUMBER = int(os.environ.get("ROADSTEAD_HISTORIES", "300"))
BATCH = 10
SERVICES = (IDENTITY, NETWORK)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", range(0, NUMBER, BATCH))
def test_seeded_histories_end_as_wished(start: int) -> None:
    for seed in range(start, min(start + BATCH, NUMBER)):
        run_history(seed, SERVICES)
