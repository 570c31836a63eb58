"""The stack's simulated cloud over a restart."""

from pathlib import Path

import pytest

from roadstead.cli.stack import simulator
from roadstead.testing.cloudsim import Cloud, stage


def test_a_saved_cloud_comes_back_with_all_it_holds(tmp_path: Path) -> None:
    cloud = Cloud(seed=3)
    world = stage(cloud)
    made = world.principal.call("network", "POST", "/v2.0/networks", {"network": {"name": "kept"}})[
        "network"
    ]["id"]
    simulator.save(cloud, tmp_path / "cloud")
    assert (tmp_path / "cloud").stat().st_mode & 0o077 == 0
    again = simulator.load(tmp_path / "cloud")
    assert again is not None
    assert made in {network["id"] for network in again.neutron.dump()["networks"]}
    assert again.ids.uuid() == cloud.ids.uuid(), "ids go on where they stopped"


def test_a_cloud_of_another_release_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator.save(Cloud(seed=3), tmp_path / "cloud")
    monkeypatch.setattr(simulator, "release_of_simulator", lambda: b"another")
    with pytest.raises(ValueError, match="roadstead down --wipe"):
        simulator.load(tmp_path / "cloud")


def test_no_saved_cloud_is_a_new_one(tmp_path: Path) -> None:
    assert simulator.load(tmp_path / "none") is None
