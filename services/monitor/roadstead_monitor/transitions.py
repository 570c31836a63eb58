"""One line in the log for each move of a server's Healthy and Active, whoever made it (behaviour.md section 11).

Read from STATUS, which carries every change; told by the replica whose shard the server is in, so that one line stands once.
"""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from roadstead.clock import parse_time
from roadstead.reconcile.views import StatusView

log = structlog.get_logger("roadstead.monitor")

TOLD = ("Healthy", "Active")

Condition = Mapping[str, Any]


class Transitions:
    """Remembers the last word on each server.  is_mine: whether this replica tells of it."""

    def __init__(self, is_mine: Callable[[StatusView], bool]) -> None:
        self._is_mine = is_mine
        self._last: dict[str, dict[str, Condition]] = {}

    def __len__(self) -> int:
        return len(self._last)

    def heard(self, view: StatusView) -> None:
        """One STATUS message.  The first one of a server is only remembered: what it was before is not known."""
        if view.key.kind != "server":
            return
        before = self._last.get(view.key.id)
        if view.gone:
            self._last.pop(view.key.id, None)
            return
        now = {c["type"]: c for c in view.status.get("conditions", ()) if c.get("type") in TOLD}
        self._last[view.key.id] = now
        for name in TOLD if before is not None else ():
            assert before is not None
            old, new = before.get(name), now.get(name)
            if old is not None and new is not None and _word(old) != _word(new) and self._is_mine(view):
                self._tell(view, name, old, new)

    def _tell(self, view: StatusView, name: str, old: Condition, new: Condition) -> None:
        log.info(
            "condition moved",
            key=str(view.key),
            organization=view.metadata.get("organizationId"),
            condition=name,
            was=_word(old),
            now=_word(new),
            seconds=_between(old, new),
        )


def _word(condition: Condition) -> str:
    """Status and reason, such as `False/Errored`."""
    return f"{condition.get('status')}/{condition.get('reason')}"


def _between(old: Condition, new: Condition) -> float | None:
    """How long it had been so; None where a time is not readable."""
    try:
        start, end = parse_time(str(old["lastTransitionTime"])), parse_time(str(new["lastTransitionTime"]))
    except (KeyError, ValueError):
        return None
    return round((end - start).total_seconds(), 3)
