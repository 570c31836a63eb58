"""One scenario played on the stage: what the worker would do at each step, compared with what the original did."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roadstead_ovn.balancer import Balancer, balancer_of
from roadstead_ovn.check import Refusal, Surroundings, check
from roadstead_ovn.health import Health, health_of
from roadstead_ovn.northbound.port import Conflict
from roadstead_ovn.render import render
from roadstead_ovn.rows import OURS, LoadBalancerRow, Wanted, differing
from tests.conformance_ovn.ports_asked import port_differences
from tests.conformance_ovn.recorded import Json, Moment, Region, Replay, failed, found_rows
from tests.conformance_ovn.rules import REFUSAL, Story, explained
from tests.conformance_ovn.stage import Stage, facts

DAMAGE = {"rows_lost", "rows_damaged"}
CLASSES = {
    "UnsupportedOptionError": "UnsupportedOption",
    "IPVersionsMixingNotSupportedError": "UnsupportedOption",
    "NotImplementedError": "NotImplemented",
}
IDENTICAL, EXPLAINED, DIFFERENT, NOT_STAGED = "identical", "explained", "different", "not staged"


@dataclass
class Verdict:
    """rules: that were needed.  notes: what differs and where, for a reader."""

    identifier: str
    word: str = IDENTICAL
    rules: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    adopted: int = 0


async def play(stage: Stage, scenario: Json) -> Verdict:
    verdict = Verdict(scenario["id"])
    replay = Replay(scenario)
    differences: set[str] = set()
    moments: list[Moment] = []
    await stage.clear()
    steps = replay.moments()
    if any(step.get("what") == "service_monitor" for step in scenario["steps"]):
        await stage.follow(replay.network)
        await stage.bind(replay.network.ports)
    while True:
        before = copy.deepcopy(replay.network)
        moment = next(steps, None)
        if moment is None:
            break
        if _is_unreadable(moment.step):
            verdict.word = NOT_STAGED
            verdict.notes.append("the network service cannot be read, so nothing is rendered")
            return verdict
        moments.append(moment)
        found = await port_differences(moment, before)
        found |= refusal_differences(moment)
        found |= await _step(stage, moment, replay.network)
        if found:
            verdict.notes.append(f"step {len(moments)} ({_title(moment.step)}): {', '.join(sorted(found))}")
        differences |= found
    last = status_differences(moments)
    if last:
        verdict.notes.append(f"at the end: {', '.join(sorted(last))}")
    verdict.rules, left = explained(Story(moments), frozenset(differences | last))
    if left:
        verdict.word = DIFFERENT
        verdict.notes.append(f"unexplained: {', '.join(sorted(left))}")
    elif verdict.rules:
        verdict.word = EXPLAINED
    else:
        await _adopt(stage, moments, replay.network, verdict)
    return verdict


def _title(step: Json) -> str:
    return str(step.get("method") or step.get("what"))


def _is_unreadable(step: Json) -> bool:
    """A load balancer that ended in ERROR before any row was made: the network service had failed, which leaves no other trace."""
    return step.get("method") == "loadbalancer_create" and failed(step) and not step["nb"]["Load_Balancer"]


def balancer(tree: Mapping[str, Any] | None) -> Balancer | None:
    return None if tree is None else balancer_of(tree)


async def _step(stage: Stage, moment: Moment, region: Region) -> set[str]:
    step = moment.step
    if step.get("what") == "rows_lost":
        stage.damage(step["name"])
        await stage.catch_up()
        return set()
    if step.get("what") == "rows_damaged":
        stage.damage(None)
        stage.write_by_hand(found_rows(step))
        await stage.catch_up()
        return set()
    await stage.follow(region)
    stands = balancer(moment.tree)
    found = set()
    if step.get("what") == "service_monitor":
        probed = step["ip"], step["port"], step["protocol"], step["status"]
        if not await stage.probe(*probed):
            found.add("probes")
        elif stands is not None:
            await stage.sees(stands, *probed)
    wanted = await _pass(stage, moment, region)
    return found | _rows_written(stage, wanted) | row_differences(stage, moment, wanted)


async def _pass(stage: Stage, moment: Moment, region: Region) -> Wanted:
    """As the worker does it: look, render, write; and once more, for which there is nothing left to do."""
    stands = balancer(moment.tree)
    identifier = stands.id if stands else _named(moment)
    wanted = Wanted()
    for number in range(10):
        wanted = render(stands, facts(stage, stands, region)) if stands else Wanted()
        found = stage.northbound.found(identifier, wanted)
        try:
            written = await stage.northbound.write(identifier, 1, wanted, found)
        except Conflict:
            await stage.catch_up()
            continue
        if number and written.transactions == 0:
            return wanted
    raise AssertionError("the same wish is written again and again")


def _named(moment: Moment) -> str:
    tree = moment.before
    return str(tree["loadbalancer_id"]) if tree else "none"


def _rows_written(stage: Stage, wanted: Wanted) -> set[str]:
    """What was written is what was wanted: a difference here is a fault of the writing."""
    ours, there = {row.protocol: row for row in wanted.rows}, {row.protocol: row for row in stage.rows()}
    if ours.keys() != there.keys() or any(differing(ours[p], there[p]) for p in ours):
        return {"written otherwise than wanted"}
    taken = [port for port in wanted.switch_ports if stage.addresses(port)]
    return {"addresses of the VIP's port"} if taken or not stage.is_clean() else set()


def row_differences(stage: Stage, moment: Moment, wanted: Wanted) -> set[str]:
    """Names of columns, `rows` for rows that are there or not, NAT."""
    freedom = {row.protocol: row.freedom for row in wanted.rows}
    ours = {row.protocol: replace(row, freedom=freedom[row.protocol]) for row in stage.rows()}
    theirs = found_rows(moment.step)
    named = {row.protocol: row for row in theirs}
    found: set[str] = set()
    if "NAT" in moment.step["nb"] and stage.translations() != moment.step["nb"]["NAT"]:
        found.add("NAT")
    if len(theirs) != len(ours):
        return found | {"rows"} | {c for p in ours.keys() & named.keys() for c in columns(ours[p], named[p])}
    pairs = [(ours[p], named[p]) for p in ours] if ours.keys() == named.keys() else []
    pairs = pairs or list(zip(ours.values(), theirs, strict=True))
    return found | {column for pair in pairs for column in columns(*pair)}


def columns(ours: LoadBalancerRow, theirs: LoadBalancerRow) -> set[str]:
    """What differs, counts in `ls_refs` included, which a worker would let stand."""
    found = set(differing(ours, theirs))
    counts = [json.loads(row.external_ids.get("ls_refs", "{}")) for row in (ours, theirs)]
    if counts[0] == counts[1]:
        return found
    free = ours.freedom.counts
    is_free = counts[0].keys() == counts[1].keys() and all(
        counts[0][switch] == count or {count, counts[0][switch]} <= free.get(switch, frozenset())
        for switch, count in counts[1].items()
    )
    return found if is_free else found | {"external_ids"}


def refusal_differences(moment: Moment) -> set[str]:
    step = moment.step
    if step["do"] != "call" or step["method"] == "create_vip_port":
        return set()
    ours = check(step["method"], step["args"], Surroundings(balancer(moment.before), moment.facts_before))
    error = step.get("error")
    theirs = (
        Refusal(CLASSES.get(error["class"], error["class"]), error["user_fault_string"]) if error else None
    )
    return {REFUSAL} if ours != theirs else set()


def said(health: Health, identifier: str) -> dict[tuple[str, str], str]:
    found = {("loadbalancers", identifier): health.load_balancer.value}
    kinds = {"listeners": health.listeners, "pools": health.pools, "members": health.members}
    for kind, standings in {**kinds, "healthmonitors": health.monitors}.items():
        found.update({(kind, key): standing.value for key, standing in standings.items()})
    return found


def status_differences(moments: list[Moment]) -> set[str]:
    """Of what stands at the end, against the last that the original said of each."""
    last: dict[tuple[str, str], str] = {}
    for moment in moments:
        for message in moment.step["statuses"]:
            for kind, rows in message.items():
                last |= {(kind, r["id"]): r["operating_status"] for r in rows if "operating_status" in r}
    stands = balancer(moments[-1].tree)
    ours = said(health_of(stands, moments[-1].facts), stands.id) if stands else {}
    return {f"status of {kind}" for (kind, key), status in ours.items() if last.get((kind, key)) != status}


async def _adopt(stage: Stage, moments: list[Moment], region: Region, verdict: Verdict) -> None:
    """The original's final rows, made by another hand, are taken over: every text stays, our keys come on top."""
    moment = moments[-1]
    theirs = sorted(found_rows(moment.step), key=lambda row: (row.name, row.protocol or ""))
    if not theirs or moment.step.get("what") in DAMAGE:
        return
    await stage.clear()
    await stage.follow(region)
    stage.write_by_hand(theirs)
    await stage.catch_up()
    stands = balancer(moment.tree)
    if stands is not None and region.monitors:
        await stage.bind(region.ports)
        for (address, port, protocol), status in region.monitors.items():
            # Not of those that nothing asks for any more.
            if await stage.probe(address, port, protocol, status, patience=1.0):
                await stage.sees(stands, address, port, protocol, status)
    await _pass(stage, moment, region)
    after = [_without_ours(row) for row in stage.rows()]
    if [_plain(row) for row in after] != [_plain(row) for row in theirs]:
        verdict.word = DIFFERENT
        verdict.notes.append("taking over the original's rows changes them")
        return
    if any(f"{OURS}revision" not in row.external_ids for row in stage.rows()):
        verdict.word = DIFFERENT
        verdict.notes.append("rows that were taken over are not marked")
        return
    verdict.adopted = len(theirs)


def _without_ours(row: LoadBalancerRow) -> LoadBalancerRow:
    return replace(row, external_ids={k: v for k, v in row.external_ids.items() if not k.startswith(OURS)})


def _plain(row: LoadBalancerRow) -> Any:
    checks = sorted(
        (c.vip, sorted(c.options.items()), sorted(c.external_ids.items())) for c in row.health_checks
    )
    fields = sorted(row.selection_fields)
    plain = replace(row, health_checks=(), selection_fields=tuple(fields), protocol=row.protocol or None)
    return plain, checks
