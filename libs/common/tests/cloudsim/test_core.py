"""The machinery: clock, faults, log, settings, admin API, changes by somebody else, reset, dump."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Fault, Outcome, Response, Stage, request, stage


def admin(cloud: Cloud, method: str, path: str, body: Any = None) -> Response:
    return cloud.handle(request(method, f"/admin/{path}", body))


def networks(world: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.privileged.call("network", "GET", "/v2.0/networks")["networks"]
    return found


class HandClock:
    """A clock moved by hand, as the simulation harness has one."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def test_changes_happen_in_time_order_at_the_moment_they_were_due() -> None:
    clock = HandClock()
    cloud = Cloud(clock)
    seen: list[tuple[str, float]] = []

    def note(name: str) -> None:
        seen.append((name, (cloud.now - datetime(2030, 1, 1, tzinfo=UTC)).total_seconds()))

    def early() -> None:
        note("early")
        cloud.later(1, lambda: note("chained"))

    cloud.later(3, lambda: note("late"))
    cloud.later(1, early)
    cloud.later(1, lambda: note("second"))
    cloud.settle()
    assert seen == []
    clock.seconds = 10
    cloud.settle()
    assert seen == [("early", 1), ("second", 1), ("chained", 2), ("late", 3)]
    assert cloud.next_change() is None


def test_the_harness_clock_drives_a_boot() -> None:
    clock = HandClock()
    world = stage(Cloud(clock))
    server_id = world.boot()
    assert world.server(server_id)["status"] == "BUILD"
    clock.seconds += 60
    server = world.server(server_id)
    assert server["status"] == "ACTIVE"
    # It was launched when it was due, not when somebody looked.
    assert server["OS-SRV-USG:launched_at"] < "2030-01-01T00:00:10"


def test_a_frozen_clock_moves_by_advance_alone_and_thaws_without_a_jump() -> None:
    cloud = Cloud()
    cloud.clock.freeze()
    at = cloud.now
    cloud.advance(100)
    assert cloud.now - at == timedelta(seconds=100)
    assert cloud.now == cloud.now
    cloud.clock.thaw()
    with pytest.raises(ValueError, match="cannot be moved back"):
        cloud.advance(-1)


def test_rest_gives_up_on_a_cloud_that_never_rests() -> None:
    cloud = Cloud()
    cloud.clock.freeze()

    def again() -> None:
        cloud.later(10, again)

    again()
    with pytest.raises(RuntimeError, match="still changing"):
        cloud.rest(limit=100)


@pytest.mark.parametrize(
    ("kind", "status", "no_answer", "made"),
    [
        ("status", 503, False, False),
        ("status_after", 503, False, True),
        ("no_answer_before", 0, True, False),
        ("no_answer_after", 201, True, True),
        ("wrong_cloud", 201, False, False),
    ],
)
def test_a_fault_decides_answer_and_effect(
    world: Stage, kind: str, status: int, no_answer: bool, made: bool
) -> None:
    before = len(networks(world))
    world.cloud.faults.add(Fault(kind, service="network", method="POST", headers={"Retry-After": "7"}))
    response = world.privileged.send("network", "POST", "/v2.0/networks", {"network": {"name": "n"}})
    assert (response.status, response.no_answer) == (status, no_answer)
    assert response.headers.get("Retry-After") == ("7" if status == 503 else None)
    assert len(networks(world)) == before + made
    call = world.cloud.log.calls(service="network", method="POST")[-1]
    assert (call.fault, call.took_effect, call.no_answer) == (kind, made, no_answer)
    # Used up: the next call goes its normal way.
    world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": "n"}}, want=201)


def test_lists_come_back_empty_partial_or_from_another_cloud(world: Stage) -> None:
    for name in ("a", "b"):
        world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": name}})
    full = len(networks(world))
    for kind, rows in (("empty_list", 0), ("partial_list", 1), ("wrong_cloud", full - 2)):
        world.cloud.faults.add(Fault(kind, service="network", path="/networks$"))
        assert len(networks(world)) == rows
    assert len(networks(world)) == full


