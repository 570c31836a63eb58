"""Fixtures: a private OVN for each module that asks for one, and a small region on it."""

from collections.abc import Iterator

import pytest

from roadstead.testing.cloudsim import Cloud
from roadstead.testing.private_ovn import PrivateOvn

from .region import Region


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
