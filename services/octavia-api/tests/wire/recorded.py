"""Facts and recorded exchanges of the original; they are data that this project does not hold."""

import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from roadstead_octavia.db.port import Tree
from roadstead_octavia.http.operations import resource_of
from roadstead_octavia.wire.describe import Resource

SHARED = Path(os.environ.get("ROADSTEAD_SHARED") or Path(__file__).resolve().parents[5] / "shared")
TYPES = SHARED / "octavia-facts" / "types"
ROUTES = SHARED / "octavia-facts" / "routes.yaml"
RECORDINGS = SHARED / "conformance"
MISSING = "is missing; set ROADSTEAD_SHARED to the folder above it"
needs_facts = pytest.mark.skipif(
    not TYPES.is_dir(), reason=f"{TYPES} with the facts of the original {MISSING}"
)
needs_recordings = pytest.mark.skipif(
    not (RECORDINGS / "conflib.py").is_file(), reason=f"{RECORDINGS} with the recorded exchanges {MISSING}"
)

NAMES = (
    "loadbalancer",
    "listener",
    "pool",
    "member",
    "healthmonitor",
    "l7policy",
    "l7rule",
    "flavor",
    "flavorprofile",
    "availability_zone",
    "availability_zone_profile",
    "quota",
    "provider",
    "amphora",
)
RESOURCES: Mapping[str, Resource] = {name: resource_of(name) for name in NAMES}
SEGMENTS = {
    "loadbalancers": "loadbalancer",
    "listeners": "listener",
    "pools": "pool",
    "members": "member",
    "healthmonitors": "healthmonitor",
    "l7policies": "l7policy",
    "rules": "l7rule",
    "flavors": "flavor",
    "flavorprofiles": "flavorprofile",
    "availabilityzones": "availability_zone",
    "availabilityzoneprofiles": "availability_zone_profile",
    "quotas": "quota",
    "amphorae": "amphora",
}
TREE = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")
PARENTS = (
    ("load_balancer_id", "load_balancer"),
    ("pool_id", "pool"),
    ("listener_id", "listener"),
    ("l7policy_id", "l7policy"),
)
TIMES = ("created_at", "updated_at", "cert_expiration")

State = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Exchange:
    """One request of a resource's path.  state: the rows before; after: the rows after it."""

    where: str
    kind: str
    method: str
    path: str
    query: str
    resource: Resource
    body: bytes
    content_type: str | None
    status: int
    answer: str
    state: State
    after: State

    @property
    def segments(self) -> list[str]:
        return self.path.strip("/").split("/")


@cache
def exchanges() -> tuple[Exchange, ...]:
    return tuple(_exchanges())


def _exchanges() -> Iterator[Exchange]:
    if str(RECORDINGS) not in sys.path:
        sys.path.append(str(RECORDINGS))
    library = importlib.import_module("conflib")
    for path in library.data_files(str(RECORDINGS)):
        for header, test in library.read_file(path):
            for number, (step, state) in enumerate(library.walk_steps(header, test)):
                request, response = step["request"], step["expected"].get("response") or {}
                at, _, query = request["path"].partition("?")
                plain = at.removesuffix(".xml").removesuffix(".json")
                names = [SEGMENTS[name] for name in plain.split("/") if name in SEGMENTS]
                if not names or response.get("status") is None:
                    continue
                changes = step["expected"].get("changes")
                yield Exchange(
                    f"{Path(path).name}: {test['test']} [{number}]",
                    step.get("kind") or "",
                    request["method"],
                    at,
                    query,
                    RESOURCES[names[-1]],
                    (request.get("body") or "").encode(),
                    request["headers"].get("content-type"),
                    response["status"],
                    response.get("body") or "",
                    state,
                    library.state_apply(state, changes, header["primary_keys"]) if changes else state,
                )


def words(text: str) -> list[str]:
    """The words of a text in order: the original prints sets."""
    return sorted(text.replace(",", " ").split())


def timed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded row with times as the database has them."""
    return {
        name: datetime.fromisoformat(value) if name in TIMES and value else value
        for name, value in row.items()
    }


def load_balancer_of(state: State, table: str, identifier: str) -> str:
    """The load balancer that the object is below."""
    if table == "load_balancer":
        return identifier
    row = next(row for row in state[table] if row["id"] == identifier)
    column, parent = next((c, t) for c, t in PARENTS if c in row)
    return load_balancer_of(state, parent, row[column])


def tree_of(state: State, load_balancer_id: str) -> Tree:
    """The tree of one load balancer out of a state."""

    def below(table: str, column: str, ids: set[str]) -> list[dict[str, Any]]:
        return [timed(row) for row in state.get(table, ()) if row[column] in ids]

    def ids(*tables: str) -> set[str]:
        return {row["id"] for table in tables for row in rows[table]}

    rows = {"load_balancer": below("load_balancer", "id", {load_balancer_id})}
    for table in ("vip", "additional_vip", "vip_security_group", "listener", "pool"):
        rows[table] = below(table, "load_balancer_id", {load_balancer_id})
    for table in ("listener_cidr", "sni", "l7policy"):
        rows[table] = below(table, "listener_id", ids("listener"))
    for table in ("session_persistence", "member", "health_monitor"):
        rows[table] = below(table, "pool_id", ids("pool"))
    rows["l7rule"] = below("l7rule", "l7policy_id", ids("l7policy"))
    rows["tags"] = below("tags", "resource_id", ids(*TREE))
    return Tree(1, 1, rows)


def canonical(value: Any) -> Any:
    """An answer without the order of its lists and the fractions of its times."""
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted((canonical(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, str) and value[10:11] == "T" and value[19:20] == ".":
        return value[:19]
    return value
