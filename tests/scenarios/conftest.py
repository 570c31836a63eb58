"""Scenarios, in every world."""

from tests.world.plugin import WORLDS, pytest_pycollect_makeitem, scenarios_for, world

__all__ = ["pytest_generate_tests", "pytest_pycollect_makeitem", "world"]

pytest_generate_tests = scenarios_for(WORLDS)