def test_a_slow_answer_carries_its_delay_and_the_effect(world: Stage) -> None:
    world.cloud.faults.add(Fault("slow", service="network", delay=2.5))
    response = world.privileged.send("network", "GET", "/v2.0/networks")
    assert (response.status, response.delay) == (200, 2.5)


@pytest.mark.parametrize(
    "criteria",
    [
        {"service": "compute"}, {"method": "POST"}, {"path": "/subnets"}, {"body": "needle"}, {"user": "nobody"},
        {"scope": "domain"}, {"project_id": "other"}, {"probability": 0.0},
    ],
)  # fmt: skip
def test_a_fault_leaves_calls_alone_that_it_does_not_match(world: Stage, criteria: dict[str, Any]) -> None:
    world.cloud.faults.add(Fault("status", **criteria))
    world.privileged.call("network", "GET", "/v2.0/networks", want=200)


def test_a_fault_counts_skips_and_times(world: Stage) -> None:
    world.cloud.faults.add(
        Fault("status", service="network", skip=1, times=2, status=500, user="stage-provider")
    )
    statuses = [world.privileged.send("network", "GET", "/v2.0/networks").status for _ in range(5)]
    assert statuses == [200, 500, 500, 200, 200]


def test_a_fault_without_an_end_stays_until_removed(world: Stage) -> None:
    fault_id = world.cloud.faults.add(Fault("status", service="network", times=None))
    assert [world.privileged.send("network", "GET", "/v2.0/networks").status for _ in range(3)] == [503] * 3
    assert world.cloud.faults.remove(fault_id)
    assert not world.cloud.faults.remove(fault_id)
    world.privileged.call("network", "GET", "/v2.0/networks", want=200)


def test_unknown_kinds_and_bad_expressions_are_refused_when_made() -> None:
    with pytest.raises(ValueError, match="fault kind 'nope'"):
        Fault("nope")
    with pytest.raises(ValueError, match="no regular expression"):
        Fault("status", path="(")
    with pytest.raises(ValueError, match="outcome kind 'nope'"):
        Outcome("nope")


def test_the_log_knows_who_called_in_which_scope_and_hides_secrets(world: Stage) -> None:
    body = {"user": {"name": "u", "domain_id": world.domain_id, "password": "hunter2"}}
    made = world.domain.send("identity", "POST", "/v3/users", body)
    call = world.cloud.log.calls(service="identity", path="/users$", method="POST")[-1]
    assert (call.user_name, call.scope, call.domain_id, call.status) == (
        "stage-provider", "domain", world.domain_id, 201,
    )  # fmt: skip
    assert call.request_id == made.headers["X-Openstack-Request-Id"]
    assert "manager" in call.roles
    everything = str([c.as_json() for c in world.cloud.log])
    assert "hunter2" not in everything
    assert world.principal.token not in everything


def test_log_queries_narrow_by_each_criterion(world: Stage) -> None:
    start = world.cloud.sequence + 1
    world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": "needle"}})
    world.privileged.call("network", "GET", "/v2.0/networks")
    world.principal.send("network", "GET", "/v2.0/nowhere")
    log = world.cloud.log
    assert len(log.calls(since=start)) == 3
    assert [c.method for c in log.calls(since=start, body="needle")] == ["POST"]
    assert [c.path for c in log.calls(since=start, status=404)] == ["/network/v2.0/nowhere"]
    assert len(log.calls(since=start, user="stage-provider", scope="project")) == 2
    assert [c.method for c in log.writes(since=start)] == ["POST"]
    log.clear()
    assert len(log) == 0


def test_authentication_is_no_write(world: Stage) -> None:
    mine = list(world.cloud.log.calls(path="auth/tokens"))
    assert mine
    assert not [c for c in world.cloud.log.writes() if c.path.endswith("auth/tokens")]


