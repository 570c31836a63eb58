"""What people ask of a running worker: how a load balancer stands, what differs, and to put it right now.

Asked as questions of the provider protocol whose names begin with `operate_`; every replica can answer, from its own local copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from roadstead_ovn import reports
from roadstead_ovn.api import Api
from roadstead_ovn.balancer import Balancer, balancer_of
from roadstead_ovn.facts import Facts
from roadstead_ovn.health import health_of
from roadstead_ovn.northbound.plan import RowChange, plan
from roadstead_ovn.northbound.port import Northbound
from roadstead_ovn.render import render
from roadstead_ovn.rows import LoadBalancerRow
from roadstead_ovn.runner import Runner
from roadstead_ovn.store.port import Json, Store
from roadstead_ovn.subnets import Subnets, subnets_of

PREFIX = "operate_"
REASON = "operator"
LONGEST_ID = 36
_COLUMNS = {"health_check": "health_checks"}


class Operate:
    """RequestFailed, NetworkRefused, Unready, StoreUnavailable and BadTree from everything."""

    def __init__(
        self, store: Store, northbound: Northbound, api: Api, subnets: Subnets, runner: Runner
    ) -> None:
        self._store = store
        self._nb = northbound
        self._api = api
        self._subnets = subnets
        self._runner = runner

    async def answer(self, method: str, arguments: Sequence[Any]) -> Json:
        """The reply's body, as of any question."""
        questions = {"show": self.show, "diff": self.diff, "sync": self.sync}
        work = questions.get(method.removeprefix(PREFIX))
        if work is None:
            return fault(f"{method} is no question; there are {', '.join(questions)}")
        identifier = arguments[0] if arguments and isinstance(arguments[0], str) else ""
        if len(identifier) > LONGEST_ID or (not identifier and work != self.sync):
            return fault("give the id of a load balancer")
        return {"ok": True, "returns": await work(identifier)}

    async def sync(self, identifier: str) -> Json:
        """Make it due now; all of them without an id."""
        if identifier:
            await self._store.learn({identifier: 0}, {identifier}, REASON, 0.0)
            due = 1
        else:
            due = await self._store.wake_all(REASON, 5.0)
        self._runner.nudge()
        return {"due": due}

    async def diff(self, identifier: str) -> Json:
        """What a pass would write, column by column; nothing is changed."""
        tree, balancer, facts = await self._read(identifier)
        if tree is None:
            rows = {identifier: self._nb.known()[identifier]} if identifier in self._nb.known() else {}
            return {"loadbalancer_id": identifier, "tree": None, "rows_without_tree": rows, "differences": []}
        wanted = render(balancer, facts)
        what = plan(identifier, int(tree["revision"]), wanted, self._nb.found(identifier, wanted))
        found = [difference for change in what.changes for difference in _differences(change)]
        found += [
            {"row": f"switch port {port}", "column": "addresses", "found": list(has), "wanted": list(gets)}
            for port, (has, gets) in what.addresses.items()
        ]
        found += [
            {"row": f"NAT {address}", "column": "external_mac, logical_port", "found": "set", "wanted": None}
            for address in sorted(what.unpinned)
        ]
        return {
            "loadbalancer_id": identifier,
            "revision": tree["revision"],
            "newer": what.newer,
            "differences": found,
        }

    async def show(self, identifier: str) -> Json:
        """Rows, facts, statuses and the work row."""
        tree, balancer, facts = await self._read(identifier)
        wanted = render(balancer, facts)
        found = self._nb.found(identifier, wanted)
        statuses: Mapping[str, Any] = {}
        if balancer is not None:
            now = reports.standings(health_of(balancer, facts), balancer)
            statuses = {
                key: {"provisioning": balancer.statuses.get(key, ("", ""))[0], "operating": value}
                for key, value in now.items()
            }
        return {
            "loadbalancer_id": identifier,
            "revision": tree["revision"] if tree else None,
            "rows": [{"handle": r.handle, "revision": r.revision, **_row(r.row)} for r in found.rows],
            "facts": asdict(facts),
            "statuses": statuses,
            "work": await self._store.view(identifier),
        }

    async def _read(self, identifier: str) -> tuple[Json | None, Balancer | None, Facts]:
        tree = await self._api.tree(identifier)
        balancer = balancer_of(tree) if tree is not None else None
        if balancer is None:
            return tree, None, Facts()
        await self._subnets.of([balancer])
        facts = replace(self._nb.facts(balancer), subnets=self._subnets.known(sorted(subnets_of(balancer))))
        return tree, balancer, facts


def fault(text: str) -> Json:
    """The reply to a question that cannot be answered, for the person who asked."""
    return {"ok": True, "returns": {"fault": text}}


def _row(row: LoadBalancerRow) -> dict[str, Any]:
    values = asdict(row)
    del values["freedom"]
    return {key: sorted(value) if isinstance(value, frozenset) else value for key, value in values.items()}


def _differences(change: RowChange) -> list[dict[str, Any]]:
    row = change.after or (change.before.row if change.before else None)
    name = f"Load_Balancer {row.protocol or '-'}" if row else "Load_Balancer"
    if change.before is None or change.after is None:
        return [
            {
                "row": name,
                "column": "*",
                "found": change.before is not None,
                "wanted": change.after is not None,
            }
        ]
    has, gets = _row(change.before.row), _row(change.after)
    return [
        {"row": name, "column": column, "found": has[key], "wanted": gets[key]}
        for column in (*change.columns, "switches", "routers")
        if has[key := _COLUMNS.get(column, column)] != gets[key]
    ]
