"""What only a client outside of the product can prove; over the simulator's process and over the reference cloud."""

from tests.world.plugin import pytest_pycollect_makeitem, scenarios_for, world

__all__ = ["pytest_generate_tests", "pytest_pycollect_makeitem", "world"]

pytest_generate_tests = scenarios_for(("integration", "cloud"))
