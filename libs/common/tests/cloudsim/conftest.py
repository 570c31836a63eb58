"""A simulated cloud whose clock stands still, with the four scopes of a region."""

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, stage


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)
