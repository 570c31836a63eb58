"""The original provider and this worker on one database: rows are taken over in both directions while a connection stays open."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.octavia.people import SERVICE_PASSWORD

from .building import MONITOR, built
from .lbaas import Json
from .machines import Machine, within
from .original.process import NotHere, Original, install
from .stack import Stack

SOON = 20.0


@pytest.fixture(scope="module")
def original(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """With its agent, on the stack's OVN, and on the same simulated Neutron."""
    try:
        install()
    except NotHere as reason:
        pytest.skip(str(reason))
    neutron = {
        "auth_type": "password", "auth_url": stack.auth_url, "username": "octavia", "password": SERVICE_PASSWORD,
        "project_name": "service", "user_domain_id": "default", "project_domain_id": "default",
        "region_name": stack.cloud.settings.region_name,
    }  # fmt: skip
    made = Original(
        tmp_path_factory.mktemp("original"), stack.ovn.northbound, stack.ovn.southbound,
        neutron=neutron, agent=True,
    )  # fmt: skip
    yield made.start()
    made.stop()


@pytest.fixture(scope="module")
def servers(stack: Stack) -> tuple[Machine, Machine, Machine]:
    scene = stack.scene
    found = (
        scene.machine("s1", scene.front),
        scene.machine("s2", scene.front),
        scene.machine("client", scene.front),
    )
    for machine in found[:2]:
        machine.serve(8080)
    stack.ovn.settled()
    return found


@pytest.fixture(autouse=True)
def _our_worker_runs(stack: Stack) -> None:
    """A test that failed may have left it stopped."""
    if not stack.workers[0].is_running:
        stack.workers[0].start()


def plain_rows(stack: Stack, load_balancer_id: str) -> list[Json]:
    """Its rows, keys of ours aside, and texts that hold lists in one order."""
    rows = stack.rows_of(load_balancer_id)
    for row in rows:
        row["external_ids"] = {
            key: ",".join(sorted(value.split(","))) if key.startswith("pool_") else value
            for key, value in row["external_ids"].items()
            if not key.startswith("roadstead:")
        }
        row["vips"] = {key: ",".join(sorted(value.split(","))) for key, value in row["vips"].items()}
    return sorted(rows, key=lambda row: str(row["protocol"]))


def tree_of(stack: Stack, load_balancer_id: str) -> Json:
    """What the API says of it to its provider, as data models."""
    found: Json = _plain(stack.tree(load_balancer_id)["loadbalancer"])
    return found


