"""Requests of people: apply, get, list, delete, why, history, pause, resume, references (events.md section 3).

Validation is the same function that ingest uses.  What is accepted is in SPEC and in the database before the caller is told.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import iso, parse_time
from roadstead.events import Refusal, canonical, dump, spec_of
from roadstead.reconcile import rules
from roadstead.reconcile.handlers import Handlers, Publisher, PublishFailed, error_reply
from roadstead.reconcile.ingest import Ingested, IngestResult, check
from roadstead.reconcile.kind import Kind, Metadata, Problem
from roadstead.reconcile.past import stood, superseding, told_in_order
from roadstead.reconcile.status import status_document
from roadstead.reconcile.views import Directory, StatusView
from roadstead.store.api import Change, Query, Row
from roadstead.subjects import BadSubject, Key, parse_key, parse_reference, spec_subject

MAX_PAGE = 500
# Times are told cut to milliseconds; one that is given means all of its own.
WHOLE = timedelta(microseconds=999)
MAX_REPLY = 768 * 1024


@dataclass(frozen=True)
class Ask:
    """One request of a person: where, about which kind, and with what."""

    region: str
    project: str
    kind: Kind[Any, Any, Any]
    payload: Mapping[str, Any]
    headers: Mapping[str, str]


Verb = Callable[[Ask], Awaitable[dict[str, Any]]]


@dataclass
class Api:
    """Answers `api.<region>.<project>.<kind>.<verb>` and `rpc.<service>.reference.{add,remove}` of one service."""

    handlers: Handlers
    publisher: Publisher
    extras: Mapping[str, Any] = field(default_factory=dict)
    # further verbs by (kind, verb), e.g. ("identity", "credentials") or ("flavor", "list")
    more: dict[tuple[str, str], Callable[[str, str, Mapping[str, Any]], Awaitable[dict[str, Any]]]] = field(
        default_factory=dict
    )

    async def request(
        self, subject: str, payload: Mapping[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """The reply to any api subject; never raises for what the caller sent."""
        parts = subject.split(".")
        if len(parts) < 5:
            return error_reply(
                "BAD_SUBJECT", "a request subject is api.<region>.<project>.<kind>.<verb>", 400
            )
        _, region, project, kind_name, *rest = parts
        verb = ".".join(rest)
        special = self.more.get((kind_name, verb))
        if special is not None:
            return await special(region, project, payload)
        kind = self.handlers.kinds.get(kind_name)
        method: Verb | None = {
            "apply": self._apply,
            "get": self._get,
            "list": self._list,
            "delete": self._delete,
            "why": self._why,
            "history": self._history,
            "pause": self._pause,
            "resume": self._resume,
            "reference.add": self._reference_add,
            "reference.remove": self._reference_remove,
        }.get(verb)
        if kind is None or method is None:
            return error_reply("UNKNOWN_REQUEST", f"nothing answers {kind_name}.{verb}", 404)
        return await method(Ask(region, project, kind, payload, headers))

    # ------------------------------------------------------------ write

    async def _apply(self, ask: Ask) -> dict[str, Any]:
        message = spec_of(ask.payload)
        if isinstance(message, Refusal):
            return error_reply(message.code, message.message, 400, message.details)
        if message.delete:
            return error_reply("BAD_ENVELOPE", "use the delete request to delete", 400)
        key = _key(ask.region, ask.project, ask.kind, message.metadata, message.spec)
        if isinstance(key, dict):
            return key
        row = await self.handlers.store.get(ask.kind.name, key.id)
        if row is not None and (row.key.region, row.key.project) != (key.region, key.project):
            return error_reply("ID_TAKEN", "this id exists under another project or region", 403)
        if row is not None and row.deleting and row.gone_at is None:
            return error_reply(
                "DELETING", f"the {ask.kind.name} is being deleted; wait until it is gone", 409
            )
        hidden = _region_hidden(self.handlers.directory, key, message.metadata)
        if hidden is not None:
            return hidden
        problems, metadata, warnings = check(ask.kind, key, message, row)
        if not problems:
            problems = self._inventory(ask.kind, key, metadata, message.spec, row)
        if problems:
            return _refused(problems)
        body = {"metadata": metadata, "spec": dict(message.spec)}
        if row is not None and row.gone_at is None and ask.payload.get("createOnly"):
            return error_reply("ALREADY_EXISTS", f"a {ask.kind.name} of this id exists already", 409)
        try:
            position = await self.publisher.publish(spec_subject(key), dump(body), _forwarded(ask.headers))
        except PublishFailed as error:
            if error.conflict:
                return error_reply(
                    "CONFLICT", "somebody else edited the resource meanwhile; read it and try again", 409
                )
            return error_reply(
                "UNAVAILABLE", "the broker did not store the spec; it is safe to try again", 503
            )
        result = await self.handlers.spec(spec_subject(key), dump(body), position, ask.headers)
        if not isinstance(result, IngestResult):
            return error_reply(result.code, result.message, 422, result.details)
        what = result.what
        if what is Ingested.OLDER and result.row is not None and result.row.refusal == ():
            # The service's own consumer was quicker than this request.
            same = row is not None and row.gone_at is None and row.generation == result.generation
            what = Ingested.UNCHANGED if same else Ingested.ACCEPTED
        reply: dict[str, Any] = {"id": key.id, "generation": result.generation, "result": what.value}
        if warnings:
            reply["warnings"] = warnings
        return reply

    def _inventory(
        self,
        kind: Kind[Any, Any, Any],
        key: Key,
        metadata: Mapping[str, Any],
        spec: Mapping[str, Any],
        row: Row | None,
    ) -> list[Problem]:
        stored = (
            rules.resource_of(kind, row)
            if row is not None and row.gone_at is None and row.generation
            else None
        )
        parsed = kind.spec.model_validate(spec)
        return kind.at_apply(
            key, Metadata.model_validate(metadata), parsed, stored, self.handlers.directory, self.extras
        )

    async def _delete(self, ask: Ask) -> dict[str, Any]:
        row = await self._row(ask)
        if isinstance(row, dict):
            return row
        cascade = ask.payload.get("cascade") is True
        if row.consumers and not cascade:
            names = ", ".join(row.consumers[:10])
            text = f"the {ask.kind.name} is in use and cannot be deleted: {names}"
            return error_reply("IN_USE", text, 403, [{"consumer": c} for c in row.consumers])
        body: dict[str, Any] = {"delete": True}
        if cascade:
            body["cascade"] = True
        try:
            position = await self.publisher.publish(
                spec_subject(row.key), dump(body), _forwarded(ask.headers)
            )
        except PublishFailed:
            return error_reply(
                "UNAVAILABLE", "the broker did not store the delete; it is safe to try again", 503
            )
        result = await self.handlers.spec(spec_subject(row.key), dump(body), position, ask.headers)
        what = result.what.value if isinstance(result, IngestResult) else "refused"
        return {"id": row.key.id, "result": what, "accepted": True}

    # ------------------------------------------------------------ read

    async def _row(self, ask: Ask) -> Row | dict[str, Any]:
        ident = ask.payload.get("id")
        if not isinstance(ident, str) or not ident:
            return error_reply("ID_MISSING", "the request needs the id of the resource", 400)
        row = await self.handlers.store.get(ask.kind.name, ident)
        if (
            row is None
            or row.gone_at is not None
            or (row.key.region, row.key.project) != (ask.region, ask.project)
        ):
            return error_reply("NOT_FOUND", f"there is no {ask.kind.name} {ident} here", 404)
        return row

    async def _get(self, ask: Ask) -> dict[str, Any]:
        row = await self._row(ask)
        if isinstance(row, dict):
            return row
        if ask.kind.name == "region" and not _visible(row.spec, ask.payload.get("organizationId")):
            return error_reply("NOT_FOUND", f"there is no region {row.key.id} here", 404)
        return status_document(row)

    async def _list(self, ask: Ask) -> dict[str, Any]:
        limit = ask.payload.get("limit", 100)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_PAGE:
            return error_reply("BAD_LIMIT", f"limit must be a whole number from 1 to {MAX_PAGE}", 400)
        tags = ask.payload.get("tags") or {}
        texts = {k: ask.payload.get(k) for k in ("identity", "network", "name", "marker")}
        if not isinstance(tags, dict) or any(
            v is not None and not isinstance(v, str) for v in texts.values()
        ):
            return error_reply("BAD_FILTER", "filters are texts, tags an object of name and value", 400)
        everywhere = ask.project == "_" and ask.payload.get("allProjects") is True
        rows = await self.handlers.store.list(
            Query(
                ask.kind.name,
                region=None if ask.kind.name == "region" and ask.payload.get("allRegions") else ask.region,
                project=None if everywhere else ask.project,
                identity=texts["identity"],
                network=texts["network"],
                name=texts["name"],
                tags=tuple(sorted((str(k), str(v)) for k, v in tags.items())),
                limit=limit,
                marker=texts["marker"],
            )
        )
        items: list[dict[str, Any]] = []
        size = 0
        for row in rows:
            if ask.kind.name == "region" and not _visible(row.spec, ask.payload.get("organizationId")):
                continue
            document = status_document(row)
            size += len(dump(document))
            if items and size > MAX_REPLY:
                return {"items": items, "next": items[-1]["metadata"]["id"]}
            items.append(document)
        full = len(rows) == limit
        return {"items": items, "next": rows[-1].key.id if full and rows else None}

    async def _history(self, ask: Ask) -> dict[str, Any]:
        row = await self._row_or_tombstone(ask)
        if isinstance(row, dict):
            return row
        at = _time(ask.payload.get("at"))
        if isinstance(at, dict):
            return at
        if at is not None:
            at += WHOLE
        entries = await self.handlers.store.history(
            row.key, until=at, limit=_bound(ask.payload.get("limit"), 200, 1000)
        )
        reply: dict[str, Any] = {
            "id": row.key.id,
            "entries": told_in_order(entries),
        }
        if at is None:
            return {**reply, "status": status_document(row)}
        past = await stood(self.handlers.store, row, at)
        reply |= {"at": iso(at), "status": past.document}
        return {**reply, "note": past.note} if past.note else reply

    async def _why(self, ask: Ask) -> dict[str, Any]:
        """Every cloud write with its event, rule and request id, newest decision last."""
        row = await self._row_or_tombstone(ask)
        if isinstance(row, dict):
            return row
        entries = await self.handlers.store.history(
            row.key, limit=_bound(ask.payload.get("limit"), 500, 2000)
        )
        decided = {e.body["decisionId"]: (e.at, e.body) for e in entries if e.kind == "decided"}
        chain: list[dict[str, Any]] = []
        writes: dict[str, list[dict[str, Any]]] = {}
        for e in entries:
            if e.kind == "acted":
                writes.setdefault(str(e.body.get("decisionId")), []).append(dict(e.body))
        for ident, (at, body) in decided.items():
            chain.append({"at": iso(at), **body, "writes": writes.pop(ident, [])})
        for ident, orphans in writes.items():
            chain.append(
                {
                    "at": None,
                    "decisionId": ident,
                    "rule": None,
                    "why": "decision not recorded",
                    "writes": orphans,
                }
            )
        last = dict(row.decided or {})
        return {"id": row.key.id, "chain": chain, "last": last, "pending": [dict(i) for i in row.intents]}

    async def _row_or_tombstone(self, ask: Ask) -> Row | dict[str, Any]:
        ident = ask.payload.get("id")
        row = await self.handlers.store.get(ask.kind.name, str(ident)) if isinstance(ident, str) else None
        if row is None or (row.key.region, row.key.project) != (ask.region, ask.project):
            return error_reply("NOT_FOUND", f"there is no {ask.kind.name} {ident} here", 404)
        return row

    # ------------------------------------------------------------ pause and references

    async def _pause(self, ask: Ask) -> dict[str, Any]:
        until = _time(ask.payload.get("until"))
        return until if isinstance(until, dict) else await self._paused(ask, on=True, until=until)

    async def _resume(self, ask: Ask) -> dict[str, Any]:
        return await self._paused(ask, on=False, until=None)

    async def _paused(self, ask: Ask, *, on: bool, until: datetime | None) -> dict[str, Any]:
        row = await self._row(ask)
        if isinstance(row, dict):
            return row
        change = await self.handlers.store.change(
            row.key, lambda r, now: superseding(r, rules.pause(r, now, on=on, until=until), now)
        )
        self.handlers.on_outbox()
        self.handlers.nudge()
        return dict(change.result)

    async def _reference_add(self, ask: Ask) -> dict[str, Any]:
        """External consumers; the strings of our own kinds are refused, only their services take those."""
        return await self._reference(ask, add=True)

    async def _reference_remove(self, ask: Ask) -> dict[str, Any]:
        return await self._reference(ask, add=False)

    async def _reference(self, ask: Ask, *, add: bool) -> dict[str, Any]:
        row = await self._row(ask)
        if isinstance(row, dict):
            return row
        consumer = ask.payload.get("consumer")
        if not isinstance(consumer, str) or not 3 <= len(consumer) <= 253 or "/" not in consumer:
            return error_reply("BAD_CONSUMER", "consumer must be {plural}.{group}/{id}", 400)
        if parse_reference(consumer) is not None:
            return error_reply(
                "BAD_CONSUMER", "references of this software's own kinds are taken by its services only", 403
            )
        if add and row.deleting:
            return error_reply("DELETING", f"the {ask.kind.name} is being deleted", 400)
        rule = rules.reference_add if add else rules.reference_remove
        change = await self.handlers.store.change(row.key, lambda r, now: rule(r, now, consumer=consumer))
        self.handlers.on_outbox()
        self.handlers.nudge()
        return {"ok": True} if "error" not in change.result else dict(change.result)

    async def rpc(self, verb: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """`rpc.<service>.<verb>`: references between services, and what the service added."""
        special = self.handlers.more.get(verb)
        if special is not None:
            return await special(payload)
        if verb not in ("reference.add", "reference.remove"):
            return error_reply("UNKNOWN_REQUEST", f"nothing answers {verb}", 404)
        try:
            kind, ident, region, consumer = (str(payload[k]) for k in ("kind", "id", "region", "consumer"))
        except KeyError as error:
            return error_reply("BAD_REQUEST", f"the request lacks {error.args[0]}", 400)
        if kind not in self.handlers.kinds:
            return error_reply("UNKNOWN", f"the kind {kind} is not served here", 404)
        rule = rules.reference_add if verb == "reference.add" else rules.reference_remove

        def inside_region(row: Row | None, now: datetime) -> Change:
            if row is not None and row.key.region != region:
                return Change(
                    result=error_reply("UNKNOWN", f"there is no {kind} {ident} in this region", 404)
                )
            return rule(row, now, consumer=consumer)

        # The store finds a row by kind and id alone, so the project need not be known here.
        change = await self.handlers.store.change(Key(region, "_", kind, ident), inside_region)
        self.handlers.on_outbox()
        self.handlers.nudge()
        return dict(change.result)


def _key(
    region: str, project: str, kind: Kind[Any, Any, Any], metadata: Mapping[str, Any], spec: Mapping[str, Any]
) -> Key | dict[str, Any]:
    """The key an apply is about: the id given, the one the name fixes, or a new one."""
    ident = metadata.get("id")
    if ident is None:
        try:
            ident = kind.id_of(Metadata.model_validate(dict(metadata)), kind.spec.model_validate(dict(spec)))
        except ValueError:
            ident = None  # the validation that follows names every problem
        ident = ident or str(uuid.uuid4())
    try:
        return parse_key(f"api.{region}.{project}.{kind.name}.{ident}")
    except BadSubject as error:
        return error_reply("BAD_SUBJECT", str(error), 400)


def _region_hidden(directory: Directory, key: Key, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """An unknown region, or one that the organization may not see, is 404 (REF-067); a region itself may be new."""
    if key.kind == "region":
        return None
    view: StatusView | None = directory.get("region", key.region)
    if view is None or view.gone or not _visible(view.spec, metadata.get("organizationId")):
        return error_reply(
            "REGION_NOT_FOUND", f"there is no region {key.region}; `roadstead region list` shows them", 404
        )
    return None


def _visible(spec: Mapping[str, Any], organization: Any) -> bool:
    """Absent or empty list: visible to all; no organization given: a caller with global read."""
    listed = ((spec.get("security") or {}).get("organizations")) or []
    return not listed or organization is None or organization in [o.get("id") for o in listed]


def _refused(problems: list[Problem]) -> dict[str, Any]:
    details = [{"code": p.code, "field": p.field, "message": p.message} for p in problems]
    first = problems[0]
    return error_reply(first.code, "; ".join(p.message for p in problems), first.status, details)


def _forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    kept = ("traceparent", "tracestate", "Nats-Expected-Last-Subject-Sequence")
    return {k: v for k, v in headers.items() if k in kept or k.startswith("ce-")}


def _time(value: Any) -> datetime | dict[str, Any] | None:
    if value is None:
        return None
    try:
        return parse_time(str(value))
    except ValueError:
        return error_reply("BAD_TIME", "times are RFC 3339, for example 2026-01-31T12:00:00Z", 400)


def _bound(value: Any, default: int, most: int) -> int:
    return min(value, most) if isinstance(value, int) and value > 0 else default


def same_spec(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return canonical(a) == canonical(b)


__all__ = ["Api", "Ingested", "same_spec"]
