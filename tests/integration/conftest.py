"""What only shows on a real broker: each test runs beside the scenarios of that level, on the same stack."""

from tests.world.plugin import pytest_pycollect_makeitem, scenarios_for, world

__all__ = ["pytest_generate_tests", "pytest_pycollect_makeitem", "world"]

pytest_generate_tests = scenarios_for(("integration",))