def _plain(value: Any) -> Any:
    """Without the marks of the models' types."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "$type"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def forget_rows(stack: Stack, load_balancer_id: str) -> None:
    """Take its rows out of the database, wherever they hang."""
    session = stack.ovn.nb()
    try:
        session.transact(
            {"op": "delete", "table": "Load_Balancer", "where": [["name", "==", load_balancer_id]]}
        )
    finally:
        session.close()


def make_by_original(original: Original, tree: Json) -> None:
    """The calls that its API would have made, one object after the other."""
    lb = {key: value for key, value in tree.items() if key not in ("listeners", "pools")}
    steps: list[tuple[str, str, dict[str, Any]]] = [("loadbalancer_create", "LoadBalancer", lb)]
    steps += [
        (
            "listener_create",
            "Listener",
            {k: v for k, v in one.items() if k not in ("default_pool", "default_pool_id")},
        )
        for one in tree["listeners"]
    ]
    for pool in tree["pools"]:
        bare = {key: value for key, value in pool.items() if key not in ("members", "healthmonitor")}
        using = [
            one["listener_id"] for one in tree["listeners"] if one.get("default_pool_id") == pool["pool_id"]
        ]
        steps.append(("pool_create", "Pool", {**bare, "listener_id": using[0] if using else None}))
        steps += [("member_create", "Member", {**one, "pool_id": pool["pool_id"]}) for one in pool["members"]]
        if pool.get("healthmonitor"):
            steps.append(
                (
                    "health_monitor_create",
                    "HealthMonitor",
                    {**pool["healthmonitor"], "pool_id": pool["pool_id"]},
                )
            )
    for method, kind, values in steps:
        answer = original.call(method, kind, values)
        assert answer.error is None, (method, answer.error)


def test_rows_of_the_original_are_taken_over_without_a_difference_and_a_connection_stays(
    stack: Stack, original: Original, servers: tuple[Machine, Machine, Machine]
) -> None:
    client = servers[2]
    made = built(stack, "taken", [(s.address, 8080) for s in servers[:2]], monitor=True)
    ours = plain_rows(stack, made.id)
    tree = tree_of(stack, made.id)
    # The world before the change: the same load balancer, made by the original while our worker does not exist.
    stack.workers[0].stop()
    forget_rows(stack, made.id)
    original.ask("know", tree=tree)
    make_by_original(original, tree)
    theirs = plain_rows(stack, made.id)
    stack.ovn.settled()
    assert [row["vips"] for row in theirs] == [row["vips"] for row in ours]
    assert stack.differences(made.id) == {}
    with client.connect(made.lb["vip_address"], 80) as connection:
        stack.workers[0].start()
        stack.user.change(made.id, f"loadbalancers/{made.id}", "loadbalancer", description="ours now")
        # The probes began anew with the original's rows: until they have an answer, what they say of members may move.
        assert within(SOON, lambda: plain_rows(stack, made.id) == theirs) is not None
        assert stack.differences(made.id) == {}
        stack.ovn.settled()
        assert connection.echoes()
        third = stack.user.member(
            made.id,
            made.pool,
            address=servers[0].address,
            protocol_port=8090,
            subnet_id=stack.scene.front.subnet,
        )
        stack.ovn.settled()
        assert connection.echoes()
        stack.user.drop(made.id, f"pools/{made.pool}/members/{third['id']}")
        assert connection.echoes()
    stack.user.destroy(made.id)
    assert stack.rows_of(made.id) == []


def test_rows_of_ours_are_accepted_by_the_original_and_a_connection_stays(
    stack: Stack, original: Original, servers: tuple[Machine, Machine, Machine]
) -> None:
    client = servers[2]
    made = built(stack, "handed", [(s.address, 8080) for s in servers[:2]])
    before = plain_rows(stack, made.id)
    tree = tree_of(stack, made.id)
    stack.workers[0].stop()
    original.ask("know", tree=tree)
    with client.connect(made.lb["vip_address"], 80) as connection:
        # Its repair finds nothing to do that a client would see.
        answer = original.ask("sync")
        assert (answer.error, statuses(answer.statuses, "loadbalancers")) == (None, {"ACTIVE"})
        after = plain_rows(stack, made.id)
        assert [row["vips"] for row in after] == [row["vips"] for row in before]
        assert [row["external_ids"] for row in after] == [row["external_ids"] for row in before]
        stack.ovn.settled()
        assert connection.echoes()
        # It goes on from there: a member more, a member less, off and on.
        extra = {
            "member_id": "11111111-0000-4000-8000-000000000001", "pool_id": made.pool, "address": servers[0].address,
            "protocol_port": 8090, "subnet_id": stack.scene.front.subnet, "admin_state_up": True,
        }  # fmt: skip
        added = original.call("member_create", "Member", extra)
        assert (added.error, statuses(added.statuses, "members")) == (None, {"ACTIVE"})
        vip = f"{made.lb['vip_address']}:80"
        assert f"{servers[0].address}:8090" in stack.vips_of(made.id)[vip]
        removed = original.call("member_delete", "Member", extra)
        assert (removed.error, statuses(removed.statuses, "members")) == (None, {"DELETED"})
        assert stack.vips_of(made.id) == {vip: {f"{s.address}:8080" for s in servers[:2]}}
        stack.ovn.settled()
        assert connection.echoes()
        hm = {"healthmonitor_id": "11111111-0000-4000-8000-000000000002", "pool_id": made.pool, **MONITOR}
        original.ask("know", tree={**tree, "pools": [{**p, "healthmonitor": hm} for p in tree["pools"]]})
        watched = original.call("health_monitor_create", "HealthMonitor", {**hm, "admin_state_up": True})
        assert (watched.error, statuses(watched.statuses, "healthmonitors")) == (None, {"ACTIVE"})
        assert original.call("health_monitor_delete", "HealthMonitor", hm).error is None
        stack.ovn.settled()
        assert connection.echoes()
    # Back again: our worker finds its rows as it wants them, or makes them so.
    stack.workers[0].start()
    assert within(SOON, lambda: stack.differences(made.id) == {}) is not None
    assert stack.vips_of(made.id) == {vip: {f"{s.address}:8080" for s in servers[:2]}}
    gone = original.ask("know", tree=tree)
    assert gone.error is None
    stack.user.destroy(made.id)


def statuses(messages: list[Json], kind: str) -> set[str]:
    """Provisioning statuses that messages gave to objects of that kind."""
    return {one["provisioning_status"] for message in messages for one in message.get(kind, ())}


def test_a_load_balancer_of_ours_is_deleted_by_the_original(stack: Stack, original: Original) -> None:
    made = built(stack, "left to it", [("10.50.1.240", 80)])
    tree = tree_of(stack, made.id)
    stack.workers[0].stop()
    original.ask("know", tree=tree)
    answer = original.call("loadbalancer_delete", "LoadBalancer", tree, cascade=True)
    assert (answer.error, statuses(answer.statuses, "loadbalancers")) == (None, {"DELETED"})
    assert stack.rows_of(made.id) == []
    stack.workers[0].start()
    stack.user.destroy(made.id)
