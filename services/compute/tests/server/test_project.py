"""Facts of the monitor become conditions, latches and wakes (behaviour.md section 11)."""

from typing import Any

import pytest

from roadstead.reconcile.status import merged
from roadstead_compute.server import texts
from roadstead_compute.server.decide_image import decide_image
from roadstead_compute.server.project import project, wakes
from roadstead_compute.server.seen import ServerSeen

BOOTED = "2026-01-01T00:01:00.000Z"


def facts(build: Any, **changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "present": True,
        "generation": 1,
        "status": "ACTIVE",
        "taskState": None,
        "powerState": 1,
        "launchedAt": BOOTED,
        "createdAt": "2026-01-01T00:00:30.000Z",
        "image": build.image,
        "macAddress": "fa:16:3e:00:00:01",
    }
    return {**base, **changes}


def after(build: Any, before: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The status after one observation of it, as the owner stores it."""
    resource = build.resource(status=before, generation=changes.pop("at", 1))
    return merged(before, project(resource, facts(build, **changes), build.now), build.now)


def condition(status: dict[str, Any], kind: str) -> tuple[str, str] | None:
    found = next((c for c in status.get("conditions", ()) if c["type"] == kind), None)
    return (found["status"], found["reason"]) if found else None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("ACTIVE", ("True", "Healthy")),
        ("ERROR", ("False", "Errored")),
        ("REBUILD", ("Unknown", "Unknown")),
        ("UNKNOWN", ("Unknown", "Unknown")),
        ("", ("Unknown", "Unknown")),
        ("BUILD", ("False", "Degraded")),
        ("SHUTOFF", ("False", "Degraded")),
        ("MIGRATING", ("False", "Degraded")),
    ],
)
def test_healthy(build: Any, state: str, expected: tuple[str, str]) -> None:
    assert condition(after(build, {}, status=state), "Healthy") == expected


@pytest.mark.parametrize(
    ("state", "power", "reason"),
    [
        ("ACTIVE", 1, "Running"),
        ("SHUTOFF", 4, "Stopped"),
        ("BUILD", 0, "Building"),
        ("BUILD", 1, "Building"),
        ("REBUILD", 1, "Rebuilding"),
        ("ERROR", 0, "Error"),
        ("ERROR", 4, "Error"),
    ],
)
def test_inv_224_active_q8(build: Any, state: str, power: int, reason: str) -> None:
    status = after(build, {}, status=state, powerState=power)
    assert condition(status, "Active") == ("True" if reason == "Running" else "False", reason)


@pytest.mark.parametrize("power", [None, 0, 3, 6, 7])
def test_a_power_state_that_says_nothing_keeps_active(build: Any, power: int | None) -> None:
    before = after(build, {})
    assert condition(after(build, before, powerState=power), "Active") == ("True", "Running")
    assert condition(after(build, {}, powerState=power), "Active") is None


def test_inv_103_inv_113_a_rebuild_in_flight_reads_the_same_from_both_writers(build: Any) -> None:
    seen = ServerSeen("nova-1", "REBUILD", "rebuilding", True, build.image)
    from_pass = merged({}, decide_image(build.image, seen).status, build.now)
    from_monitor = after(build, {}, status="REBUILD", taskState="rebuilding", powerState=4)
    assert from_pass["conditions"] == from_monitor["conditions"]


def test_inv_093_inv_230_available_is_never_touched(build: Any) -> None:
    for changes in ({}, {"status": "ERROR"}, {"present": False}, {"status": "REBUILD"}):
        made = project(build.resource(), facts(build, **changes), build.now)
        assert "Available" not in made
        assert not {"provisioningStatus", "code", "privateIP", "publicIP"} & set(made)


def test_inv_231_inv_233_provisioned_at_latches_from_the_first_launch_whatever_the_power_state(
    build: Any,
) -> None:
    assert after(build, {}, powerState=4, status="SHUTOFF")["provisionedAt"] == BOOTED
    assert after(build, {}, status="BUILD")["provisionedAt"] == BOOTED


def test_inv_232_provisioned_at_never_moves_again(build: Any) -> None:
    before = after(build, {})
    for changes in (
        {"launchedAt": "2026-02-02T00:00:00.000Z"},
        {"status": "SHUTOFF", "powerState": 4},
        {"status": "ERROR"},
        {"present": False},
    ):
        assert after(build, before, **changes)["provisionedAt"] == BOOTED
    assert after(build, before, launchedAt="2026-02-02T00:00:00.000Z")["launchedAt"].startswith("2026-02-02")


def test_inv_236_inv_237_inv_238_inv_239_the_mac_is_taken_while_active_and_never_emptied(build: Any) -> None:
    before = after(build, {})
    assert before["macAddress"] == "fa:16:3e:00:00:01"
    assert "macAddress" not in after(build, {}, status="BUILD")
    assert after(build, before, macAddress=None)["macAddress"] == "fa:16:3e:00:00:01"
    assert after(build, before, status="SHUTOFF", macAddress="x")["macAddress"] == "fa:16:3e:00:00:01"
    assert after(build, before, macAddress="fa:16:3e:00:00:02")["macAddress"] == "fa:16:3e:00:00:02"


def test_inv_247_inv_248_errored_follows_the_status_and_nothing_else(build: Any) -> None:
    assert after(build, {}, status="ERROR", fault=None)["observed"]["errored"] is True
    assert after(build, {}, status="ACTIVE", fault={"code": 500})["observed"]["errored"] is False


def test_inv_245_no_fault_reaches_the_status(build: Any) -> None:
    fault = {"code": 500, "message": "marker-in-a-fault", "details": "trace"}
    assert "marker-in-a-fault" not in str(after(build, {}, status="ERROR", fault=fault))


def test_inv_249_inv_250_an_unreadable_image_keeps_the_last_and_stamps_the_generation(build: Any) -> None:
    before = after(build, {})
    for raw in (None, "", "nonsense"):
        observed = after(build, before, image=raw, generation=4, at=4)["observed"]
        assert (observed["image"], observed["readable"], observed["generation"]) == (build.image, False, 4)


def test_the_generation_is_that_of_the_read_not_of_now(build: Any) -> None:
    assert after(build, {}, generation=2, at=5)["observed"]["generation"] == 2
    assert after(build, {}, generation=9, at=5)["observed"]["generation"] == 5


def test_inv_098_q13_absence_clears_errored_keeps_image_and_conditions(build: Any) -> None:
    before = after(build, {}, status="ERROR")
    gone = after(build, before, present=False, generation=1)
    assert gone["observed"]["absent"] is True
    assert gone["observed"]["errored"] is False
    assert gone["observed"]["image"] == build.image
    assert gone["conditions"] == before["conditions"]
    assert {k: v for k, v in gone.items() if k != "observed"} == {
        k: v for k, v in before.items() if k != "observed"
    }


# ---------------------------------------------------------------- wakes


def test_inv_095_inv_102_a_quiet_server_wakes_nobody(build: Any) -> None:
    before = after(build, {})
    assert not wakes(before, after(build, before))
    assert not wakes(before, after(build, before, status="REBUILD", taskState="rebuilding"))
    assert not wakes(before, after(build, before, status="ACTIVE", taskState="migrating"))
    assert not wakes(before, after(build, before, status="SHUTOFF", powerState=4))


def test_q11_generation_alone_wakes_nobody(build: Any) -> None:
    before = after(build, {})
    assert not wakes(before, after(build, before, generation=2, at=2))


def test_inv_097_inv_104_inv_105_inv_106_image_and_errored_wake(build: Any) -> None:
    before = after(build, {})
    failed = after(build, before, status="ERROR")
    assert wakes(before, failed)
    assert wakes(failed, after(build, failed))
    assert wakes(before, after(build, before, image=build.other_image))


def test_inv_100_q3_absence_wakes_once_whatever_the_server_was(build: Any) -> None:
    for state in ("ACTIVE", "ERROR"):
        before = after(build, {}, status=state)
        gone = after(build, before, present=False)
        assert wakes(before, gone)
        assert not wakes(gone, after(build, gone, present=False))


def test_q2_the_first_readable_reference_wakes_even_if_the_image_is_the_old_one(build: Any) -> None:
    before = after(build, {})
    blind = after(build, before, image=None)
    assert wakes(blind, after(build, blind))


def test_inv_063_a_create_that_now_counts_as_failed_wakes(build: Any) -> None:
    first = {"Healthy": texts.unknown(), "Active": texts.active("Building")}
    before = merged({}, {**first, "observed": {"image": build.image, "errored": True}}, build.now)
    failed = after(build, before, status="ERROR", launchedAt=None)
    assert failed["observed"]["errored"] is True
    assert wakes(before, failed), "errored was set already, so only the predicate tells"
