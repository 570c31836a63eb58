"""Sweeps over the simulated cloud, with the owner's production rules behind them (behaviour.md section 11)."""

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from roadstead.bus.failures import PublishFailed
from roadstead.testing.cloudsim.faults import Fault, Outcome
from roadstead_compute.server import texts
from roadstead_compute.server.decide_retry import create_failed
from roadstead_compute.server.model import ServerStatus

OTHER_REGION = "88888888-8888-4888-8888-888888888888"
OTHER_IDENTITY = "77777777-7777-4777-8777-777777777777"
OTHER_NETWORK = "33333333-3333-4333-8333-333333333333"


async def test_inv_231_inv_236_inv_250_a_booted_server_is_told_once(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    assert sky.owner.outcomes == ["woken"]
    assert (sky.condition(ident, "Active"), sky.condition(ident, "Healthy")) == ("Running", "Healthy")
    status = sky.status(ident)
    assert status["provisionedAt"] == status["launchedAt"]
    assert status["macAddress"].startswith("fa:16:3e")
    assert sky.observed(ident)["generation"] == 1
    for _ in range(3):
        swept = await sky.sweep()
        assert (swept.sent, swept.failed) == (0, 0), "nothing is news a second time"


async def test_one_paged_list_a_project_and_no_other_call(sky: Any) -> None:
    sky.cloud.settings.pages.compute = 2
    idents = [sky.server(f"web-{n}") for n in range(5)]
    await sky.sweep()
    assert len(sky.lists()) == 3
    assert sky.gets() == []
    assert [sky.condition(i, "Active") for i in idents] == ["Running"] * 5
    assert sky.cloud.log.writes() == []


async def test_inv_255_the_monitor_makes_no_call_that_changes_anything(sky: Any) -> None:
    ident = sky.server("web-1")
    for verb in ("error", "recover", "stop", "start", "evacuate", "delete"):
        await sky.sweep()
        assert sky.cloud.log.writes() == []
        sky.foreign(verb, ident)
    await sky.sweep()
    assert sky.cloud.log.writes() == []


async def test_inv_093_inv_230_available_stays_as_the_pass_wrote_it(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    before = [c for c in sky.status(ident)["conditions"] if c["type"] not in ("Healthy", "Active")]
    sky.foreign("error", ident)
    await sky.sweep()
    after = [c for c in sky.status(ident)["conditions"] if c["type"] not in ("Healthy", "Active")]
    assert after == before
    assert {"provisioningStatus", "code"} & set(sky.status(ident)) == set()


async def test_inv_098_inv_099_absence_is_told_explicitly_and_once(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident)
    await sky.sweep()
    image = sky.observed(ident)["image"]
    sky.foreign("delete", ident)
    await sky.sweep()
    (message,) = sky.owner.messages
    assert message[1]["present"] is False
    assert sky.owner.outcomes == ["woken"]
    observed = sky.observed(ident)
    assert (observed["absent"], observed["errored"], observed["image"]) == (True, False, image)
    assert (await sky.sweep()).sent == 0


async def test_a_server_that_was_never_made_is_not_called_absent(sky: Any) -> None:
    sky.server("web-1", real=False)
    assert (await sky.sweep()).sent == 0


async def test_ref_065_a_server_under_deletion_is_skipped(sky: Any) -> None:
    ident = sky.server("web-1")
    row = sky.owner.rows[ident]
    moment = sky.clock.now()
    sky.owner.put(
        replace(row, deleting=True, deletion_timestamp=moment, resource_version=row.resource_version + 1)
    )
    swept = await sky.sweep()
    assert (swept.projects, swept.sent) == (0, 0)


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 403}, {"kind": "no_answer_before"}])
async def test_inv_098_a_failed_list_writes_nothing(sky: Any, fault: dict[str, Any]) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident)
    await sky.sweep()
    sky.cloud.faults.add(Fault(**{"kind": "status", "service": "compute", "times": None, **fault}))
    swept = await sky.sweep()
    assert (swept.sent, swept.failed) == (0, 1)
    assert sky.observed(ident)["errored"] is True


async def test_a_list_that_breaks_off_is_no_list(sky: Any) -> None:
    sky.cloud.settings.pages.compute = 2
    for n in range(5):
        sky.server(f"web-{n}")
    await sky.sweep()
    sky.cloud.faults.add(
        Fault("status", service="compute", path="/servers/detail", status=500, skip=1, times=None)
    )
    swept = await sky.sweep()
    assert (swept.sent, swept.failed) == (0, 1)