def test_the_admin_api_sets_faults_and_outcomes(world: Stage) -> None:
    cloud = world.cloud
    made = admin(
        cloud, "POST", "faults", {"kind": "status", "service": "network", "status": 500, "times": None}
    )
    assert made.status == 200
    world.privileged.call("network", "GET", "/v2.0/networks", want=500)
    assert admin(cloud, "GET", "faults").body["faults"][0]["hits"] == 1
    assert admin(cloud, "DELETE", f"faults/{made.body['id']}").status == 204
    assert admin(cloud, "DELETE", f"faults/{made.body['id']}").status == 404
    admin(cloud, "POST", "faults", {"outcome": {"kind": "server_build", "name": "web"}})
    assert world.server(world.settled())["status"] == "ERROR"
    admin(cloud, "POST", "faults", {"kind": "status", "times": None})
    admin(cloud, "DELETE", "faults")
    world.privileged.call("network", "GET", "/v2.0/networks", want=200)
    for bad in ({"kind": "nope"}, {"kind": "status", "nope": 1}, {}, {"outcome": 7}):
        refused = admin(cloud, "POST", "faults", bad)
        assert (refused.status, list(refused.body)) == (400, ["error"])


def test_the_admin_api_reads_the_log(world: Stage) -> None:
    world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": "n"}})
    found = admin(world.cloud, "GET", "log?service=network&writes=1").body
    assert [call["path"] for call in found["calls"]] == ["/network/v2.0/networks"]
    assert found["sequence"] == world.cloud.sequence
    assert admin(world.cloud, "GET", "log?nope=1").status == 400
    admin(world.cloud, "DELETE", "log")
    assert admin(world.cloud, "GET", "log").body["calls"] == []


def test_the_admin_api_moves_the_clock(world: Stage) -> None:
    server_id = world.boot()
    assert admin(world.cloud, "GET", "clock").body["frozen"] is True
    assert admin(world.cloud, "POST", "clock", {"advance": 0.1}).body["next_change"] == pytest.approx(0.1)
    assert admin(world.cloud, "POST", "clock", {"rest": True}).body["next_change"] is None
    assert world.server(server_id)["status"] == "ACTIVE"
    assert admin(world.cloud, "POST", "clock", {"freeze": False}).body["frozen"] is False
    for bad in ({"advance": -1}, {"nope": 1}, {"advance": "x"}):
        assert admin(world.cloud, "POST", "clock", bad).status == 400


def test_the_admin_api_changes_settings(world: Stage) -> None:
    change = {
        "name_filter": "fuzzy",
        "durations": {"server_spawn": 60},
        "policy": "stock",
        "lb_providers": ["x"],
    }
    shown = admin(world.cloud, "POST", "settings", change).body
    assert (shown["name_filter"], shown["durations"]["server_spawn"]) == ("fuzzy", 60)
    assert (shown["policy_overrides"], world.cloud.settings.lb_providers) == ([], ("x",))
    assert shown["admin_password"] == "***"
    for bad in (
        {"nope": 1}, {"name_filter": "x"}, {"durations": {"x": 1}}, {"list_shows_fault": 7}, {"policy": "x"}, {"compute_hosts": "abc"},
        {"durations": 7},
    ):  # fmt: skip
        assert admin(world.cloud, "POST", "settings", bad).status == 400


