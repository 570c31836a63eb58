"""Numbers of a sweep as plain data; `export.py` makes metrics of them (behaviour.md section 11).

The gauge is made anew from each sweep's successfully read servers, so that what was not read is absent, not stale (REF-063).  The
two durations of a server are taken once, when it first runs.
"""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from roadstead.clock import parse_time
from roadstead.reconcile.views import StatusView
from roadstead_monitor.facts import Facts

log = structlog.get_logger("roadstead.monitor")


@dataclass(frozen=True)
class Cell:
    """One combination of labels of the gauge; state is lower case."""

    state: str
    region: str
    region_name: str
    flavor: str
    flavor_name: str


@dataclass(frozen=True)
class Durations:
    """Seconds from the accepted spec to first boot and to Nova's record; None: not known, or negative and left out."""

    provisioning: float | None = None
    scheduling: float | None = None


@dataclass
class Measures:
    """servers: the gauge of the last whole sweep.  The lists grow until `drain`."""

    servers: Counter[Cell] = field(default_factory=Counter)
    provisioning: list[float] = field(default_factory=list)
    scheduling: list[float] = field(default_factory=list)
    _counting: Counter[Cell] = field(default_factory=Counter)
    _told: set[str] = field(default_factory=set)

    def count(self, view: StatusView, listed: Mapping[str, Any], facts: Facts, region_name: str) -> None:
        """One server that a sweep read."""
        self._counting[cell_of(view, listed, facts, region_name)] += 1

    def timed(self, view: StatusView, facts: Facts) -> None:
        """One server that was read, by a sweep or between two."""
        if view.key.id in self._told or not first_run(view, facts):
            return
        self._told.add(view.key.id)
        took = durations(view, facts)
        if took.provisioning is not None:
            self.provisioning.append(took.provisioning)
        if took.scheduling is not None:
            self.scheduling.append(took.scheduling)

    def swept(self, known: Set[str]) -> None:
        """The sweep is over: its counts become the gauge, and servers that are not `known` any more are forgotten."""
        self.servers, self._counting = self._counting, Counter()
        self._told &= known

    def drain(self) -> tuple[list[float], list[float]]:
        """(provisioning, scheduling) samples since the last time."""
        taken = self.provisioning, self.scheduling
        self.provisioning, self.scheduling = [], []
        return taken


def cell_of(view: StatusView, listed: Mapping[str, Any], facts: Facts, region_name: str) -> Cell:
    """The labels of one server."""
    flavor = listed.get("flavor")
    name = flavor.get("original_name") if isinstance(flavor, Mapping) else None
    ident = str(view.spec.get("flavorID") or "")
    return Cell(
        (facts["status"] or "unknown").lower(), view.key.region, region_name, ident, str(name or ident)
    )


def first_run(view: StatusView, facts: Facts) -> bool:
    """It runs, and the STATUS has not heard of a launch yet."""
    running = facts["status"] == "ACTIVE" and facts["powerState"] == 1
    return running and bool(facts["launchedAt"]) and not view.status.get("launchedAt")


def durations(view: StatusView, facts: Facts) -> Durations:
    """From metadata.creationTime; a negative one (clocks differ) is logged and left out (REF-066)."""
    made = view.metadata.get("creationTime")
    if not made:
        return Durations()
    start = parse_time(str(made))
    return Durations(
        _since(view, start, facts["launchedAt"], "provisioning"),
        _since(view, start, facts["createdAt"], "scheduling"),
    )


def _since(view: StatusView, start: datetime, end: str | None, what: str) -> float | None:
    if end is None:
        return None
    seconds = (parse_time(end) - start).total_seconds()
    if seconds < 0:
        log.warning("negative duration left out", server=view.key.id, what=what, seconds=seconds)
        return None
    return seconds