async def test_ref_063_a_region_that_is_down_leaves_the_others_alone(sky: Any) -> None:
    sky.region(OTHER_REGION, OTHER_IDENTITY)
    here = sky.server("web-1")
    there = sky.server("web-1", identity=OTHER_IDENTITY, region=OTHER_REGION, network=OTHER_NETWORK)
    project = sky.stages[OTHER_IDENTITY].project_id
    sky.cloud.faults.add(Fault("status", service="compute", project_id=project, status=500, times=None))
    swept = await sky.sweep()
    assert (swept.projects, swept.failed) == (2, 1)
    assert sky.condition(here, "Active") == "Running"
    assert sky.condition(there, "Active") == "Building"
    regions = {cell.region for cell in sky.sweeper.measures.servers}
    assert OTHER_REGION not in regions, "what was not read is not in the gauge"


async def test_ref_064_an_ignored_observation_comes_again(sky: Any) -> None:
    ident = sky.server("web-1")
    row = sky.owner.rows[ident]
    later = sky.clock.now()
    sky.owner.rows[ident] = replace(row, written_at=later.replace(year=later.year + 1))
    await sky.sweep()
    assert sky.owner.outcomes == ["before_write"]
    assert sky.condition(ident, "Active") == "Building"
    sky.owner.rows[ident] = replace(sky.owner.rows[ident], written_at=later)
    await sky.sweep()
    assert sky.owner.outcomes == ["woken"]
    assert sky.condition(ident, "Active") == "Running"


async def test_a_message_that_the_broker_does_not_take_comes_again(sky: Any) -> None:
    class Deaf:
        async def publish(self, subject: str, payload: bytes, headers: Any) -> tuple[int, int]:
            raise PublishFailed("the broker is away")

    sky.server("web-1")
    sky.sweeper._publisher = Deaf()
    swept = await sky.sweep()
    assert (swept.sent, swept.unsent, swept.failed) == (0, 1, 0)
    sky.sweeper._publisher = sky.owner
    assert (await sky.sweep()).sent == 1


