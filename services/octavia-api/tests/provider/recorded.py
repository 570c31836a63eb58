"""Recorded exchanges of the original as trees and calls; they are data that this project does not hold."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from roadstead_octavia.db.port import TREE_TABLES, Tree

ROOT = Path(__file__).resolve().parents[4]
FOLDER = Path(os.environ.get("ROADSTEAD_SHARED") or ROOT.parent / "shared") / "conformance"
REASON = f"{FOLDER} with the recorded exchanges is missing; set ROADSTEAD_SHARED to the folder above it"
needs_recordings = pytest.mark.skipif(not (FOLDER / "conflib.py").is_file(), reason=REASON)

State = Mapping[str, list[dict[str, Any]]]


def library() -> Any:
    """The recordings' own reader."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    import conflib  # type: ignore[import-not-found]  # it lies beside the data

    return conflib


@dataclass(frozen=True)
class Recorded:
    """One provider call.  after is None when the exchange changed nothing (it was refused)."""

    where: str
    call: Mapping[str, Any]
    before: State
    after: State | None
    body: Any
    world: Mapping[str, Any]


@cache
def calls() -> tuple[Recorded, ...]:
    """Every provider call of every file."""
    return tuple(_calls())


def _calls() -> Iterator[Recorded]:
    lib = library()
    for path in lib.data_files(str(FOLDER)):
        for header, test in lib.read_file(path):
            for number, (step, before) in enumerate(lib.walk_steps(header, test)):
                made = step["expected"].get("provider_calls") or ()
                if not made:
                    continue
                changes = step["expected"].get("changes")
                after = lib.state_apply(before, changes, header["primary_keys"]) if changes else None
                body = step["request"].get("body")
                value = lib.json.loads(body) if isinstance(body, str) and body[:1] == "{" else None
                for call in made:
                    yield Recorded(
                        f"{test['test']}#{number} {call['method']}",
                        call,
                        before,
                        after,
                        value,
                        step.get("world") or {},
                    )


def tree_of(state: State, load_balancer_id: str) -> Tree:
    """The rows of one load balancer."""
    own = {load_balancer_id}
    children = {
        "listener": ("load_balancer_id", own),
        "pool": ("load_balancer_id", own),
        "vip": ("load_balancer_id", own),
        "additional_vip": ("load_balancer_id", own),
        "vip_security_group": ("load_balancer_id", own),
    }
    rows: dict[str, list[dict[str, Any]]] = {
        "load_balancer": [r for r in state.get("load_balancer", ()) if r["id"] == load_balancer_id]
    }
    for table, (column, ids) in children.items():
        rows[table] = [r for r in state.get(table, ()) if r[column] in ids]
    listeners = {r["id"] for r in rows["listener"]}
    pools = {r["id"] for r in rows["pool"]}
    below = {
        "listener_cidr": ("listener_id", listeners),
        "sni": ("listener_id", listeners),
        "l7policy": ("listener_id", listeners),
        "session_persistence": ("pool_id", pools),
        "member": ("pool_id", pools),
        "health_monitor": ("pool_id", pools),
    }
    for table, (column, ids) in below.items():
        rows[table] = [r for r in state.get(table, ()) if r[column] in ids]
    rows["l7policy"].sort(key=lambda r: r["position"])
    policies = {r["id"] for r in rows["l7policy"]}
    rows["l7rule"] = [r for r in state.get("l7rule", ()) if r["l7policy_id"] in policies]
    objects = {r["id"] for table in rows for r in rows[table] if "id" in r}
    rows["tags"] = [r for r in state.get("tags", ()) if r["resource_id"] in objects]
    assert set(rows) == set(TREE_TABLES)
    return Tree(1, 1, rows)


def whose(state: State, table: str, identifier: str) -> str | None:
    """The load balancer of an object, None when it is not there."""
    row = next((r for r in state.get(table, ()) if r["id"] == identifier), None)
    if row is None:
        return None
    if table == "load_balancer":
        return identifier
    for column, parent in (
        ("load_balancer_id", "load_balancer"),
        ("listener_id", "listener"),
        ("pool_id", "pool"),
        ("l7policy_id", "l7policy"),
    ):
        if row.get(column):
            return whose(state, parent, row[column])
    return None
