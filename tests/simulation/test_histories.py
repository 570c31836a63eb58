"""Seeded histories hold the invariants; ROADSTEAD_HISTORIES says how many (make soak: thousands)."""

import os

import pytest
from tests.simulation.histories import run_history
from tests.world.services import ALL

NUMBER = int(os.environ.get("ROADSTEAD_HISTORIES", "300"))
BATCH = 10


@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", range(0, NUMBER, BATCH))
def test_seeded_histories_end_as_wished(start: int) -> None:
    for seed in range(start, min(start + BATCH, NUMBER)):
        run_history(seed, ALL)