async def test_inv_103_inv_113_an_evacuation_reads_rebuilding_for_one_sweep_and_goes_again(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("evacuate", ident)
    await sky.sweep(rest=0.5)
    assert (sky.condition(ident, "Active"), sky.condition(ident, "Healthy")) == ("Rebuilding", "Unknown")
    assert sky.owner.outcomes == ["stored"], "INV-102: nobody is woken"
    await sky.sweep()
    assert (sky.condition(ident, "Active"), sky.condition(ident, "Healthy")) == ("Running", "Healthy")


async def test_a_stamp_that_a_pass_made_since_is_mended_although_no_fact_moved(sky: Any) -> None:
    """A rebuild that begins and ends between two sweeps leaves the facts as they were, but Active at Rebuilding."""
    ident = sky.server("web-1")
    await sky.sweep()
    sky.owner.stamp(ident, **texts.ACCEPTED)
    assert sky.condition(ident, "Active") == "Rebuilding"
    swept = await sky.sweep()
    assert swept.sent == 1
    assert (sky.condition(ident, "Active"), sky.condition(ident, "Healthy")) == ("Running", "Healthy")
    assert (await sky.sweep()).sent == 0


async def test_inv_250_an_edit_is_told_by_its_generation_and_wakes_nobody(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.owner.edit(ident)
    await sky.sweep()
    assert sky.owner.outcomes == ["stored"]
    assert sky.observed(ident)["generation"] == 2
    assert (await sky.sweep()).sent == 0


async def test_inv_249_an_unreadable_image_keeps_the_last(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    image = sky.observed(ident)["image"]
    sky.foreign("set", ident, image_id="")
    await sky.sweep()
    assert (sky.observed(ident)["image"], sky.observed(ident)["readable"]) == (image, False)
    assert sky.owner.outcomes == ["stored"]
    sky.foreign("set", ident, image_id=image)
    await sky.sweep()
    assert sky.owner.outcomes == ["woken"], "Q2"


async def test_inv_062_a_server_that_never_boots_counts_as_failed_after_one_sweep(sky: Any) -> None:
    sky.cloud.faults.add_outcome(Outcome("server_build"))
    ident = sky.server("web-1")
    await sky.sweep()
    status = sky.status(ident)
    conditions = {c["type"]: c for c in status.pop("conditions")}
    assert create_failed(ServerStatus.model_validate(status), conditions)
    assert sky.owner.outcomes == ["woken"]


@pytest.mark.parametrize("hidden", ["hide_launched_at", "hide_task_state"])
async def test_a_cloud_that_hides_a_field_still_comes_to_rest(sky: Any, hidden: str) -> None:
    setattr(sky.cloud.settings, hidden, True)
    ident = sky.server("web-1")
    await sky.sweep()
    assert sky.condition(ident, "Active") == "Running"
    assert (await sky.sweep()).sent == 0


async def test_two_servers_that_bear_one_id_are_not_observed(sky: Any) -> None:
    ident = sky.server("web-1")
    sky.stages[next(iter(sky.stages))].boot("web-2", metadata={"serverID": ident})
    with capture_logs() as logs:
        assert (await sky.sweep()).sent == 0
    assert any(line["log_level"] == "error" and line.get("server") == ident for line in logs)


async def test_a_renamed_server_is_still_ours(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("set", ident, name="another")
    assert (await sky.sweep()).sent == 0


# ---------------------------------------------------------------- faults


MARKER = "marker-in-a-fault"


def entered(logs: list[Any]) -> list[Any]:
    return [line for line in logs if "entered error" in line["event"]]


async def test_inv_240_inv_241_inv_244_one_look_at_a_fault_when_a_server_turns_into_error(sky: Any) -> None:
    sky.cloud.settings.list_shows_fault = False
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident, message=MARKER)
    with capture_logs() as logs:
        await sky.sweep()
        assert len(sky.gets()) == 1
        await sky.sweep()
        assert sky.gets() == []
    (line,) = entered(logs)
    assert line["fault_message"] == MARKER
    assert line["fault_code"] == 500
    assert line["fault_created"]
    assert line["log_level"] == "warning"
    assert "details" not in str(line)


async def test_inv_242_no_look_for_a_healthy_server(sky: Any) -> None:
    sky.server("web-1")
    await sky.sweep()
    assert sky.gets() == []


async def test_inv_245_inv_297_no_fault_reaches_messages_or_status(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident, message=MARKER, code=400)
    await sky.sweep()
    assert MARKER not in str(sky.owner.messages) + str(sky.status(ident))
    assert sky.observed(ident)["errored"] is True


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 404}, {"kind": "no_answer_before"}])
async def test_inv_243_a_look_that_fails_harms_nothing(sky: Any, fault: dict[str, Any]) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident)
    rule = {"kind": "status", "service": "compute", "path": r"/servers/[0-9a-f]{8}-", "times": None, **fault}
    sky.cloud.faults.add(Fault(**rule))
    with capture_logs() as logs:
        swept = await sky.sweep()
    assert swept.failed == 0
    assert sky.observed(ident)["errored"] is True
    assert len(entered(logs)) == 1


async def test_inv_243_a_look_that_hangs_is_cut_off(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident)
    sky.cloud.faults.add(Fault("slow", service="compute", path=r"/servers/[0-9a-f]{8}-", delay=3600.0))
    before = sky.clock.monotonic()
    await sky.sweep()
    assert sky.clock.monotonic() - before < 60 + 10
    assert sky.observed(ident)["errored"] is True


async def test_inv_247_inv_248_inv_312_errored_follows_the_status_not_the_fault(sky: Any) -> None:
    sky.cloud.settings.stale_fault = True
    sky.cloud.settings.list_shows_fault = False
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident)
    await sky.sweep()
    assert sky.observed(ident)["errored"] is True, "although the list shows no fault"
    sky.cloud.settings.list_shows_fault = True
    sky.foreign("recover", ident)
    await sky.sweep()
    assert sky.observed(ident)["errored"] is False, "although the fault is still shown"


async def test_inv_240_an_ignored_observation_is_no_second_look_a_second_failure_is(sky: Any) -> None:
    ident = sky.server("web-1")
    await sky.sweep()
    sky.foreign("error", ident)
    later = sky.clock.now().replace(year=sky.clock.now().year + 1)
    sky.owner.rows[ident] = replace(sky.owner.rows[ident], written_at=later)
    looks = []
    for _ in range(3):
        await sky.sweep()
        assert sky.owner.outcomes == ["before_write"]
        looks.append(len(sky.gets()))
    assert looks == [1, 0, 0]
    sky.owner.rows[ident] = replace(sky.owner.rows[ident], written_at=None)
    for change, expected in (("recover", 0), ("error", 1)):
        sky.foreign(change, ident)
        await sky.sweep()
        assert len(sky.gets()) == expected
