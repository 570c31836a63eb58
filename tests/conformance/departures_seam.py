"""Departures of the driver agent's semantics, as rules over one vector: its message, the recorded result and ours."""

import copy
from collections.abc import Callable
from typing import Any

Line = dict[str, Any]  # message, expected, actual; the results have reply, no_reply, network_writes, changes


def explain(line: Line, same: Callable[[Any, Any], bool]) -> list[str] | None:
    """The ids of the rules that together explain the whole difference, None when they do not."""
    work = copy.deepcopy(line)
    used = [identifier for identifier, rule in RULES if rule(work)]
    return used if used and same(work["expected"], work["actual"]) else None


def _counted(line: Line) -> bool:
    """Counters of what is in use are not stored."""
    touched = False
    for side in ("expected", "actual"):
        kept = []
        for table, verb, row in line[side]["changes"]:
            if table == "quotas" and verb == "put":
                touched = True
                continue
            kept.append([table, verb, row])
        line[side]["changes"] = kept
    return touched


def _whole(line: Line) -> bool:
    """A message that is refused is refused whole: what the original had done before the bad record is not done."""
    reply = line["expected"].get("reply")
    if not (isinstance(reply, dict) and reply.get("status_code") == 500 and line["expected"]["changes"]):
        return False
    line["expected"]["changes"] = []
    return True


RULES: tuple[tuple[str, Callable[[Line], bool]], ...] = (
    ("quota-counted", _counted),
    ("seam-whole-messages", _whole),
)
