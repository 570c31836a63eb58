"""What a sweep measured reaches /metrics, and nothing of an older sweep does."""

from roadstead.store.memory import MemoryStore
from roadstead.telemetry.metrics import BY_NAME, Meters
from roadstead_monitor.watch import Watch

from .conftest import REGION, Sky

OTHER_REGION = "77777777-7777-4777-8777-777777777777"
OTHER_IDENTITY = "88888888-8888-4888-8888-888888888888"


def watch(sky: Sky, meters: Meters) -> Watch:
    store = MemoryStore(sky.clock, name="monitor")
    return Watch(sky.sweeper, store, sky.clock, owner="o", period=60.0, meters=meters)


def servers(meters: Meters) -> dict[tuple[str, str], float]:
    """(state, region name) -> count, as shown."""
    (family,) = [f for f in meters.registry.collect() if f.name == "roadstead_servers"]
    found = {(s.labels["state"], s.labels["region_name"]): s.value for s in family.samples}
    assert all(set(s.labels) == set(BY_NAME["roadstead_servers"].labels) for s in family.samples)
    return found


async def test_ref_063_the_gauge_shows_what_the_last_sweep_read_and_nothing_older(sky: Sky) -> None:
    meters = Meters()
    sky.region(OTHER_REGION, OTHER_IDENTITY)
    sky.server("web-1")
    broken = sky.server("web-2")
    sky.server("web-3", identity=OTHER_IDENTITY, region=OTHER_REGION, network=OTHER_REGION)
    sky.clock.advance(60)
    watching = watch(sky, meters)
    await watching.sweep_once()
    assert servers(meters) == {("active", "region-1"): 2, ("active", "region-2"): 1}
    sky.foreign("error", broken)
    sky.keyring.drop_identity(OTHER_REGION, OTHER_IDENTITY)
    await watching.sweep_once()
    assert servers(meters) == {("active", "region-1"): 1, ("error", "region-1"): 1}
    assert meters.value("roadstead_sweep_projects_total", outcome="read") == 3
    assert meters.value("roadstead_sweep_projects_total", outcome="failed") == 1


async def test_the_two_durations_of_a_server_are_counted_once(sky: Sky) -> None:
    meters = Meters()
    sky.server("web-1")
    sky.clock.advance(60)
    watching = watch(sky, meters)
    await watching.sweep_once()
    await watching.sweep_once()
    text = meters.text().decode()
    assert "roadstead_server_provisioning_seconds_count 1.0" in text
    assert 'roadstead_server_scheduling_seconds_bucket{le="5.0"} 1.0' in text
    assert "roadstead_sweep_seconds_count 2.0" in text
    assert meters.value("roadstead_sweep_observations_total", outcome="sent") >= 1
    assert f'region="{REGION}"' in text
