"""Recorded answers, made again from the rows that stood behind them."""

import json
from collections import Counter
from typing import Any

from roadstead_octavia.resources.shown import full, shown
from roadstead_octavia.wire import write, xml
from roadstead_octavia.wire.describe import Resource
from roadstead_octavia.wire.trees import statuses

from .recorded import (
    SEGMENTS,
    TREE,
    Exchange,
    State,
    canonical,
    exchanges,
    load_balancer_of,
    needs_recordings,
    timed,
    tree_of,
)

pytestmark = needs_recordings


def row_of(resource: Resource, state: State, identifier: str) -> dict[str, Any]:
    if resource.table in TREE:
        return shown(
            tree_of(state, load_balancer_of(state, resource.table, identifier)), resource.table, identifier
        )
    key = (
        "name"
        if resource.table == "availability_zone"
        else "project_id"
        if resource.table == "quotas"
        else "id"
    )
    return timed(next(row for row in state[resource.table] if row[key] == identifier))


def fields_of(exchange: Exchange) -> list[str]:
    return [pair.removeprefix("fields=") for pair in exchange.query.split("&") if pair.startswith("fields=")]


def made(exchange: Exchange) -> Any:
    """The answer that we give, or None where it is no answer of one of these kinds."""
    resource, state, method = exchange.resource, exchange.state, exchange.method
    last = exchange.segments[-1].removesuffix(".xml").removesuffix(".json")
    if method == "GET" and exchange.status == 200:
        if last in ("status", "statuses"):
            return statuses(tree_of(state, exchange.segments[-2]))
        if len(exchange.segments) > 1 and exchange.segments[-2] in SEGMENTS and resource.table != "quotas":
            return write.one(resource, row_of(resource, state, last), fields_of(exchange))
        if last in SEGMENTS and not exchange.path.endswith(".xml"):
            return listed(exchange)
    if method in ("POST", "PUT") and exchange.status in (200, 201) and resource.table != "availability_zone":
        identifier = json.loads(exchange.answer)[resource.one]["id"]
        if method == "POST" and resource.table == "load_balancer":
            return write.full(resource, full(tree_of(exchange.after, identifier)))
        return write.one(resource, row_of(resource, exchange.after, identifier))
    return None


def listed(exchange: Exchange) -> Any:
    """The same rows in the same order; which rows a page has is no matter of writing."""
    resource, answer = exchange.resource, json.loads(exchange.answer)
    key = (
        "name"
        if resource.table == "availability_zone"
        else "project_id"
        if resource.table == "quotas"
        else "id"
    )
    if any(key not in shown_object for shown_object in answer[resource.many]):
        return None
    rows = [row_of(resource, exchange.state, shown_object[key]) for shown_object in answer[resource.many]]
    return write.many(resource, rows, answer.get(resource.links), fields_of(exchange))


def test_every_recorded_answer_is_made_from_its_rows() -> None:
    counts: Counter[str] = Counter()
    for exchange in exchanges():
        if exchange.kind or (body := made(exchange)) is None:
            continue
        if exchange.path.endswith(".xml"):
            assert xml.dumps(body).decode() == exchange.answer, exchange.where
            counts["xml"] += 1
            continue
        ours = json.loads(write.dumps(body))
        assert canonical(ours) == canonical(json.loads(exchange.answer)), exchange.where
        counts[exchange.method] += 1
    assert counts["GET"] > 3000
    assert counts["POST"] > 2000
    assert counts["PUT"] > 150
    assert counts["xml"] >= 5
