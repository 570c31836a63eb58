"""Which facts are news: the listed servers of one project against what their owner's last STATUS carries.

Pure.  News is what differs from the STATUS, from the facts in it or from what it claims, never from what was sent before, so an
observation that the owner ignored comes again at the next sweep.  Absence is a fact of its own and comes from a complete list alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from roadstead.clock import iso
from roadstead.drift import contradicts
from roadstead.reconcile.views import StatusView
from roadstead_monitor.facts import Facts, facts_of


@dataclass(frozen=True)
class Observation:
    """One message for one server.  facts None: the server is absent.

    fails: it turned into ERROR since the STATUS; server: its id in the cloud, for the one look at the fault.
    """

    view: StatusView
    facts: Facts | None
    fails: bool = False
    server: str | None = None

    def body(self, read_started_at: datetime, sweep: str) -> dict[str, Any]:
        """The envelope of events.md section 2."""
        head = {
            "present": self.facts is not None,
            "readStartedAt": iso(read_started_at),
            "sweep": sweep,
            "knownResourceVersion": self.view.resource_version,
        }
        return {**head, **(self.facts if self.facts is not None else {"generation": self.view.generation})}


@dataclass(frozen=True)
class Compared:
    """One project's sweep: what to send, every server that was read, and ids that two servers bear."""

    news: tuple[Observation, ...] = ()
    read: tuple[tuple[StatusView, Mapping[str, Any], Facts], ...] = ()
    doubled: tuple[str, ...] = field(default=())


def compare(views: Iterable[StatusView], listed: Sequence[Mapping[str, Any]]) -> Compared:
    """`listed`: the complete detailed list of the project.  Servers under deletion are skipped (REF-065)."""
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for server in listed:
        owner = (server.get("metadata") or {}).get("serverID")
        if isinstance(owner, str):
            by_id.setdefault(owner, []).append(server)
    news: list[Observation] = []
    read: list[tuple[StatusView, Mapping[str, Any], Facts]] = []
    doubled: list[str] = []
    for view in views:
        if view.deleting or view.gone:
            continue
        mine = by_id.get(view.key.id, [])
        if len(mine) > 1:
            doubled.append(view.key.id)
        elif not mine:
            if _absence_is_news(view):
                news.append(Observation(view, None))
        else:
            facts = facts_of(mine[0], network_of(view), view.generation)
            read.append((view, mine[0], facts))
            if is_news(view, facts):
                fails = facts["status"] == "ERROR" and not _observed(view).get("errored")
                news.append(Observation(view, facts, fails, str(mine[0].get("id") or "")))
    return Compared(tuple(news), tuple(read), tuple(doubled))


def network_of(view: StatusView) -> str | None:
    """The network that a server's spec names."""
    networks = view.spec.get("networks")
    first = networks[0] if isinstance(networks, list) and networks else None
    found = first.get("id") if isinstance(first, Mapping) else None
    return str(found) if found else None


def _observed(view: StatusView) -> Mapping[str, Any]:
    return view.status.get("observed") or {}


def _absence_is_news(view: StatusView) -> bool:
    """Not for a server that nothing says was ever made: it is simply not there yet."""
    if _contradicted(view, {"present": False}):
        return True
    observed = _observed(view)
    if not observed and reason(view, "Active") is None:
        return False
    return not observed.get("absent") or observed.get("generation") != view.generation


def _contradicted(view: StatusView, facts: Mapping[str, Any]) -> bool:
    """Whether the facts cannot be true of what the STATUS claims of the newest spec."""
    return view.status.get("observedGeneration") == view.generation and contradicts(
        view.status, view.spec, facts
    )


def is_news(view: StatusView, facts: Facts) -> bool:
    """Whether these facts say more than the STATUS: other facts, a claim that they contradict, a mirror or latch behind, or a
    stamp made since."""
    status, observed = view.status, _observed(view)
    if not observed or observed.get("absent") or _contradicted(view, facts):
        return True
    readable = facts["image"] is not None
    known = {
        "generation": facts["generation"],
        "novaStatus": facts["status"],
        "taskState": facts["taskState"],
        "powerState": facts["powerState"],
        "errored": facts["status"] == "ERROR",
        "readable": readable,
        **({"image": facts["image"]} if readable else {}),
    }
    if any(observed.get(name) != value for name, value in known.items()):
        return True
    if facts["launchedAt"] and (
        status.get("launchedAt") != facts["launchedAt"] or not status.get("provisionedAt")
    ):
        return True
    if facts["createdAt"] and status.get("scheduledAt") != facts["createdAt"]:
        return True
    mac = facts["macAddress"] if facts["status"] == "ACTIVE" else None
    if mac and status.get("macAddress") != mac:
        return True
    return _stamped_since(view, observed)


def _stamped_since(view: StatusView, observed: Mapping[str, Any]) -> bool:
    """A pass or a request stamped Active or Healthy after the observation from which `observed` comes."""
    return any(
        observed.get(name.lower()) is not None and observed[name.lower()] != reason(view, name)
        for name in ("Active", "Healthy")
    )


def reason(view: StatusView, kind: str) -> str | None:
    """The reason of one condition of the STATUS."""
    conditions = view.status.get("conditions") or ()
    return next((str(c.get("reason")) for c in conditions if c.get("type") == kind), None)
