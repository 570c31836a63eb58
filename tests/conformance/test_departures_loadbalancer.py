"""The rules about making load balancers excuse what they name and nothing else."""

import copy
import json
from typing import Any

from .departures_loadbalancer import (
    _an_additional_vip_has_an_address,
    _monitored_members_are_offline,
    _neutrons_own_words,
    _no_peer_port_twice,
    _no_port_for_a_refused_graph,
    _what_a_provider_does_not_say_stays,
)

ASKED = {"vip_network_id": "n", "vip_subnet_id": "s"}


def call(method: str, *arguments: Any) -> dict[str, Any]:
    return {"method": method, "args": list(arguments)}


def a_port() -> dict[str, Any]:
    return call("create_vip_port", "lb", "p", dict(ASKED), [])


def fault(text: str) -> dict[str, Any]:
    return {"faultcode": "Client", "faultstring": text, "debuginfo": None}


def a_line(
    expected: dict[str, Any], actual: dict[str, Any], body: Any = None, method: str = "POST"
) -> dict[str, Any]:
    blank: dict[str, Any] = {"changes": [], "provider_calls": [], "body": None}
    request = {"method": method, "path": "/v2/lbaas/loadbalancers", "body": json.dumps(body or {})}
    return {"request": request, "expected": {**blank, **expected}, "actual": {**blank, **actual}}


def refused(**more: Any) -> dict[str, Any]:
    return a_line(
        {"status": 400, "body": fault("x"), "provider_calls": [a_port()]},
        {"status": 400, "body": fault("x"), "provider_calls": []},
        **more,
    )


GRAPH = {"loadbalancer": {"listeners": [{"name": "a"}]}}


def test_a_refused_graph_may_lack_the_question_for_a_port() -> None:
    line = refused(body=GRAPH)
    assert _no_port_for_a_refused_graph(line)
    assert line["expected"] == line["actual"]


def test_a_refused_load_balancer_alone_may_not_lack_it() -> None:
    line = refused(body={"loadbalancer": {"listeners": []}})
    assert not _no_port_for_a_refused_graph(line)


def test_a_graph_that_is_made_may_not_lack_it() -> None:
    line = refused(body=GRAPH)
    line["expected"]["status"] = 201
    assert not _no_port_for_a_refused_graph(line)


def test_another_text_is_not_excused_with_it() -> None:
    line = refused(body=GRAPH)
    line["actual"]["body"] = fault("y")
    _no_port_for_a_refused_graph(line)
    assert line["expected"] != line["actual"]


def made(vip: dict[str, Any]) -> dict[str, Any]:
    row = {"network_id": vip["vip_network_id"], "subnet_id": vip["vip_subnet_id"], "ip_address": None}
    return {
        "status": 201,
        "body": {"loadbalancer": dict(vip)},
        "provider_calls": [a_port(), call("loadbalancer_create", dict(vip))],
        "changes": [["vip", "put", row]],
    }


def test_a_vip_keeps_what_its_provider_did_not_say() -> None:
    line = a_line(made(dict.fromkeys(ASKED)), made(ASKED))
    assert _what_a_provider_does_not_say_stays(line)
    assert line["expected"] == line["actual"]


def test_a_vip_that_the_provider_moved_is_compared() -> None:
    line = a_line(made({**ASKED, "vip_network_id": "other"}), made(ASKED))
    assert not _what_a_provider_does_not_say_stays(line)


def port_refused(expected: int, actual: int, text: str) -> dict[str, Any]:
    return a_line(
        {"status": expected, "body": fault("an inner text"), "provider_calls": [a_port()]},
        {"status": actual, "body": fault(text), "provider_calls": [a_port()]},
    )


def test_a_refused_port_is_told_in_the_networks_words() -> None:
    for recorded, status, text in (
        (409, 409, "The VIP IP address is already in use: x"),
        (500, 409, "The VIP IP address is already in use: x"),
        (403, 403, "Quota exceeded"),
        (500, 503, "not now"),
    ):
        line = port_refused(recorded, status, text)
        assert _neutrons_own_words(line)
        assert line["expected"] == line["actual"]


def test_a_refused_port_with_another_status_is_compared() -> None:
    assert not _neutrons_own_words(port_refused(403, 409, "The VIP IP address is already in use: x"))
    assert not _neutrons_own_words(port_refused(409, 409, "something else"))
    assert not _neutrons_own_words(port_refused(500, 500, "x"))


def listeners(*ports: int) -> dict[str, Any]:
    rows = [
        ["listener", "put", {"protocol_port": 80 + n, "protocol": "HTTP", "peer_port": port}]
        for n, port in enumerate(ports)
    ]
    return {"status": 201, "changes": rows}


def test_a_peer_port_twice_is_told_apart() -> None:
    line = a_line(listeners(1025, 1025), listeners(1025, 1026))
    assert _no_peer_port_twice(line)
    assert line["expected"] == line["actual"]


def test_peer_ports_that_differ_are_compared() -> None:
    line = a_line(listeners(1025, 1026), listeners(1025, 1027))
    before = copy.deepcopy(line)
    assert not _no_peer_port_twice(line)
    assert line == before


def test_members_of_a_pool_with_a_monitor_are_offline_and_others_are_compared() -> None:
    def members(first: str, second: str) -> dict[str, Any]:
        shown = [
            {"address": "10.0.0.1", "protocol_port": 80, "operating_status": first},
            {"address": "10.0.0.2", "protocol_port": 80, "operating_status": second},
        ]
        rows = [
            ["member", "put", {"ip_address": m["address"], "protocol_port": 80, "operating_status": s}]
            for m, s in zip(shown, (first, second), strict=True)
        ]
        pools = [
            {"healthmonitor": {"type": "PING"}, "members": shown[:1]},
            {"healthmonitor": None, "members": shown[1:]},
        ]
        return {"status": 201, "body": {"loadbalancer": {"pools": pools}}, "changes": rows}

    line = a_line(members("NO_MONITOR", "NO_MONITOR"), members("OFFLINE", "NO_MONITOR"))
    assert _monitored_members_are_offline(line)
    assert line["expected"] == line["actual"]
    assert not _monitored_members_are_offline(
        a_line(members("ONLINE", "NO_MONITOR"), members("OFFLINE", "x"))
    )


def without_address(address: str | None, told: str, **ours: Any) -> dict[str, Any]:
    """The original stores an additional VIP with this address; ours refuses with a text about a subnet."""
    shown = {"loadbalancer": {"additional_vips": [{"subnet_id": "s", "ip_address": address}]}}
    text = f"Provider 'x' reports error: its answer gives the additional VIP in subnet {told} no address"
    calls = [a_port(), call("loadbalancer_create", {})]
    return a_line(
        {"status": 201, "body": shown, "provider_calls": calls, "changes": [["vip", "put", {}]]},
        {"status": 500, "body": fault(text), "provider_calls": [a_port()], **ours},
    )


def test_an_additional_vip_without_an_address_may_refuse_the_creation() -> None:
    line = without_address(None, "s")
    assert _an_additional_vip_has_an_address(line)
    assert line["expected"] == line["actual"]


def test_one_with_an_address_or_another_subnet_or_something_written_may_not() -> None:
    for line in (
        without_address("192.0.2.1", "s"),
        without_address(None, "other"),
        without_address(None, "s", changes=[["vip", "put", {}]]),
        without_address(None, "s", status=400),
        without_address(None, "s", provider_calls=[]),
    ):
        before = copy.deepcopy(line)
        assert not _an_additional_vip_has_an_address(line)
        assert line == before
