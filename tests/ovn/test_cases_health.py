"""Cases from fault reports about health checks in OVN: shared machines, floating IPs, IPv6 (OC-13, OC-14, OC-15)."""

import pytest

from roadstead.testing.ovn_mirror.ovsdb import as_list

from .building import Built, built
from .machines import Machine, within
from .stack import Stack

SOON = 20.0  # seconds that checks and statuses may take


@pytest.fixture(scope="module")
def servers(stack: Stack) -> tuple[Machine, Machine]:
    scene = stack.scene
    first, second = scene.machine("s1", scene.front), scene.machine("s2", scene.front)
    for machine in (first, second):
        machine.serve(8080)
        machine.serve(8443)
    stack.ovn.settled()
    return first, second


def probes(stack: Stack) -> dict[tuple[str, int], str]:
    """What OVN says of each backend that it checks; an empty text before the first answer."""
    session = stack.ovn.sb()
    try:
        rows = session.select("Service_Monitor", ["ip", "port", "status"])
    finally:
        session.close()
    return {(row["ip"], row["port"]): (as_list(row["status"]) or [""])[0] for row in rows}


def mappings(stack: Stack, made: Built) -> dict[str, str]:
    return {k: v for row in stack.rows_of(made.id) for k, v in row["ip_port_mappings"].items()}


def test_oc_13_a_machine_shared_by_two_pools_is_checked_until_its_last_pool_goes(
    stack: Stack, servers: tuple[Machine, Machine]
) -> None:
    user, address = stack.user, servers[0].address
    first = built(stack, "shared", [(address, 8080)], monitor=True)
    second = built(stack, "shared", [(address, 8443)], port=443, monitor=True, lb=first.lb)
    assert within(SOON, lambda: probes(stack) == {(address, 8080): "online", (address, 8443): "online"})
    assert set(mappings(stack, first)) == {address}
    user.drop(first.id, f"pools/{first.pool}")
    assert set(mappings(stack, first)) == {address}
    stack.ovn.settled()
    assert probes(stack) == {(address, 8443): "online"}
    servers[0].stop_serving(8443)
    try:
        assert within(SOON, lambda: user.operating(first.id)[second.pool] == "ERROR") is not None
    finally:
        servers[0].serve(8443)
    assert within(SOON, lambda: user.operating(first.id)[second.pool] == "ONLINE") is not None
    assert stack.differences(first.id) == {}
    user.drop(first.id, f"pools/{second.pool}")
    assert mappings(stack, first) == {}
    assert stack.differences(first.id) == {}
    user.destroy(first.id)


def test_oc_14_every_floating_ip_has_what_the_vip_has_and_leaves_nothing(
    stack: Stack, servers: tuple[Machine, Machine]
) -> None:
    scene, user = stack.scene, stack.user
    outsider = scene.machine("outsider", scene.outside, v6=False)
    made = built(stack, "public", [(m.address, 8080) for m in servers], monitor=True)
    vip = f"{made.lb['vip_address']}:80"
    floating = scene.floating_ip(made.lb["vip_port_id"])
    outside = f"{floating['floating_ip_address']}:80"
    assert within(SOON, lambda: outside in stack.vips_of(made.id)) is not None
    found = stack.vips_of(made.id)
    assert found[outside] == found[vip] == {f"{m.address}:8080" for m in servers}
    assert checked(stack) == {vip, outside}
    assert within(SOON, lambda: set(probes(stack).values()) == {"online"}) is not None
    servers[1].stop_serving(8080)
    try:
        dead = made.members[servers[1].address, 8080]
        assert within(SOON, lambda: user.operating(made.id)[dead] == "ERROR") is not None
        stack.ovn.settled()
        assert set(outsider.ask(floating["floating_ip_address"], 80, 20)) == {"s1"}
        scene.change("floatingip", floating["id"], port_id=None)
        assert within(SOON, lambda: set(stack.vips_of(made.id)) == {vip}) is not None
        assert checked(stack) == {vip}
        assert "neutron:vip_fip" not in stack.rows_of(made.id)[0]["external_ids"]
        second = scene.floating_ip(made.lb["vip_port_id"])
        outside = f"{second['floating_ip_address']}:80"
        assert within(SOON, lambda: set(stack.vips_of(made.id)) == {vip, outside}) is not None
        assert checked(stack) == {vip, outside}
        stack.ovn.settled()
        assert set(outsider.ask(second["floating_ip_address"], 80, 20)) == {"s1"}
    finally:
        servers[1].serve(8080)
    assert stack.differences(made.id) == {}
    scene.drop("floatingip", second["id"])
    assert within(SOON, lambda: set(stack.vips_of(made.id)) == {vip}) is not None
    user.destroy(made.id)
    assert checked(stack) == set()


