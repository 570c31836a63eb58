"""Facts of one row, and what makes them news."""

from typing import Any

import pytest

from roadstead.testing.passbench import view
from roadstead_monitor.compare import compare, is_news
from roadstead_monitor.facts import facts_of

IMAGE = "33333333-3333-4333-8333-333333333333"
NETWORK = "22222222-2222-4222-8222-222222222222"
SERVER = "44444444-4444-4444-8444-444444444444"
REGION = "11111111-1111-4111-8111-111111111111"
BOOTED, MADE = "2026-01-01T00:01:00.000Z", "2026-01-01T00:00:30.000Z"


def listed(**changes: Any) -> dict[str, Any]:
    nic = {"addr": "192.0.2.9", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"}
    base: dict[str, Any] = {
        "id": "nova-1",
        "name": "web-1",
        "status": "ACTIVE",
        "metadata": {"serverID": SERVER},
        "image": {"id": IMAGE},
        "created": "2026-01-01T00:00:30Z",
        "addresses": {f"network-{NETWORK}": [nic], "elsewhere": [{"OS-EXT-IPS-MAC:mac_addr": "x"}]},
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:power_state": 1,
        "OS-SRV-USG:launched_at": "2026-01-01T00:01:00.000000",
    }
    return {**base, **changes}


OBSERVED = {
    "generation": 1,
    "image": IMAGE,
    "errored": False,
    "absent": False,
    "readable": True,
    "novaStatus": "ACTIVE",
    "powerState": 1,
    "active": "Running",
    "healthy": "Healthy",
}
STATUS: dict[str, Any] = {
    "observed": OBSERVED,
    "launchedAt": BOOTED,
    "provisionedAt": BOOTED,
    "scheduledAt": MADE,
    "macAddress": "fa:16:3e:00:00:01",
    "conditions": [{"type": "Active", "reason": "Running"}, {"type": "Healthy", "reason": "Healthy"}],
}


def known(**changes: Any) -> Any:
    return view(
        "server",
        SERVER,
        REGION,
        spec={"networks": [{"id": NETWORK}], "flavorID": "f-1", "image": {"id": IMAGE}},
        metadata={"name": "web-1", "identityId": "i"},
        status={**STATUS, **changes},
    )


def test_facts_are_put_in_one_spelling() -> None:
    assert facts_of(listed(status="active"), NETWORK, 7) == {
        "generation": 7,
        "status": "ACTIVE",
        "taskState": None,
        "powerState": 1,
        "launchedAt": BOOTED,
        "createdAt": MADE,
        "image": IMAGE,
        "macAddress": "fa:16:3e:00:00:01",
    }


@pytest.mark.parametrize("image", ["", None, "x", {"id": "x"}, {}, 7])
def test_inv_249_an_image_that_cannot_be_read_is_none(image: Any) -> None:
    assert facts_of(listed(image=image), NETWORK, 1)["image"] is None


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"addresses": None, "status": None, "created": "soon", "OS-SRV-USG:launched_at": ""},
        {"addresses": {f"network-{NETWORK}": []}, "OS-EXT-STS:power_state": "on"},
    ],
)
def test_what_is_hidden_or_odd_is_none(row: dict[str, Any]) -> None:
    facts = facts_of(row, NETWORK, 1)
    assert {k: v for k, v in facts.items() if k != "generation"} == dict.fromkeys(set(facts) - {"generation"})


def test_inv_224_inv_225_nothing_but_the_list_row_is_asked_for_a_server_in_build() -> None:
    compared = compare([known()], [listed(status="BUILD")])
    assert [o.facts["status"] for o in compared.news if o.facts] == ["BUILD"]


def test_nothing_is_news_of_a_status_that_says_it_all() -> None:
    assert compare([known()], [listed()]).news == ()


@pytest.mark.parametrize(
    "row",
    [
        {"status": "SHUTOFF"},
        {"OS-EXT-STS:task_state": "rebooting"},
        {"OS-EXT-STS:power_state": 4},
        {"OS-SRV-USG:launched_at": "2026-01-02T00:00:00.000000"},
        {"created": "2026-01-02T00:00:00Z"},
        {"image": {"id": NETWORK}},
        {"image": ""},
        {"addresses": {f"network-{NETWORK}": [{"OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:02"}]}},
    ],
)
def test_any_other_fact_is_news(row: dict[str, Any]) -> None:
    assert len(compare([known()], [listed(**row)]).news) == 1