def test_inv_313_with_the_switch_every_list_filters_by_prefix_and_expression(world: Stage) -> None:
    for name in ("net-a", "net-ab"):
        world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": name}})
    world.volume("vol-a")
    world.volume("vol-ab")

    def found(caller: Any, service: str, path: str, key: str) -> list[str]:
        return sorted(row["name"] for row in caller.call(service, "GET", path)[key])

    volumes = f"/v3/{world.project_id}/volumes"
    assert found(world.privileged, "network", "/v2.0/networks?name=NET-A", "networks") == ["net-a"]
    assert found(world.principal, "volume", f"{volumes}?name=vol-a", "volumes") == ["vol-a"]
    world.cloud.settings.name_filter = "fuzzy"
    assert found(world.privileged, "network", "/v2.0/networks?name=net-a", "networks") == ["net-a", "net-ab"]
    assert found(world.privileged, "network", "/v2.0/networks?name=^net-a$", "networks") == ["net-a"]
    assert found(world.principal, "volume", f"{volumes}?name=vol-a", "volumes") == ["vol-a", "vol-ab"]


def test_changes_by_somebody_else_are_not_in_the_log(world: Stage) -> None:
    server_id = world.settled()
    before = len(world.cloud.log)
    body = {
        "service": "compute",
        "verb": "set",
        "id": server_id,
        "values": {"vm_state": "paused", "name": "other"},
    }
    assert admin(world.cloud, "POST", "foreign", body).body["status"] == "PAUSED"
    assert len(world.cloud.log) == before
    assert world.server(server_id)["name"] == "other"
    world.cloud.foreign("compute", "delete", server_id)
    world.principal.call("compute", "GET", f"/v2.1/servers/{server_id}", want=404)
    for bad, status in (
        ({"service": "nope"}, 400),
        (body | {"verb": "nope"}, 404),
        (body, 404),
        ({"service": "identity", "verb": "delete_user", "id": "x"}, 404),
    ):
        assert admin(world.cloud, "POST", "foreign", bad).status == status


@pytest.mark.parametrize(
    ("values", "text"),
    [({"nope": 1}, "no field 'nope'"), ({"vm_state": "nope"}, "vm_state 'nope' is unknown")],
)
def test_a_foreign_change_that_cannot_be_is_refused(world: Stage, values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        world.cloud.foreign("compute", "set", world.settled(), **values)


def test_keystone_changes_by_somebody_else(world: Stage) -> None:
    world.cloud.foreign("identity", "disable_project", world.project_id)
    world.principal.call("identity", "GET", "/v3/auth/projects", want=401)
    world.cloud.foreign("identity", "delete_user", world.user_id)
    world.domain.call("identity", "GET", f"/v3/users/{world.user_id}", want=403)


def test_dump_counts_what_there_is_and_reset_takes_it_away(world: Stage) -> None:
    world.settled("mine")
    dump = admin(world.cloud, "GET", "dump").body
    assert dump["compute"]["servers"]["count"] == 1
    assert dump["compute"]["servers"]["objects"][0]["name"] == "mine"
    assert "stage-identity" in [p["name"] for p in dump["identity"]["projects"]["objects"]]
    world.cloud.faults.add(Fault("status"))
    admin(world.cloud, "POST", "reset", {"settings": True})
    dump = admin(world.cloud, "GET", "dump").body
    assert (dump["compute"]["servers"]["count"], len(world.cloud.log)) == (0, 0)
    assert [p["name"] for p in dump["identity"]["projects"]["objects"]] == ["admin"]
    assert admin(world.cloud, "GET", "faults").body == {"faults": [], "outcomes": []}


def test_paths_that_lead_nowhere_say_so(world: Stage) -> None:
    assert world.cloud.handle(request("GET", "/nope/x")).status == 404
    assert "compute" in world.cloud.handle(request("GET", "/")).body["services"]
    assert admin(world.cloud, "GET", "nope").status == 404
    assert world.principal.send("compute", "GET", "/v2.1/nope").status == 404
    assert world.principal.send("compute", "PATCH", "/v2.1/servers").status == 405


@pytest.mark.parametrize(("version", "status"), [("1.39", 200), ("1.40", 406), ("2.0", 406), ("x", 400)])
def test_placement_has_a_version_document_and_versions(world: Stage, version: str, status: int) -> None:
    body = world.privileged.call("placement", "GET", "/", want=status, version=version)
    assert ("versions" in body) is (status == 200)
