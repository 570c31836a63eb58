"""What providers say is written: results of operations, statuses, statistics; and what they ask for is answered.

Every message is judged on the trees that it is about and carried out in one transaction that holds only if they are still the same;
otherwise it is judged again.  The same functions serve the stream and the request subjects.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
import structlog

from roadstead.subjects import MAX_TREE_BYTES
from roadstead_octavia.call import _now
from roadstead_octavia.db.port import Change, Insert, Row, Stale, Tree
from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.outside.network import Network, NetworkRefused
from roadstead_octavia.provider import shown
from roadstead_octavia.provider.conclude import Outcome, concluded, read_result
from roadstead_octavia.provider.judge import (
    KINDS,
    Fault,
    Verdict,
    judge,
    listeners_of,
    measured,
    mentioned,
)
from roadstead_octavia.provider.recent import Recent
from roadstead_octavia.provider.store import Operations, SeamDatabase

log = structlog.get_logger("roadstead.octavia.reports")

Reply = dict[str, Any]
OK: Reply = {"status_code": 200}
TRIES = 8
PAGE = 64  # load balancers that are read for one page at most
MOST_RECORDS = 20_000


class PortKept(Fault):
    """Neutron did not remove a VIP port: it may later."""


class Enders:
    """Ends operations; used by results and by the watchdog."""

    def __init__(
        self,
        database: SeamDatabase,
        network: Network,
        options: Options,
        *,
        operations: Operations,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._database = database
        self._network = network
        self._options = options
        self._operations = operations
        self._now = now

    async def tree(self, load_balancer_id: str) -> Tree | None:
        return await self._database.tree(load_balancer_id)

    async def end(self, operation: Row, outcome: Outcome, tree: Tree | None = None) -> bool:
        """Whether anything was written.  Fault; Stale when the load balancer moves all the time.

        tree: how its load balancer stood before the operation's row was read, where the caller knows it; both are read otherwise.
        """
        known = tree
        for _ in range(TRIES):
            if known is None:
                # In this order: an end that came meanwhile is in the row, or the tree's version is past.
                tree = await self._database.tree(operation["load_balancer_id"])
                fresh = await self._operations.one(operation["id"])
                if fresh is None:
                    return False
                operation = fresh
            known = None
            if tree is None:
                return False
            verdict = concluded(operation, tree, outcome, self._now())
            if verdict is None:
                return False
            try:
                await self.carry_out(verdict, [tree])
            except Stale:
                continue
            return True
        raise Stale(operation["load_balancer_id"])

    async def carry_out(self, verdict: Verdict, trees: Sequence[Tree]) -> None:
        """Remove ports, then write everything in one transaction.  Stale, ApiError; PortKept, and nothing is written."""
        for port in verdict.ports:
            try:
                await self._network.remove_vip_port(port.load_balancer_id, port.port_id)
            except (NetworkRefused, ApiError) as error:
                raise PortKept(error.text, "loadbalancers", port.load_balancer_id) from error
        versions = {tree.load_balancer["id"]: tree.version for tree in trees}
        at = self._now()
        changes = [
            Change(owner, versions[owner], tuple(writes), revises=False, at=at)
            for owner, writes in sorted(verdict.writes.items())
        ]
        if changes:
            await self._database.commit_all(changes, self._options)


class Reports:
    """Messages of providers, by what they are."""

    def __init__(
        self, database: SeamDatabase, operations: Operations, enders: Enders, recent: Recent | None = None
    ) -> None:
        self._database = database
        self._operations = operations
        self._enders = enders
        self._recent = recent or Recent()

    # ------------------------------------------------------------ said

    async def result(self, provider: str, message: Any) -> None:
        """The end of an operation.  Fault."""
        identifier, outcome = read_result(message)
        known = self._recent.take(identifier)
        tree: Tree | None
        operation, tree = known if known is not None else await self._read(identifier, message)
        if operation is None:
            log.info("result of an operation that is forgotten", operation=identifier, provider=provider)
            return
        if operation["provider"] != provider:
            raise Fault(f"operation {identifier} is not of {provider}")
        if outcome.reason is not None:
            log.warning(
                "the provider could not do it", operation=identifier, provider=provider, reason=outcome.reason
            )
        await self._enders.end(operation, outcome, tree)

    async def _read(self, identifier: str, message: Mapping[str, Any]) -> tuple[Row | None, Tree | None]:
        """The operation, and the tree as it was before its row was read where the message tells the right load balancer."""
        owner = message.get("loadbalancer_id")
        tree = await self._database.tree(owner) if isinstance(owner, str) else None
        operation = await self._operations.one(identifier)
        if operation is None or tree is None or tree.load_balancer["id"] != operation["load_balancer_id"]:
            tree = None
        return operation, tree

    async def status(self, provider: str | None, message: Any) -> Reply:
        """A status message and its reply, as the driver agent gives it."""
        try:
            await self.apply_status(provider, message)
        except Fault as fault:
            return fault_reply(fault, "status_object")
        return dict(OK)

    async def apply_status(self, provider: str | None, message: Any) -> None:
        """Fault.  A message that was seen at an older revision than the load balancer has now changes nothing."""
        revision = _revision(message)
        named = mentioned(message)
        if len(named) > MOST_RECORDS:
            raise Fault(f"more than {MOST_RECORDS} records")
        for _ in range(TRIES):
            trees = await self._trees(named)
            if revision is not None and any(tree.revision > revision for tree in trees):
                log.info("status of an older revision is dropped", provider=provider, revision=revision)
                return
            verdict = judge(message, trees, provider=provider)
            try:
                await self._enders.carry_out(verdict, trees)
            except Stale:
                continue
            return
        raise Stale("status")

    async def _trees(self, named: Sequence[tuple[str, str]]) -> list[Tree]:
        """The trees of all objects, each read once."""
        trees: dict[str, Tree] = {}
        found: set[tuple[str, str]] = set()
        for table, identifier in reversed(named):  # load balancers first: theirs usually hold all the others
            if (table, identifier) in found:
                continue
            tree = await self._database.tree_of(table, identifier)
            if tree is not None:
                trees[tree.load_balancer["id"]] = tree
                found.update((t, row["id"]) for t, _ in KINDS.values() for row in tree.of(t))
        return list(trees.values())

    async def statistics(self, provider: str | None, message: Any) -> Reply:
        try:
            await self.apply_statistics(provider, message)
        except Fault as fault:
            return fault_reply(fault, "stats_object")
        return dict(OK)

    async def apply_statistics(self, provider: str | None, message: Any) -> None:
        """Fault."""
        known = await self._operations.listeners(provider, listeners_of(message)[:MOST_RECORDS])
        rows = measured(message, known)
        if rows:
            await self._database.write([Insert("listener_statistics", row) for row in rows])

    # ------------------------------------------------------------ asked

    async def get(self, provider: str | None, message: Any) -> Reply:
        """One object; empty when it is not there.  Fault for a message without a kind."""
        if not isinstance(message, Mapping) or "object" not in message:
            raise Fault("object is missing")
        kind, identifier = message["object"], message.get("id")
        if not isinstance(kind, str) or kind not in KINDS or not isinstance(identifier, str):
            return {}
        tree = await self._database.tree_of(KINDS[kind][0], identifier)
        if tree is not None and provider is not None and tree.load_balancer["provider"] != provider:
            return {}
        return shown.one(kind, identifier, tree)

    async def tree(self, provider: str, message: Any) -> Reply:
        """One tree (`loadbalancer_id`, or `object` and `id` of something in it), or a page of all (`after`, `bytes`).  Fault."""
        if not isinstance(message, Mapping):
            raise Fault("the message is not an object")
        if "loadbalancer_id" in message:
            return {"tree": await self._tree(provider, "load_balancer", message["loadbalancer_id"])}
        if "object" in message:
            kind = message["object"]
            if not isinstance(kind, str) or kind not in KINDS:
                raise Fault(f"object is none of {', '.join(KINDS)}")
            return {"tree": await self._tree(provider, KINDS[kind][0], message.get("id"))}
        after = message.get("after") or ""
        limit = message.get("bytes", MAX_TREE_BYTES)
        if not isinstance(after, str) or isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise Fault("after is an id, bytes a whole number above 0")
        return await self._page(provider, after, min(limit, MAX_TREE_BYTES))

    async def _tree(self, provider: str, table: str, identifier: Any) -> Reply | None:
        tree = await self._database.tree_of(table, identifier) if isinstance(identifier, str) else None
        if tree is None or tree.load_balancer["provider"] != provider:
            return None
        if tree.load_balancer["provisioning_status"] == "DELETED":
            return None
        return shown.tree(tree)

    async def _page(self, provider: str, after: str, limit: int) -> Reply:
        """At least one tree, however large; next is None on the last page."""
        ids = await self._operations.ids(provider, after, PAGE + 1)
        trees: list[Reply] = []
        size, last = 0, None
        for identifier in ids[:PAGE]:
            found = await self._tree(provider, "load_balancer", identifier)
            if found is not None:
                size += len(orjson.dumps(found))
                if trees and size > limit:
                    return {"trees": trees, "next": last}
                trees.append(found)
            last = identifier
        return {"trees": trees, "next": last if len(ids) > PAGE else None}

    async def operations(self, message: Any) -> Reply:
        """The newest operations, for people: what was asked of providers and what came of it."""
        given = message if isinstance(message, Mapping) else {}
        owner, limit = given.get("loadbalancer_id"), given.get("limit", 50)
        if (
            not (owner is None or isinstance(owner, str))
            or isinstance(limit, bool)
            or not isinstance(limit, int)
        ):
            raise Fault("loadbalancer_id is an id, limit a whole number")
        rows = await self._operations.recent(owner, max(1, min(limit, 500)))
        return {"operations": [operation_view(row) for row in rows]}


def operation_view(row: Row) -> Reply:
    """An operation as people read it."""
    times = ("created_at", "deadline", "next_send_at", "ended_at")
    return {
        "id": row["id"],
        "loadbalancer_id": row["load_balancer_id"],
        **{name: row[name] for name in ("revision", "provider", "method", "state", "reason", "sends")},
        **{name: row[name].isoformat(timespec="milliseconds") if row[name] else None for name in times},
        "objects": [{"table": t["table"], "id": t["id"]} for t in row["touched"]],
    }


def fault_reply(fault: Fault, name: str) -> Reply:
    """The driver agent's words for it."""
    reply: Reply = {"status_code": 500, "fault_string": fault.text}
    if fault.kind is not None:
        reply[name] = fault.kind
        if name == "status_object":
            reply["status_object_id"] = fault.id
    return reply


def failed_reply(error: Exception) -> Reply:
    """For trouble that is ours and may pass."""
    text = error.text if isinstance(error, ApiError) else "the report could not be carried out; send it again"
    return {"status_code": 500, "fault_string": text}


def _revision(message: Any) -> int | None:
    revision = message.get("revision") if isinstance(message, Mapping) else None
    if revision is None:
        return None
    if isinstance(revision, bool) or not isinstance(revision, int):
        raise Fault("revision is no whole number")
    return revision
