"""Rows, statuses and refusals of the recorded scenarios of the original against ours.

Every step is compared, not the end alone; only while rows are lost or damaged by hand there is nothing to compare.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conformance_ovn.explained import BEYOND_RENDERING, DEPARTURES, Departure
from tests.conformance_ovn.recorded import (
    FOLDER,
    ROOT,
    Moment,
    Replay,
    found_rows,
    needs_recordings,
    scenarios,
)

from roadstead_ovn.balancer import Balancer, Vip, balancer_of
from roadstead_ovn.check import Refusal, Surroundings, check
from roadstead_ovn.health import Health, health_of
from roadstead_ovn.ports import monitor_port_request, vip_port_request
from roadstead_ovn.render import render
from roadstead_ovn.rows import OURS, LoadBalancerRow, Wanted, canonical_row, differing, settled

pytestmark = needs_recordings
IDS = sorted(scenarios())
RENDERED = [i for i in IDS if i not in BEYOND_RENDERING]
DAMAGE = {"rows_lost", "rows_damaged"}
CLASSES = {
    "UnsupportedOptionError": "UnsupportedOption",
    "IPVersionsMixingNotSupportedError": "UnsupportedOption",
    "NotImplementedError": "NotImplemented",
}
NONE = Departure("")


def balancer(tree: Mapping[str, Any] | None) -> Balancer | None:
    return None if tree is None else balancer_of(tree)


def wanted(moment: Moment) -> Wanted:
    return render(balancer(moment.tree), moment.facts)


def columns(ours: LoadBalancerRow, theirs: LoadBalancerRow) -> set[str]:
    """What differs, counts in `ls_refs` included, which a worker would let stand."""
    found = set(differing(ours, theirs))
    counts = [json.loads(row.external_ids.get("ls_refs", "{}")) for row in (ours, theirs)]
    return found | ({"external_ids"} if counts[0] != counts[1] else set())


def row_differences(moment: Moment) -> set[str]:
    ours = {row.protocol: row for row in wanted(moment).rows}
    theirs = found_rows(moment.step)
    named = {row.protocol: row for row in theirs}
    if len(theirs) != len(ours):
        return {"rows"} | {c for p in ours.keys() & named.keys() for c in columns(ours[p], named[p])}
    # A protocol that differs is a difference of one column where there is one row on each side.
    pairs = [(ours[p], named[p]) for p in ours] if ours.keys() == named.keys() else []
    pairs = pairs or list(zip(ours.values(), theirs, strict=True))
    return {column for pair in pairs for column in columns(*pair)}


@pytest.mark.parametrize("identifier", RENDERED)
def test_rows_are_those_of_the_original(identifier: str) -> None:
    moments = list(Replay(scenarios()[identifier]).moments())
    seen: set[str] = set()
    for moment in moments:
        if moment.step.get("what") not in DAMAGE:
            seen |= row_differences(moment)
    assert seen == DEPARTURES.get(identifier, NONE).columns


def said(health: Health, identifier: str) -> dict[tuple[str, str], str]:
    found = {("loadbalancers", identifier): health.load_balancer.value}
    kinds = {"listeners": health.listeners, "pools": health.pools, "members": health.members}
    for kind, standings in {**kinds, "healthmonitors": health.monitors}.items():
        found.update({(kind, key): standing.value for key, standing in standings.items()})
    return found


@pytest.mark.parametrize("identifier", RENDERED)
def test_final_statuses_are_those_of_the_original(identifier: str) -> None:
    moments = list(Replay(scenarios()[identifier]).moments())
    last: dict[tuple[str, str], str] = {}
    for moment in moments:
        for message in moment.step["statuses"]:
            for kind, rows in message.items():
                last |= {(kind, r["id"]): r["operating_status"] for r in rows if "operating_status" in r}
    stands = balancer(moments[-1].tree)
    ours = said(health_of(stands, moments[-1].facts), stands.id) if stands else {}
    differing_kinds = {kind for (kind, key), status in ours.items() if last.get((kind, key)) != status}
    assert differing_kinds == DEPARTURES.get(identifier, NONE).statuses


@pytest.mark.parametrize("identifier", IDS)
def test_refusals_are_those_of_the_original(identifier: str) -> None:
    for moment in Replay(scenarios()[identifier]).moments():
        step = moment.step
        if step["do"] != "call" or (identifier in BEYOND_RENDERING and step["method"] == "create_vip_port"):
            continue
        ours = check(step["method"], step["args"], Surroundings(balancer(moment.before), moment.facts_before))
        error = step.get("error")
        if error is not None and DEPARTURES.get(identifier, NONE).refusal:
            assert error["class"] == "AttributeError"
            assert ours is not None
            assert ours.text.endswith("session persistence. Only SOURCE_IP type is supported.")
        elif error is None:
            assert ours is None
        else:
            assert ours == Refusal(CLASSES[error["class"]], error["user_fault_string"])


def test_every_explanation_has_its_line() -> None:
    text = (ROOT / "docs" / "ovn-departures.md").read_text()
    for departure in DEPARTURES.values():
        assert f"| {departure.rule} |" in text, departure.rule


def test_ports_are_asked_for_as_the_original_does() -> None:
    compared = 0
    for identifier in IDS:
        for moment in Replay(scenarios()[identifier]).moments():
            step = moment.step
            for call in step.get("network_calls", ()):
                request = {k: v for k, v in call.items() if k not in ("call", "raised")}
                if call["call"] != "create_port":
                    continue
                compared += 1
                if step["method"] == "create_vip_port":
                    assert request in vip_requests(step["args"])
                else:
                    (fixed,) = request["fixed_ips"]
                    assert fixed["subnet_id"] in wanted(moment).monitor_subnets
                    assert request == monitor_port_request(
                        request["network_id"], fixed["subnet_id"], request["project_id"]
                    )
    assert compared > 100


def vip_requests(arguments: list[Any]) -> list[dict[str, Any]]:
    identifier, project, vip, additional = arguments
    vips = [
        Vip(vip["vip_address"] or "", "", vip["vip_network_id"], vip["vip_subnet_id"]),
        *(Vip(x["ip_address"], "", x["network_id"], x["subnet_id"]) for x in additional),
    ]
    return [vip_port_request(identifier, project, vip, number) for number, vip in enumerate(vips)]


def test_a_port_for_probes_is_wanted_until_the_original_removes_it() -> None:
    removed = 0
    for identifier in IDS:
        replay = Replay(scenarios()[identifier])
        ports: dict[str, str] = {}
        for moment in replay.moments():
            for port in moment.facts.ports:
                if port.name.startswith("ovn-lb-hm-"):
                    ports[port.id] = port.fixed_ips[0][0]
            for call in moment.step.get("network_calls", ()):
                if call["call"] == "delete_port" and call["port_id"] in ports:
                    removed += 1
                    assert ports[call["port_id"]] not in wanted(moment).monitor_subnets
    assert removed > 0


def test_nat_of_members_is_centralised_where_the_original_does_it() -> None:
    scenario = scenarios()["fip-member-dvr"]
    wished = [(m.step, wanted(m).centralised) for m in Replay(scenario).moments()]
    made = next(pair for pair in wished if pair[0].get("method") == "member_create")
    assert made[1] == {"172.24.4.60"}
    for step, addresses in wished:
        for row in step["nb"].get("NAT", ()):
            assert row["external_ip"] not in addresses or not (row["external_mac"] or row["logical_port"])


def test_rows_of_the_original_stay_as_they_are() -> None:
    """Adopting them writes nothing but our own keys."""
    adopted = 0
    for identifier in set(RENDERED) - set(DEPARTURES):
        for moment in Replay(scenarios()[identifier]).moments():
            if moment.step.get("what") in DAMAGE:
                continue
            ours = {row.protocol: row for row in wanted(moment).rows}
            for row in found_rows(moment.step):
                kept = settled(ours[row.protocol], row)
                assert differing(kept, row) == ()
                extra = {k: v for k, v in kept.external_ids.items() if k.startswith(OURS)}
                taken = dataclasses.replace(row, external_ids={**row.external_ids, **extra})
                assert canonical_row(taken) == canonical_row(kept)
                adopted += 1
    assert adopted > 300


def test_the_recordings_are_those_that_were_compared() -> None:
    assert isinstance(FOLDER, Path)
    missing = (DEPARTURES.keys() | BEYOND_RENDERING.keys()) - scenarios().keys()
    assert not missing
