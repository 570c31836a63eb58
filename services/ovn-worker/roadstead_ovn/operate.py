"""What people ask of a running worker: how a load balancer stands, what differs, and to put it right now.

Asked as questions of the provider protocol whose names begin with `operate_`; every replica can answer, from its own local copy.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from roadstead_ovn import reports
from roadstead_ovn.api import Api
from roadstead_ovn.balancer import BadTree, Balancer, balancer_of
from roadstead_ovn.facts import Facts
from roadstead_ovn.health import health_of
from roadstead_ovn.northbound.plan import Plan, RowChange, adopted, plan
from roadstead_ovn.northbound.port import Northbound
from roadstead_ovn.passes import ADOPT
from roadstead_ovn.render import render
from roadstead_ovn.rows import LoadBalancerRow
from roadstead_ovn.runner import Runner
from roadstead_ovn.store.port import Json, Store
from roadstead_ovn.subnets import Subnets, subnets_of

PREFIX = "operate_"
REASON = "operator"
LONGEST_NAME = 255
LONGEST_LIST = 1000  # load balancers that one answer names
SPREAD = 5.0  # seconds within which all of them fall due
_COLUMNS = {"health_check": "health_checks"}


class NoSuch(Exception):
    """A word names no load balancer, or several; the text is for people."""


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
        if len(identifier) > LONGEST_NAME or (not identifier and work == self.show):
            return fault("give the id of a load balancer")
        try:
            identifier = await self._id_of(identifier) if identifier else ""
            return {"ok": True, "returns": await work(identifier, *arguments[1:2])}
        except NoSuch as error:
            return fault(str(error))

    async def _id_of(self, word: str) -> str:
        """The Octavia API's id of what a word names: that id, a name there, or the id of a region's, whose name there is lb-ID.  NoSuch."""
        if await self._api.tree(word) is not None or word in self._nb.known() or await self._store.view(word):
            return word
        names = (word, f"lb-{word}")
        found = [
            str(tree["loadbalancer_id"])
            async for page in self._api.pages()
            for tree in page
            if tree["loadbalancer"].get("name") in names
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise NoSuch(f"{len(found)} load balancers are named {word}; give an id: {', '.join(found[:5])}")
        raise NoSuch(
            f"no such load balancer: {word} is neither id nor name of this provider's in the Octavia API, nor an ID that "
            "`roadstead get loadbalancer` shows of one of them"
        )

    async def sync(self, identifier: str, adopt: object = False) -> Json:
        """Make it due now; all of them without an id.  adopt: the pass writes over a newer revision, too.  NoSuch."""
        reason = ADOPT if adopt is True else REASON
        if identifier:
            if await self._api.tree(identifier) is None:
                self._need_rows(identifier)
            await self._store.learn({identifier: 0}, {identifier}, reason, 0.0)
            due = 1
        else:
            due = await self._store.wake_all(reason, SPREAD)
        self._runner.nudge()
        return {"due": due}

    async def diff(self, identifier: str, _: object = None) -> Json:
        """What a pass would write, column by column; nothing is changed.  Without an id: which load balancers differ.  NoSuch."""
        if not identifier:
            return await self._differing()
        tree, balancer, facts = await self._read(identifier)
        if tree is None:
            rows = {identifier: self._need_rows(identifier)}
            return {"loadbalancer_id": identifier, "tree": None, "rows_without_tree": rows, "differences": []}
        revision = int(tree["revision"])
        what, newer = self._plan(identifier, revision, balancer, facts)
        found = [difference for change in what.changes for difference in _differences(change)]
        found += [
            {"row": f"switch port {port}", "column": "addresses", "found": list(has), "wanted": list(gets)}
            for port, (has, gets) in what.addresses.items()
        ]
        found += [
            {"row": f"NAT {address}", "column": "external_mac, logical_port", "found": "set", "wanted": None}
            for address in sorted(what.unpinned)
        ]
        return {"loadbalancer_id": identifier, "revision": revision, "newer": newer, "differences": found}

    def _plan(
        self, identifier: str, revision: int, balancer: Balancer | None, facts: Facts
    ) -> tuple[Plan, int | None]:
        """What would be written were no newer revision there, and that revision."""
        wanted = render(balancer, facts)
        found = self._nb.found(identifier, wanted)
        newer = plan(identifier, revision, wanted, found).newer
        return plan(identifier, revision, wanted, adopted(revision, found)), newer

    async def _differing(self) -> Json:
        """Every load balancer that differs, and every one that has rows of ours and no tree."""
        differing: list[Json] = []
        listed: set[str] = set()
        async for page in self._api.pages():
            read: list[tuple[Json, Balancer | None]] = []
            for tree in page:
                listed.add(identifier := str(tree["loadbalancer_id"]))
                try:
                    read.append((tree, balancer_of(tree)))
                except BadTree as error:
                    differing.append({"loadbalancer_id": identifier, "why": f"cannot be read: {error}"})
            await self._subnets.of([balancer for _, balancer in read if balancer is not None])
            for tree, balancer in read:
                identifier, revision = str(tree["loadbalancer_id"]), int(tree["revision"])
                facts = Facts() if balancer is None else self._facts(balancer)
                what, newer = self._plan(identifier, revision, balancer, facts)
                if newer is not None:
                    why = f"the database holds revision {newer}, above the API's {revision}"
                elif what.rows:
                    why = f"{what.rows} rows differ"
                else:
                    continue
                differing.append({"loadbalancer_id": identifier, "why": why})
                await asyncio.sleep(0)
        without = sorted(
            name for name, held in self._nb.known().items() if held is not None and name not in listed
        )
        differing += [{"loadbalancer_id": i, "why": "the Octavia API does not have it"} for i in without]
        return {
            "compared": len(listed),
            "differing": len(differing),
            "loadbalancers": differing[:LONGEST_LIST],
        }

    def _need_rows(self, identifier: str) -> int | None:
        """The revision of what the database has of it.  NoSuch."""
        known = self._nb.known()
        if identifier not in known:
            raise NoSuch(f"no such load balancer: {identifier} is gone, and nothing of it is left")
        return known[identifier]

    async def show(self, identifier: str, _: object = None) -> Json:
        """Rows, facts, statuses and the work row.  NoSuch."""
        tree, balancer, facts = await self._read(identifier)
        work = await self._store.view(identifier)
        if tree is None and work is None:
            self._need_rows(identifier)
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
            "work": work,
        }

    async def _read(self, identifier: str) -> tuple[Json | None, Balancer | None, Facts]:
        tree = await self._api.tree(identifier)
        balancer = balancer_of(tree) if tree is not None else None
        if balancer is None:
            return tree, None, Facts()
        await self._subnets.of([balancer])
        return tree, balancer, self._facts(balancer)

    def _facts(self, balancer: Balancer) -> Facts:
        """Of a balancer whose subnets were asked for."""
        return replace(self._nb.facts(balancer), subnets=self._subnets.known(sorted(subnets_of(balancer))))


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
