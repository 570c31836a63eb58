"""Requests in process: an ASGI client, and parts that answer from plain rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from roadstead_octavia.call import Caller, Parts
from roadstead_octavia.db.port import Page, Row
from roadstead_octavia.errors import refuse
from roadstead_octavia.http.app import App
from roadstead_octavia.http.operations import load_what_is_there
from roadstead_octavia.options import Options
from roadstead_octavia.policy_engine import PolicyEngine

PROJECT = "0c7a1b52e64d4f6e9f31c8d27a5be014"
OTHER = "7d2f9a64c1b84f0ab5a0e7c3d9186e52"
LB = "e2902169-1ab5-4144-8579-77d172991d19"
POOL = "3c4326af-a389-4e0b-98e3-1b950bd37c00"
MEMBER = "6b1e5568-538b-4340-93b1-9f427a2437cb"


@dataclass(frozen=True)
class Got:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def text(self) -> str:
        return self.raw.decode()


async def ask(
    app: Any,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | str | Mapping[str, Any] | None = None,
    *,
    chunk: int = 65536,
) -> Got:
    """One request.  path: with its query.  A mapping as body is sent as JSON."""
    given = {"host": "localhost", **{k.lower(): v for k, v in (headers or {}).items()}}
    if isinstance(body, Mapping):
        given.setdefault("content-type", "application/json")
        body = json.dumps(body)
    raw = body.encode() if isinstance(body, str) else body or b""
    where, _, query = path.partition("?")
    parts = [raw[i : i + chunk] for i in range(0, len(raw), chunk)] or [b""]
    sent: list[Any] = []

    async def receive() -> Any:
        part = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": unquote(where),
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode("latin-1")) for k, v in given.items()],
        "scheme": "http",
        "server": ("localhost", 80),
    }
    await app(scope, receive, send)
    start, *rest = sent
    return Got(
        start["status"],
        {k.decode(): v.decode() for k, v in start["headers"]},
        b"".join(m.get("body", b"") for m in rest),
    )


@dataclass
class Rows:
    """A database of a few rows; remembers the pages that it was asked for."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    pages: list[Page] = field(default_factory=list)
    fault: Exception | None = None
    looked_up: list[tuple[str, Row]] = field(default_factory=list)

    async def row(self, table: str, key: Row) -> Row | None:
        self.looked_up.append((table, key))
        if self.fault is not None:
            raise self.fault
        rows = self.tables.get(table, [])
        return next((r for r in rows if all(r.get(k) == v for k, v in key.items())), None)

    async def page(self, query: Page) -> Sequence[Row]:
        self.pages.append(query)
        if self.fault is not None:
            raise self.fault
        rows = self.tables.get(query.table, [])
        wanted = dict(query.parent)
        if query.project_id is not None:
            wanted["project_id"] = query.project_id
        found = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
        for one in query.filters:
            found = [r for r in found if (r[one.table] if one.table else r).get(one.column) in one.values]
        for column, descends in reversed(query.sort):
            found.sort(key=lambda r: str(r.get(column)), reverse=descends)
        if query.marker is not None:
            ids = [r["id"] for r in found]
            if query.marker not in ids:
                raise refuse("InvalidMarker", key=query.marker)
            found = found[ids.index(query.marker) + 1 :]
        return found[: query.limit]


class Missing:
    """Nobody should have asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


@dataclass
class Someone:
    """An identity that is always the same; who may be an exception."""

    who: Caller | Exception

    async def caller(self, headers: Mapping[str, str]) -> Caller:
        if isinstance(self.who, Exception):
            raise self.who
        return self.who


def person(*roles: str, project: str | None = PROJECT, scope: str | None = None) -> Caller:
    values = {"user_id": "u", "project_id": project, "roles": list(roles), "system_scope": scope}
    is_admin = PolicyEngine().is_admin(values)
    return Caller("u", project, roles, is_admin, scope, "token", {**values, "is_admin": is_admin})


ADMIN = person("admin", "member", "reader")
READER = person("reader")
STRANGER = person("reader", "member", project=OTHER)


def parts(rows: Rows) -> Parts:
    nobody: Any = Missing()
    database: Any = rows
    return Parts(database, nobody, nobody, nobody, PolicyEngine(), dispatch=lambda *_: None)


def an_app(rows: Rows | None = None, who: Caller | Exception = ADMIN, **more: Any) -> App:
    options = replace(Options(), **more.pop("options", {}))
    more.setdefault("operations", load_what_is_there())
    return App(parts(rows or Rows()), options, Someone(who), **more)


ROOT = Path(__file__).resolve().parents[4]
