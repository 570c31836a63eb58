"""What the port to the Northbound database promises, on the model and on a real server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.conformance_ovn import laying
from tests.conformance_ovn.server import MISSING, Ovn, is_installed, running

from roadstead_ovn.balancer import Balancer, balancer_of
from roadstead_ovn.facts import Subnet
from roadstead_ovn.health import Standing, health_of
from roadstead_ovn.northbound.port import Conflict, Found, Source, Superseded, Unready, Wake, Written
from roadstead_ovn.render import render
from roadstead_ovn.rows import OURS, SwitchPort, Wanted

from .grounds import SUBNETS, Ground, ModelGround, real_ground, world
from .shapes import listener, member, monitor, pool, tree

REAL = pytest.param("real", marks=[pytest.mark.ovn, pytest.mark.skipif(not is_installed(), reason=MISSING)])


@pytest.fixture(scope="module")
def ovn() -> Iterator[Ovn]:
    with running(OVN_NORTHD="0") as ovn:
        yield ovn


@pytest.fixture(params=["model", REAL])
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    if request.param == "model":
        made: Ground = ModelGround()
        lay(made)
        yield made
    else:
        async with real_ground(request.getfixturevalue("ovn")) as real:
            lay(real)
            await seen(real, "vm-198.51.100.10")
            yield real


def lay(ground: Ground) -> None:
    for operations in world():
        ground.transact(*operations)
    ground.northbound.remember(SUBNETS)


async def seen(ground: Ground, port: str) -> None:
    """Until the copy has that port, and all that was written before it."""
    wanted = Wanted(switch_ports={port: SwitchPort(())})
    for _ in range(1000):
        if port in ground.northbound.found("any", wanted).addresses:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{port} has not come in 5 s")


def wish(members: int = 1, **more: Any) -> dict[str, Any]:
    places = [("192.0.2.10", "sub-a"), ("198.51.100.10", "sub-b"), ("192.0.2.11", "sub-a")]
    listed = [member(f"m{n}", a, subnet=s) for n, (a, s) in enumerate(places[:members])]
    made = tree([listener()], [pool(members=listed, **more)])
    made["loadbalancer"] |= {"vip_port_id": "vip", "vip_network_id": "net-a", "vip_subnet_id": "sub-a"}
    return made


def balancer(json: dict[str, Any], revision: int = 7) -> Balancer:
    made = balancer_of({**json, "revision": revision})
    assert made is not None
    return made


def look(ground: Ground, what: Balancer) -> tuple[Wanted, Found]:
    around = ground.northbound.facts(what)
    wanted = render(what, replace(around, subnets=subnets()))
    return wanted, ground.northbound.found(what.id, wanted)


async def written(ground: Ground, what: Balancer) -> Written:
    wanted, found = look(ground, what)
    return await ground.northbound.write(what.id, what.revision, wanted, found)


async def wakes(ground: Ground, seconds: float = 2.0) -> list[Wake]:
    async with asyncio.timeout(seconds):
        return list(await ground.northbound.wakes())


async def silence(ground: Ground) -> None:
    try:
        woken = await wakes(ground, 0.15)
    except TimeoutError:
        return
    raise AssertionError(woken)


async def drain(ground: Ground) -> None:
    """What the laying of the world and the like woke."""
    while True:
        try:
            await wakes(ground, 0.1)
        except TimeoutError:
            return


async def test_rows_are_written_once_and_the_next_look_sees_them(ground: Ground) -> None:
    lb = balancer(wish())
    assert await written(ground, lb) == Written(1, 2)  # the row, and the addresses of the VIP's switch port
    assert await written(ground, lb) == Written(0, 0)
    (row,) = ground.select("Load_Balancer")
    assert row["vips"] == {"192.0.2.5:80": "192.0.2.10:80"}
    assert row["external_ids"]["roadstead:revision"] == "7"
    assert ground.northbound.known() == {"lb": 7}
    (port,) = [x for x in ground.select("Logical_Switch_Port") if x["name"] == "vip"]
    assert not port["addresses"]
    assert hanging(ground, "Logical_Switch") == {"neutron-net-a", "neutron-net-b"}
    assert hanging(ground, "Logical_Router") == {"neutron-r1"}


def hanging(ground: Ground, table: str) -> set[str]:
    return {row["name"] for row in ground.select(table) if row["load_balancer"]}


async def test_a_newer_revision_is_written_and_an_older_one_refused(ground: Ground) -> None:
    await written(ground, balancer(wish(), 7))
    assert await written(ground, balancer(wish(), 8)) == Written(1, 1)
    with pytest.raises(Superseded, match="revision 8"):
        await written(ground, balancer(wish(2), 7))
    assert ground.northbound.known() == {"lb": 8}
    (row,) = ground.select("Load_Balancer")
    assert row["vips"] == {"192.0.2.5:80": "192.0.2.10:80"}


async def test_what_changed_since_it_was_read_is_not_overwritten(ground: Ground) -> None:
    await written(ground, balancer(wish()))
    wanted, found = look(ground, balancer(wish(2)))
    change = [["options", "insert", laying.as_map({"reject": "true"})]]
    ground.transact({"op": "mutate", "table": "Load_Balancer", "where": [], "mutations": change})
    with pytest.raises(Conflict):
        await ground.northbound.write("lb", 7, wanted, found)
    (row,) = ground.select("Load_Balancer")
    assert row["vips"] == {"192.0.2.5:80": "192.0.2.10:80"}
    await asyncio.sleep(0.05)
    assert (await written(ground, balancer(wish(2)))).transactions == 1
    (row,) = ground.select("Load_Balancer")
    assert row["options"] == {}


async def test_of_two_that_make_a_row_at_once_one_succeeds(ground: Ground) -> None:
    wanted, found = look(ground, balancer(wish()))
    results = await asyncio.gather(
        *(ground.northbound.write("lb", 7, wanted, found) for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == ["Conflict", "Written"]
    assert len(ground.select("Load_Balancer")) == 1


async def test_a_row_that_lost_its_switch_gets_it_back(ground: Ground) -> None:
    lb = balancer(wish())
    await written(ground, lb)
    await drain(ground)
    handle = ground.select("Load_Balancer")[0]["_uuid"]
    mutation = ["load_balancer", "delete", ["set", [["uuid", handle]]]]
    ground.transact(
        {
            "op": "mutate",
            "table": "Logical_Switch",
            "where": [["name", "==", "neutron-net-a"]],
            "mutations": [mutation],
        }
    )
    assert await wakes(ground) == [Wake(Source.ROWS, frozenset({"lb"}))]
    assert await written(ground, lb) == Written(1, 1)
    assert hanging(ground, "Logical_Switch") == {"neutron-net-a", "neutron-net-b"}


async def test_health_checks_come_stay_and_go_with_their_row(ground: Ground) -> None:
    await written(ground, balancer(wish(healthmonitor=monitor())))
    (check,) = ground.select("Load_Balancer_Health_Check")
    assert check["options"]["interval"] == "5"
    await written(ground, balancer(wish(2, healthmonitor=monitor())))
    assert [x["_uuid"] for x in ground.select("Load_Balancer_Health_Check")] == [check["_uuid"]]
    await written(ground, balancer(wish(2, healthmonitor=monitor(delay=9))))
    (later,) = ground.select("Load_Balancer_Health_Check")
    assert later["options"]["interval"] == "9"
    await written(ground, balancer(wish(2)))
    assert ground.select("Load_Balancer_Health_Check") == []


async def test_nothing_wanted_takes_everything_away(ground: Ground) -> None:
    await written(ground, balancer(wish(healthmonitor=monitor())))
    gone = await ground.northbound.write("lb", 8, Wanted(), ground.northbound.found("lb", Wanted()))
    assert gone == Written(1, 1)
    assert ground.select("Load_Balancer") == ground.select("Load_Balancer_Health_Check") == []
    assert hanging(ground, "Logical_Switch") == hanging(ground, "Logical_Router") == set()
    assert ground.northbound.known() == {}
    assert await ground.northbound.write("lb", 8, Wanted(), Found()) == Written(0, 0)


async def test_a_bare_row_gets_the_first_protocol_and_loses_the_last(ground: Ground) -> None:
    bare = wish()
    bare["loadbalancer"] |= {"listeners": [], "pools": []}
    await written(ground, balancer(bare, 1))
    handle = ground.select("Load_Balancer")[0]["_uuid"]
    await written(ground, balancer(wish(), 2))
    await written(ground, balancer(bare, 3))
    (row,) = ground.select("Load_Balancer")
    assert row["_uuid"] == handle
    assert row["protocol"] in (None, [])
    assert not [key for key in row["external_ids"] if key.startswith(("listener_", "pool_"))]


async def test_rows_of_another_writer_are_taken_over_by_our_key_alone(ground: Ground) -> None:
    lb = balancer(wish())
    await written(ground, lb)
    (row,) = ground.select("Load_Balancer")
    ids = {key: text for key, text in row["external_ids"].items() if not key.startswith(OURS)}
    ids["pool_pool"] = ids["pool_pool"] + ","  # their own way to say the same
    update = {
        "op": "update",
        "table": "Load_Balancer",
        "where": [],
        "row": {"external_ids": laying.as_map(ids)},
    }
    ground.transact(update)
    await asyncio.sleep(0.05)
    assert ground.northbound.known() == {"lb": None}
    assert await written(ground, lb) == Written(1, 1)
    (after,) = ground.select("Load_Balancer")
    assert after["external_ids"] == {**ids, "roadstead:revision": "7"}


async def test_a_second_row_that_says_the_same_goes(ground: Ground) -> None:
    lb = balancer(wish())
    await written(ground, lb)
    (row,) = ground.select("Load_Balancer")
    twin = {"name": "lb", "protocol": "tcp", "external_ids": laying.as_map({"enabled": "True"})}
    ground.transact({"op": "insert", "table": "Load_Balancer", "row": twin})
    await asyncio.sleep(0.05)
    assert await written(ground, lb) == Written(1, 1)
    assert [x["_uuid"] for x in ground.select("Load_Balancer")] == [row["_uuid"]]


def renamed(handle: str, name: str) -> dict[str, Any]:
    where = [["_uuid", "==", ["uuid", handle]]]
    return {"op": "update", "table": "Load_Balancer", "where": where, "row": {"name": name}}


async def test_a_row_that_was_renamed_is_taken_back_at_once(ground: Ground) -> None:
    lb = balancer(wish(healthmonitor=monitor()))
    await written(ground, lb)
    await drain(ground)
    (row,) = ground.select("Load_Balancer")
    ground.transact(renamed(row["_uuid"], "evil"))
    (wake,) = await wakes(ground)
    assert wake.source is Source.ROWS
    assert "lb" in (wake.ids or ())
    assert await written(ground, lb) == Written(1, 1)
    (after,) = ground.select("Load_Balancer")
    assert {**after, "_version": None} == {**row, "_version": None}
    assert ground.northbound.known() == {"lb": 7}
    assert await written(ground, lb) == Written(0, 0)


async def test_a_renamed_row_of_a_chance_uuid_is_known_by_revision_and_vip_port(ground: Ground) -> None:
    lb = balancer(wish())
    await written(ground, lb)
    (row,) = ground.select("Load_Balancer")
    maps = {k: laying.as_map(row[k]) for k in ("vips", "external_ids", "options", "ip_port_mappings")}
    copied = {"name": "evil", "protocol": "tcp", "selection_fields": ["set", list(row["selection_fields"])]}
    ground.transact(
        {"op": "delete", "table": "Load_Balancer", "where": []},
        {"op": "insert", "table": "Load_Balancer", "row": {**copied, **maps}},
    )
    await asyncio.sleep(0.05)
    (evil,) = ground.select("Load_Balancer")
    assert evil["_uuid"] != row["_uuid"]
    assert await written(ground, lb) == Written(1, 1)
    (after,) = ground.select("Load_Balancer")
    assert (after["_uuid"], after["name"]) == (evil["_uuid"], "lb")
    assert hanging(ground, "Logical_Switch") == {"neutron-net-a", "neutron-net-b"}


async def test_a_renamed_row_goes_with_its_load_balancer(ground: Ground) -> None:
    await written(ground, balancer(wish()))
    (row,) = ground.select("Load_Balancer")
    ground.transact(renamed(row["_uuid"], "evil"))
    await asyncio.sleep(0.05)
    gone = await ground.northbound.write("lb", 8, Wanted(), ground.northbound.found("lb", Wanted()))
    assert gone == Written(1, 1)
    assert ground.select("Load_Balancer") == []


async def test_a_row_that_serves_another_by_its_name_is_taken_back_and_the_other_told(ground: Ground) -> None:
    lb = balancer(wish())
    await written(ground, lb)
    (row,) = ground.select("Load_Balancer")
    ids = {**row["external_ids"], "neutron:vip_port_id": "other", "roadstead:revision": "9"}
    where = [["_uuid", "==", ["uuid", row["_uuid"]]]]
    change = {"name": "other-lb", "external_ids": laying.as_map(ids)}
    ground.transact({"op": "update", "table": "Load_Balancer", "where": where, "row": change})
    await asyncio.sleep(0.05)
    await drain(ground)
    assert (await written(ground, balancer(wish(), 12))).transactions == 1
    assert ground.northbound.known() == {"lb": 12}
    assert await wakes(ground) == [Wake(Source.ROWS, frozenset({"other-lb"}))]


async def test_own_writes_wake_nobody_and_others_do(ground: Ground) -> None:
    await drain(ground)
    lb = balancer(wish(healthmonitor=monitor()))
    await written(ground, lb)
    await written(ground, balancer(wish(2, healthmonitor=monitor()), 8))
    await silence(ground)
    ground.transact(
        {"op": "update", "table": "Load_Balancer", "where": [], "row": {"vips": laying.as_map({})}}
    )
    assert await wakes(ground) == [Wake(Source.ROWS, frozenset({"lb"}))]
    ground.transact({"op": "delete", "table": "Load_Balancer", "where": []})
    assert await wakes(ground) == [Wake(Source.ROWS, frozenset({"lb"}))]


async def test_changes_around_wake_those_who_looked(ground: Ground) -> None:
    lb = balancer(wish(2, healthmonitor=monitor()))
    await written(ground, lb)
    await drain(ground)

    async def woken(source: Source) -> None:
        found = {wake.source: wake.ids for wake in await wakes(ground)}
        assert found[source] == frozenset({"lb"})

    ground.transact(*laying.floating_nat("203.0.113.9", "vip", "192.0.2.5", "r1"))
    await woken(Source.FLOATING_IP)
    ground.transact(*laying.floating_mark("vip", "203.0.113.9"))
    await woken(Source.FLOATING_IP)
    assert "203.0.113.9:80" in look(ground, lb)[0].rows[0].vips
    handles = [x["_uuid"] for x in ground.select("Logical_Router_Port") if x["name"] == "lrp-rp-b"]
    ground.transact(*laying.removed(handles, "Logical_Router", "ports"))
    await woken(Source.ROUTER)
    port = laying.PortLaid("probes", "net-a", ("192.0.2.200/24",), "ovn-lb-hm-sub-a", "ovn-lb-hm:distributed")
    ground.transact(*laying.switch_port(port))
    await woken(Source.PORT)
    assert look(ground, lb)[0].rows[0].ip_port_mappings == {"192.0.2.10": "vm-192.0.2.10:192.0.2.200"}
    ground.transact({"op": "delete", "table": "Logical_Switch", "where": [["name", "==", "neutron-net-b"]]})
    await woken(Source.SWITCH)
    ground.transact(*laying.switch_port(laying.PortLaid("vm-other", "net-a", ("192.0.2.77/24",))))
    await silence(ground)


async def test_a_probe_that_fails_wakes_and_counts(ground: Ground) -> None:
    lb = balancer(wish(healthmonitor=monitor()))
    await written(ground, lb)
    await drain(ground)
    row = {"ip": "192.0.2.10", "port": 80, "protocol": "tcp", "logical_port": "vm-192.0.2.10"}
    ground.probe({"op": "insert", "table": "Service_Monitor", "row": row})
    await silence(ground)  # a probe without an answer changes nothing
    change = {"op": "update", "table": "Service_Monitor", "where": [], "row": {"status": "offline"}}
    ground.probe(change)
    assert await wakes(ground) == [Wake(Source.PROBE, frozenset({"lb"}))]
    assert (
        health_of(lb, replace(ground.northbound.facts(lb), subnets=subnets())).members["m0"] is Standing.ERROR
    )
    ground.probe({"op": "delete", "table": "Service_Monitor", "where": []})
    assert await wakes(ground) == [Wake(Source.PROBE, frozenset({"lb"}))]


def subnets() -> tuple[Subnet, ...]:
    return tuple(Subnet(*each) for each in SUBNETS)


async def test_a_member_s_floating_ip_is_centralised_while_the_vip_has_one(ground: Ground) -> None:
    lb = balancer(wish())
    ground.transact(*laying.floating_nat("203.0.113.9", "vip", "192.0.2.5", "r1"))
    nat = laying.floating_nat("203.0.113.10", "vm-192.0.2.10", "192.0.2.10", "r1", laying.mac(99))
    ground.transact(*nat)
    await asyncio.sleep(0.05)
    wanted, found = look(ground, lb)
    assert found.pinned == {"203.0.113.10"}
    assert (await ground.northbound.write("lb", 7, wanted, found)).rows == 3
    assert not [x for x in ground.select("NAT") if x["external_mac"] or x["logical_port"]]
    assert await written(ground, lb) == Written(0, 0)
    await drain(ground)
    change = {"external_mac": laying.mac(99), "logical_port": "vm-192.0.2.10"}
    where = [["external_ip", "==", "203.0.113.10"]]
    ground.transact({"op": "update", "table": "NAT", "where": where, "row": change})
    assert await wakes(ground) == [Wake(Source.FLOATING_IP, frozenset({"lb"}))]
    assert await written(ground, lb) == Written(1, 1)


async def test_after_a_reconnect_everything_is_looked_at_again(ground: Ground) -> None:
    lb = balancer(wish())
    await written(ground, lb)
    await drain(ground)
    await ground.reconnect()
    async with asyncio.timeout(5):
        woken = await ground.northbound.wakes()
        assert Wake(Source.RECONNECT, None) in woken
        await ground.northbound.ready()
    assert await written(ground, lb) == Written(0, 0)
    assert ground.northbound.known() == {"lb": 7}


async def test_a_change_while_nobody_asks_is_not_lost(ground: Ground) -> None:
    await drain(ground)
    lb = balancer(wish())
    await written(ground, lb)
    for value in ("a", "b"):
        change = [["options", "insert", laying.as_map({value: value})]]
        ground.transact({"op": "mutate", "table": "Load_Balancer", "where": [], "mutations": change})
    await asyncio.sleep(0.1)
    assert await wakes(ground) == [Wake(Source.ROWS, frozenset({"lb"}))]
    await silence(ground)


async def test_nothing_is_told_before_the_copy_is_complete() -> None:
    ground = ModelGround()
    ground.northbound.cut()
    assert not ground.northbound.is_ready()
    for ask in (
        lambda: ground.northbound.known(),
        lambda: ground.northbound.found("lb", Wanted()),
        lambda: ground.northbound.facts(balancer(wish())),
    ):
        with pytest.raises(Unready):
            ask()
    with pytest.raises(Unready):
        await ground.northbound.write("lb", 1, Wanted(), Found())
