"""Looks between two sweeps: a server whose STATUS shows it on its way is read again soon, so that people see it arrive.

A pass may not say that a server runs (INV-122), and the next sweep may be a minute away.  So a server that is provisioned while its
Active names a state that passes by asks for looks, each half as far off again as the last, until it has arrived or the looks are spent; then
the sweep has it, as it has every other.  A look is the list of the whole project, one for all who wait, and a project rests after one
for many times what it took, so that a burst of servers costs a share of the cloud and no request each.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from roadstead.reconcile.views import StatusView
from roadstead_monitor.compare import reason

GROWTH = 1.5  # so a server is seen to have arrived after half as long again as it took
LOOKS = 8  # the last 49 times the first delay after the news, when the next sweep is near
REST = 10.0  # a project is read for at most a tenth of the time

PASSING = frozenset({"Pending", "Queued", "Building", "Rebuilding", "Stopping"})
"""Reasons of Active that say what comes next rather than what is."""

ProjectKey = tuple[str, str]  # region, identity


def on_its_way(view: StatusView) -> bool:
    """The spec is realized, yet Active tells of nothing or of a state that passes by."""
    active = reason(view, "Active")
    return view.key.kind == "server" and view.provisioned and (active is None or active in PASSING)


@dataclass(frozen=True)
class Wanted:
    """A server on its way: at which monotonic second it is looked for next (infinity: no more), and how often it was."""

    generation: int
    due: float
    looks: int = 0


@dataclass
class Agenda:
    """Who waits for a look.  first: seconds from the news to the first look, and the shortest rest of a project.

    Grows with the servers that are on their way and no further.
    """

    first: float
    _wanted: dict[ProjectKey, dict[str, Wanted]] = field(default_factory=dict)
    _rests: dict[ProjectKey, float] = field(default_factory=dict)

    def heard(self, view: StatusView, project: ProjectKey, now: float) -> None:
        """One STATUS message of a server.  What is known of it stays until it arrived or its spec changed."""
        waiting = self._wanted.get(project, {})
        if not on_its_way(view):
            waiting.pop(view.key.id, None)
            if not waiting:
                self._wanted.pop(project, None)
            return
        known = waiting.get(view.key.id)
        if known is None or known.generation != view.generation:
            self._wanted.setdefault(project, {})[view.key.id] = Wanted(view.generation, now + self.first)

    def idle(self) -> bool:
        """Nobody waits for a look."""
        return all(w.due == math.inf for waiting in self._wanted.values() for w in waiting.values())

    def due(self, now: float) -> set[ProjectKey]:
        """The projects to read now."""
        self._rests = {project: until for project, until in self._rests.items() if until > now}
        return {project for project in self._due(now) if project not in self._rests}

    def _due(self, now: float) -> Iterator[ProjectKey]:
        for project, waiting in self._wanted.items():
            if any(w.due <= now for w in waiting.values()):
                yield project

    def taken(self, project: ProjectKey, now: float) -> None:
        """A look at the project begins: those who were due wait longer for the next, whatever comes of this one."""
        waiting = self._wanted.get(project, {})
        for ident, wanted in waiting.items():
            if wanted.due <= now:
                looks = wanted.looks + 1
                due = now + self.first * GROWTH**looks if looks < LOOKS else math.inf
                waiting[ident] = replace(wanted, due=due, looks=looks)
        self._rests[project] = math.inf

    def done(self, project: ProjectKey, began: float, ended: float) -> None:
        """The look is over, or is somebody else's: the project rests."""
        self._rests[project] = ended + max(self.first, REST * (ended - began))