def checked(stack: Stack) -> set[str]:
    """Addresses and ports that health checks stand for."""
    session = stack.ovn.nb()
    try:
        return {row["vip"] for row in session.select("Load_Balancer_Health_Check", ["vip"])}
    finally:
        session.close()


def test_oc_15_both_families_are_checked_and_a_repair_touches_only_what_is_wrong(
    stack: Stack, servers: tuple[Machine, Machine]
) -> None:
    user, front = stack.user, stack.scene.front
    plain = built(stack, "plain", [(servers[0].address, 8080)], monitor=True)
    lb = user.balancer(
        name="dual", vip_subnet_id=front.subnet, additional_vips=[{"subnet_id": front.subnet6}]
    )
    both = built(
        stack, "dual", [(m, 8080) for s in servers for m in (s.address, s.address6)], monitor=True, lb=lb
    )
    six = lb["additional_vips"][0]["ip_address"]
    found = stack.vips_of(both.id)
    assert found[f"{lb['vip_address']}:80"] == {f"{s.address}:8080" for s in servers}
    assert found[f"[{six}]:80"] == {f"[{s.address6}]:8080" for s in servers}
    keys = {key: value.rpartition(":[")[2] for key, value in mappings(stack, both).items()}
    assert {key for key in keys if ":" in key} == {f"[{s.address6}]" for s in servers}
    assert all(keys[f"[{s.address6}]"].endswith("]") for s in servers)
    assert within(SOON, lambda: set(user.operating(both.id).values()) == {"ONLINE"}) is not None
    # Rows as an older writer left them: IPv6 mappings without brackets.
    stack.workers[0].stop()
    before = stack.versions()
    damaged = {k.strip("[]"): v.replace("[", "").replace("]", "") for k, v in mappings(stack, both).items()}
    session = stack.ovn.nb()
    session.transact(
        {
            "op": "update", "table": "Load_Balancer", "where": [["name", "==", both.id]],
            "row": {"ip_port_mappings": ["map", [list(pair) for pair in damaged.items()]]},
        }
    )  # fmt: skip
    session.close()
    assert set(stack.differences()) == {both.id}
    stack.workers[0].start()
    assert within(SOON, lambda: stack.differences() == {}) is not None
    repaired = stack.versions()
    changed = {row for row in before if repaired.get(row) != before[row]}
    assert len(changed) == 1
    assert set(repaired) == set(before)
    stack.restart_worker()
    user.change(
        plain.id, f"loadbalancers/{plain.id}", "loadbalancer", name="seen"
    )  # the new process is at work
    after = stack.versions()
    assert {row for row in after if after[row] != repaired[row]} <= own_row(stack, plain)
    for made in (plain, both):
        user.destroy(made.id)


def own_row(stack: Stack, made: Built) -> set[str]:
    session = stack.ovn.nb()
    try:
        return {
            f"Load_Balancer {row['_uuid']}"
            for row in session.select("Load_Balancer", ["_uuid"], [["name", "==", made.id]])
        }
    finally:
        session.close()
