"""Operations run against one load balancer in memory: a database that applies changes as a fresh read would show them, and parts that
say yes and remember what they were asked."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from roadstead_octavia.call import Answer, Call, Caller, Operation, Parts
from roadstead_octavia.db.port import Change, Insert, Row, Stale, Tree
from roadstead_octavia.db.rows import made
from roadstead_octavia.db.tree import after
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.options import Options

PROJECT = "f0000000000000000000000000000001"
LB = "10000000-0000-4000-8000-000000000001"
AT = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
STATES = {
    "provisioning_status": "ACTIVE",
    "operating_status": "ONLINE",
    "enabled": True,
    "project_id": PROJECT,
}
OPTIONS = Options(
    enabled_provider_drivers={"noop": "Says yes."}, default_provider_driver="noop", auth_strategy="testing"
)
_numbers = itertools.count()


def a_row(table: str, **given: Any) -> dict[str, Any]:
    """A row that a load balancer in order has."""
    states = STATES if table not in ("vip", "sni", "session_persistence") else {}
    return made(table, {**states, **given}, AT, next(_numbers))


class Memory:
    """The `Database` of one load balancer.  others: rows of other load balancers by table.  limits: the project's quota row."""

    def __init__(
        self, tree: Tree, *, limits: Row | None = None, others: Mapping[str, Sequence[Row]] = {}
    ) -> None:
        self.now = tree
        self.limits = limits
        self.others = others
        self.commits: list[Change] = []
        self.moves_under = 0  # how many commits come too late

    async def tree_of(self, table: str, identifier: str) -> Tree | None:
        return self.now if self.now.get(table, identifier) is not None else None

    async def row(self, table: str, key: Row) -> Row | None:
        if table == "quotas":
            return self.limits
        rows = (*self.now.of(table), *self.others.get(table, ()))
        return next((row for row in rows if all(row[k] == v for k, v in key.items())), None)

    async def usage(self, project_id: str) -> Mapping[str, int]:
        tables = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")
        return {table: len(self.now.of(table)) for table in tables}

    def after(self, tree: Tree | None, change: Change) -> Tree:
        return after(tree, change)

    async def commit(self, change: Change, options: Options) -> int:
        if self.moves_under:
            self.moves_under -= 1
            raise Stale(change.load_balancer_id)
        self.commits.append(change)
        self.now = after(self.now, change)
        return self.now.revision


class Yes:
    """Provider, network, key manager and policy that refuse nothing but what `refused` names."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)
        self.told: list[tuple[str, Sequence[Any]]] = []
        self.asked: list[str] = []
        self.certificates: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        self.told.append((method, arguments))
        if method in self.refused:
            raise refuse("ProviderUnsupportedOption", prov=provider, user_msg="no")

    async def find(self, kind: str, identifier: str, **_: Any) -> Mapping[str, Any] | None:
        self.asked.append(identifier)
        return None if identifier in self.refused else {"id": identifier}

    async def grant(self, reference: str, token: str | None) -> None:
        if reference in self.refused:
            raise refuse("CertificateRetrieval", ref=reference)

    async def unreadable(self, references: Sequence[str], token: str | None) -> Sequence[str]:
        return [one for one in references if one in self.refused]

    async def secret(self, reference: str, token: str | None) -> str | None:
        return self.texts.get(reference)

    async def bundles(self, tls: str | None, sni: Sequence[str], token: str | None) -> Any:
        if tls is not None and tls not in self.certificates:
            raise refuse("CertificateRetrieval", ref=tls)
        return (self.certificates[tls] if tls else None), [self.certificates.get(one, {}) for one in sni]

    def allows(self, call: Any, rule: str, project_id: str | None) -> bool:
        return rule not in self.refused

    def enforce(self, call: Any, rule: str, project_id: str | None) -> None:
        if not self.allows(call, rule, project_id):
            raise refuse("PolicyForbidden")


class World:
    """A load balancer with these rows beside its own; what is done to it goes through `do`."""

    def __init__(self, *rows: tuple[str, dict[str, Any]], options: Options = OPTIONS, **given: Any) -> None:
        own = [("load_balancer", a_row("load_balancer", id=LB, provider="noop", topology="SINGLE"))]
        own.append(("vip", a_row("vip", load_balancer_id=LB, ip_address="198.0.2.5", octavia_owned=False)))
        held: dict[str, list[Row]] = {}
        for table, row in (*own, *rows):
            held.setdefault(table, []).append(row)
        self.database = Memory(Tree(1, 1, held), **given)
        self.yes = Yes()
        self.options = options
        self.dispatched: list[Any] = []

    @property
    def tree(self) -> Tree:
        return self.database.now

    def row(self, table: str, identifier: str) -> Row:
        row = self.tree.get(table, identifier)
        assert row is not None
        return row

    async def do(
        self, operation: Operation, body: Mapping[str, Any] | None = None, *ids: str, **query: str
    ) -> Answer:
        parts: Any = Parts(
            database=self.database,  # type: ignore[arg-type]  # the part of it that operations of children use
            provider=self.yes,  # type: ignore[arg-type]  # nothing is asked that returns a value
            network=self.yes,  # type: ignore[arg-type]  # look-ups alone
            keys=self.yes,
            policy=self.yes,
            dispatch=lambda asked, _tree, _revision: self.dispatched.append(asked),
        )
        caller = Caller("user", PROJECT, credentials={})
        return await operation(Call(caller, self.options, parts, ids, tuple(query.items()), dict(body or {})))

    async def refusal(
        self, operation: Operation, body: Mapping[str, Any] | None = None, *ids: str, **query: str
    ) -> ApiError:
        """What it is refused with; nothing may have been written or told to anybody after that."""
        before = self.tree
        try:
            await self.do(operation, body, *ids, **query)
        except ApiError as error:
            assert self.tree is before
            assert not self.dispatched
            return error
        raise AssertionError("it was not refused")

    def settle(self) -> None:
        """Everything ACTIVE again, as a provider that is done leaves it."""
        rows = {
            table: [
                {**row, "provisioning_status": "ACTIVE"} if "provisioning_status" in row else row
                for row in of
            ]
            for table, of in self.tree.rows.items()
        }
        self.database.now = replace(self.tree, rows=rows)
        self.dispatched.clear()


def inserted(world: World, table: str) -> list[Row]:
    """Rows that the last commit made."""
    writes = world.database.commits[-1].writes
    return [write.row for write in writes if isinstance(write, Insert) and write.table == table]