@pytest.mark.parametrize(
    "status",
    [
        {"observed": None},
        {"provisionedAt": None},
        {"launchedAt": None},
        {"scheduledAt": None},
        {"macAddress": None},
        {"observed": {**OBSERVED, "generation": 0}},
        {"observed": {**OBSERVED, "absent": True}},
        {"observed": {**OBSERVED, "errored": True}},
        {
            "conditions": [
                {"type": "Active", "reason": "Rebuilding"},
                {"type": "Healthy", "reason": "Healthy"},
            ]
        },
        {"conditions": [{"type": "Active", "reason": "Running"}, {"type": "Healthy", "reason": "Unknown"}]},
    ],
)
def test_a_status_that_is_behind_makes_the_same_facts_news(status: dict[str, Any]) -> None:
    assert len(compare([known(**status)], [listed()]).news) == 1


def test_inv_237_inv_238_a_mac_is_no_news_while_it_would_not_be_taken() -> None:
    building = {**OBSERVED, "novaStatus": "BUILD", "active": "Running"}
    facts = facts_of(listed(status="BUILD"), NETWORK, 1)
    assert not is_news(known(macAddress="old", observed=building), facts)
    bare = facts_of(listed(addresses={}), NETWORK, 1)
    assert not is_news(known(), bare)


def test_ours_is_by_metadata_whatever_the_name() -> None:
    other = listed(name="web-1", metadata={})
    (news,) = compare([known()], [other]).news
    assert news.facts is None, "a server of that name without our id is not ours, so ours is absent"
    assert compare([known()], [other, listed(name="renamed")]).news == ()


def test_the_envelope_carries_when_the_read_began() -> None:
    from roadstead.clock import parse_time

    (news,) = compare([known(observed=None)], [listed()]).news
    body = news.body(parse_time(MADE), "sweep-1")
    assert {
        k: body[k] for k in ("present", "readStartedAt", "sweep", "knownResourceVersion", "generation")
    } == {
        "present": True,
        "readStartedAt": MADE,
        "sweep": "sweep-1",
        "knownResourceVersion": 1,
        "generation": 1,
    }
    (gone,) = compare([known()], []).news
    assert gone.body(parse_time(MADE), "s") == {
        "present": False,
        "readStartedAt": MADE,
        "sweep": "s",
        "knownResourceVersion": 1,
        "generation": 1,
    }


def test_inv_240_only_the_turn_into_error_asks_for_a_look() -> None:
    (turned,) = compare([known()], [listed(status="ERROR")]).news
    assert turned.fails
    stays = {**OBSERVED, "errored": True, "novaStatus": "ERROR"}
    again = listed(**{"status": "ERROR", "OS-EXT-STS:task_state": "deleting"})
    (other,) = compare([known(observed=stays)], [again]).news
    assert not other.fails, "news for another reason, but no turn"


DRIFT: list[dict[str, Any] | None] = [None, {"status": "ERROR"}, {"image": {"id": NETWORK}}]


@pytest.mark.parametrize("row", DRIFT, ids=["absent", "error", "image"])
def test_inv_106_inv_098_what_contradicts_a_provisioned_status_is_news_however_often_it_was_read(
    row: dict[str, Any] | None,
) -> None:
    there = [listed(**row)] if row is not None else []
    facts = facts_of(there[0], NETWORK, 1) if there else {}
    observed = {
        **OBSERVED,
        "absent": not there,
        "errored": facts.get("status") == "ERROR",
        "novaStatus": facts.get("status", "ACTIVE"),
        "image": facts.get("image", IMAGE),
    }
    parked = known(observed=observed, provisioningStatus="error")
    assert compare([parked], there).news == (), "nobody claims anything"
    assert len(compare([known(observed=observed)], there).news) == 1
    edited = known(observed=observed, observedGeneration=0)
    assert compare([edited], there).news == (), "the newest spec is not claimed to be realized"


@pytest.mark.parametrize("there", [[], [listed()]], ids=["absent", "recovered"])
def test_inv_097_inv_100_what_contradicts_a_park_is_news_though_no_look_saw_its_error(
    there: list[dict[str, Any]],
) -> None:
    observed = {**OBSERVED, "absent": not there}
    parked = known(observed=observed, provisioningStatus="error", code="REBUILD_CONVERGED_ERROR")
    assert len(compare([parked], there).news) == 1
    still = {**OBSERVED, "errored": True, "novaStatus": "ERROR"}
    consistent = known(observed=still, provisioningStatus="error", code="REBUILD_CONVERGED_ERROR")
    assert compare([consistent], [listed(status="ERROR")]).news == ()
