"""Departures in making load balancers: what is refused before anything is made, what a VIP keeps, and what a refused port is told as."""

import json
from collections import defaultdict
from typing import Any

from .departures import Line, departure

PORT = "create_vip_port"
CREATE = "loadbalancer_create"
VIP = {"vip_network_id": "network_id", "vip_subnet_id": "subnet_id"}
IN_USE = "The VIP IP address is already in use: "


def _creates(line: Line) -> bool:
    request = line["request"]
    path = request["path"].partition("?")[0].rstrip("/")
    return bool(request["method"] == "POST" and path.endswith("/loadbalancers"))


def _asked(line: Line) -> dict[str, Any]:
    """The root object of the request; empty when it is none."""
    try:
        found = json.loads(line["request"].get("body") or "{}")["loadbalancer"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _calls(line: Line, side: str) -> list[dict[str, Any]]:
    return line[side].get("provider_calls") or []


@departure("lb-graph-refused-first")
def _no_port_for_a_refused_graph(line: Line) -> bool:
    """A whole tree that is refused was refused before a provider was asked for a VIP port."""
    body = _asked(line)
    told = _calls(line, "expected")
    if not _creates(line) or not (body.get("listeners") or body.get("pools")) or not told:
        return False
    refused = 400 <= line["expected"]["status"] < 500
    if not refused or told[-1]["method"] != PORT or any(c["method"] == PORT for c in _calls(line, "actual")):
        return False
    line["expected"]["provider_calls"] = told[:-1]
    return True


@departure("lb-vip-kept")
def _what_a_provider_does_not_say_stays(line: Line) -> bool:
    """Network and subnet of a VIP are known before its provider answers; an answer without them does not take them away."""
    told, ours = _calls(line, "expected"), _calls(line, "actual")
    body = line["expected"].get("body") or {}
    shown = body.get("loadbalancer") if isinstance(body, dict) else None
    wanted = next((call["args"][2] for call in ours if call["method"] == PORT), None)
    if not _creates(line) or not isinstance(shown, dict) or wanted is None:
        return False
    lost = {name: wanted[name] for name in VIP if shown.get(name) is None and wanted.get(name)}
    if not lost:
        return False
    shown.update(lost)
    for call in told:
        if call["method"] == CREATE:
            call["args"][0].update(lost)
    for table, verb, row in line["expected"]["changes"]:
        if (table, verb) == ("vip", "put"):
            row.update({VIP[name]: value for name, value in lost.items()})
    return True


@departure("lb-port-refused")
def _neutrons_own_words(line: Line) -> bool:
    """When the API makes the VIP port itself and the network refuses, its status and its words are the answer."""
    told, ours = _calls(line, "expected"), _calls(line, "actual")
    methods = [[call["method"] for call in calls] for calls in (told, ours)]
    if not _creates(line) or not methods[0] or methods[0][-1] != PORT or methods[0] != methods[1]:
        return False
    expected, actual = line["expected"], line["actual"]
    if expected["status"] < 400 or not isinstance(actual.get("body"), dict):
        return False
    ours_is_clear = 400 <= actual["status"] < 500 or actual["status"] == 503
    said = str(actual["body"].get("faultstring"))
    if not ours_is_clear or (actual["status"] == 409 and not said.startswith(IN_USE)):
        return False
    if expected["status"] not in (actual["status"], 500):
        return False
    expected["status"] = actual["status"]
    expected["body"] = {**expected["body"], **{n: actual["body"][n] for n in ("faultstring", "faultcode")}}
    return True


@departure("lb-peer-ports")
def _no_peer_port_twice(line: Line) -> bool:
    """Listeners that are made together have different peer ports."""
    recorded: dict[Any, list[Any]] = defaultdict(list)
    ours: dict[Any, list[Any]] = defaultdict(list)
    for side, rows in (("expected", recorded), ("actual", ours)):
        for table, verb, row in line[side]["changes"]:
            if (table, verb) == ("listener", "put"):
                rows[row["protocol_port"], row["protocol"]].append(row)
    ports = [row["peer_port"] for made in recorded.values() for row in made]
    own = [row["peer_port"] for made in ours.values() for row in made]
    if not _creates(line) or len(set(ports)) == len(ports) or len(set(own)) < len(own):
        return False
    for place, made in recorded.items():
        for row, other in zip(made, ours.get(place, ()), strict=False):
            row["peer_port"] = other["peer_port"]
    return True


@departure("lb-graph-monitored")
def _monitored_members_are_offline(line: Line) -> bool:
    """A member that is made with its pool's monitor is OFFLINE until it was checked, as one that is added later is."""
    body = line["expected"].get("body")
    shown = body.get("loadbalancer") if _creates(line) and isinstance(body, dict) else None
    places = set()
    for pool in (shown or {}).get("pools") or ():
        for member in pool.get("members") or () if pool.get("healthmonitor") else ():
            if member.get("operating_status") == "NO_MONITOR":
                member["operating_status"] = "OFFLINE"
                places.add((member["address"], member["protocol_port"]))
    for table, verb, row in line["expected"]["changes"] if places else ():
        if (table, verb) == ("member", "put") and (row["ip_address"], row["protocol_port"]) in places:
            row["operating_status"] = "OFFLINE"
    return bool(places)


@departure("lb-additional-address")
def _an_additional_vip_has_an_address(line: Line) -> bool:
    """An additional VIP that neither request nor provider gave an address refuses the creation; the original stores and shows null."""
    body, ours = line["expected"].get("body") or {}, line["actual"].get("body") or {}
    shown = body.get("loadbalancer") if isinstance(body, dict) else None
    if not _creates(line) or not isinstance(shown, dict) or line["actual"]["status"] != 500:
        return False
    nameless = [one["subnet_id"] for one in shown.get("additional_vips") or () if one["ip_address"] is None]
    text = str(ours.get("faultstring"))
    if not nameless or not text.endswith(f"gives the additional VIP in subnet {nameless[0]} no address"):
        return False
    asked = [call for call in _calls(line, "expected") if call["method"] == PORT]
    if line["actual"]["changes"] or asked != _calls(line, "actual"):
        return False
    line["expected"].update({name: line["actual"][name] for name in ("status", "body")})
    line["expected"].update(provider_calls=asked, changes=[])
    return True
