"""Parks whose reason lies in what a Region, or the lists of what it offers, say: they end when that changes.

Nothing is due for a parked row, so somebody has to notice.  The row keeps a digest of what it was judged by (`status.judgedBy`); when
a Region or one of its lists changes, each such row is compared with what is said now, and those judged by something else fall due.
So a wake is lost neither with a process nor between two replicas, and what changed for others wakes nobody.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from roadstead.clock import Clock
from roadstead.events import dump
from roadstead.reconcile import rules
from roadstead.reconcile.decision import Outcome, Park
from roadstead.reconcile.handlers import error_reply
from roadstead.reconcile.kind import Kind, Resource
from roadstead.reconcile.views import Directory, StatusView
from roadstead.region import RegionSpec
from roadstead.store.api import Query, Row, Store

log = structlog.get_logger("roadstead.offers")

PAGE = 200
PAUSE = 1.0
CAUSE: Mapping[str, Any] = {"reason": "what the region offers changed"}


def digest(said: Any) -> str | None:
    """Of anything that is JSON; None stays None: nothing is said yet."""
    return None if said is None else hashlib.sha256(dump(said)).hexdigest()[:16]


def judged_by(
    kind: Kind[Any, Any, Any],
    resource: Resource[Any, Any],
    region: RegionSpec | None,
    extras: Mapping[str, Any],
) -> str | None:
    """What this resource is judged by just now; None while it is not known, or where the kind is judged by nothing."""
    if not kind.judged_codes or region is None:
        return None
    return digest(kind.judged(resource, region, extras))


def ends_judged(kind: Kind[Any, Any, Any], outcome: Outcome) -> bool:
    """Whether a pass parks for what the region says."""
    return isinstance(outcome, Park) and outcome.code in kind.judged_codes


def not_settled(what: str) -> dict[str, Any]:
    """The reply to a request for a list that the cloud showed empty a moment ago."""
    text = f"the cloud lists no {what}, which is not believed at once; ask again in some seconds"
    return error_reply("UNAVAILABLE", text, 503)


class Regions:
    """The accepted specs of the regions that a service knows; each is read once."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._read: dict[str, tuple[StatusView, RegionSpec]] = {}

    def spec(self, region: str) -> RegionSpec | None:
        """None: not known, or gone."""
        view = self._directory.get("region", region)
        if view is None or view.gone:
            self._read.pop(region, None)
            return None
        held = self._read.get(region)
        if held is None or held[0] is not view:
            held = self._read[region] = (view, RegionSpec.model_validate(view.spec))
        return held[1]

    def clouds(self) -> dict[str, RegionSpec]:
        """Those with an openstack section, by id."""
        found = ((v.key.region, self.spec(v.key.region)) for v in self._directory.of_kind("region"))
        return {region: spec for region, spec in found if spec is not None and spec.openstack is not None}


class Offers:
    """One per process.  Stirred with a region, it looks through the region's parked rows; and through all now and then."""

    def __init__(
        self,
        kinds: Sequence[Kind[Any, Any, Any]],
        store: Store,
        directory: Directory,
        clock: Clock,
        extras: Mapping[str, Any],
        *,
        every: float,
    ) -> None:
        self._kinds = tuple(k for k in kinds if k.judged_codes)
        self._store = store
        self._clock = clock
        self._extras = extras
        self._every = every
        self._generations: dict[str, int] = {}
        self._pending: set[str] = set()
        self._stirred = asyncio.Event()
        self.regions = Regions(directory)
        self.nudge: Callable[[], None] = lambda: None

    def region_moved(self, view: StatusView) -> None:
        """A STATUS arrived; that of a Region whose spec is another one stirs."""
        if view.key.kind == "region" and self._generations.get(view.key.region) != view.generation:
            self._generations[view.key.region] = view.generation
            self.stir(view.key.region)

    def stir(self, region: str) -> None:
        """What the region says may be another than it was."""
        if self._kinds:
            self._pending.add(region)
            self._stirred.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                async with asyncio.timeout(self._every):
                    await self._stirred.wait()
            except TimeoutError:
                self._pending |= set(self._generations)
            self._stirred.clear()
            while self._pending:
                region = self._pending.pop()
                try:
                    await self.look(region)
                except Exception:
                    log.exception("parked rows not looked through; trying again", region=region)
                    self._pending.add(region)
                    await self._clock.sleep(PAUSE)

    async def look(self, region: str) -> int:
        """Wake the region's rows that were judged by something else than is said now; how many.  One query a page of parked rows."""
        woken = 0
        for kind in self._kinds:
            codes, marker = tuple(sorted(str(c) for c in kind.judged_codes)), None
            while True:
                rows = await self._store.list(
                    Query(kind.name, region=region, codes=codes, limit=PAGE, marker=marker)
                )
                due = [(r.key.kind, r.key.id) for r in rows if self._is_outdated(kind, r)]
                if due:
                    woken += await self._store.wake(due, CAUSE)
                    self.nudge()
                if len(rows) < PAGE:
                    break
                marker = rows[-1].key.id
        return woken

    def parked(self, kind: Kind[Any, Any, Any], row: Row) -> None:
        """A pass has just parked: what it was judged by may have changed before the park was there to be found."""
        if self._is_outdated(kind, row):
            self.stir(row.key.region)

    def _is_outdated(self, kind: Kind[Any, Any, Any], row: Row) -> bool:
        """A row that is due anyway is looked at then; while nothing is known nothing is concluded."""
        if row.deleting or row.work.due_at is not None:
            return False
        region = self.regions.spec(row.key.region)
        try:
            now = judged_by(kind, rules.resource_of(kind, row), region, self._extras)
        except ValueError:
            log.exception("a parked row cannot be read", key=str(row.key))
            return False
        return now is not None and now != row.status.get("judgedBy")
