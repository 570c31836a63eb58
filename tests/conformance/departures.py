"""What we answer otherwise on purpose, as rules over a recorded exchange.

A rule turns the recorded result into the one that we stand for, from what the request and the result say, never from which exchange it
is.  Each rule's id is a line of docs/octavia-departures.md, with the reason and the test.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Line = dict[str, Any]  # one difference as the replayer reports it: request, expected, actual


@dataclass(frozen=True)
class Departure:
    """apply: changes `expected` (and where noise is to be left out, `actual`) in place; whether it did anything."""

    id: str
    apply: Callable[[Line], bool]


RULES: list[Departure] = []


def departure(identifier: str) -> Callable[[Callable[[Line], bool]], Callable[[Line], bool]]:
    def keep(function: Callable[[Line], bool]) -> Callable[[Line], bool]:
        RULES.append(Departure(identifier, function))
        return function

    return keep


def explain(line: Line, same: Callable[[Any, Any], bool]) -> list[str] | None:
    """The ids of the rules that together explain the whole difference, None when they do not."""
    if "actual" not in line:
        return None
    work = copy.deepcopy(line)
    used = [rule.id for rule in RULES if rule.apply(work)]
    return used if used and same(work["expected"], work["actual"]) else None


@departure("quota-reads-write-nothing")
def _reading_quotas_writes_nothing(line: Line) -> bool:
    """Showing a project's quotas does not fill its row with the defaults of the day."""
    if line["request"]["method"] != "GET":
        return False
    kept = [each for each in line["expected"]["changes"] if each[:2] != ["quotas", "put"]]
    touched = len(kept) != len(line["expected"]["changes"])
    line["expected"]["changes"] = kept
    return touched


@departure("quota-counted")
def _quotas_are_counted(line: Line) -> bool:
    """Counters of what is in use are not stored, so no row of theirs changes and none is made.

    A request about something else than quotas changes nothing but counters: its recorded row goes, ours would be a mistake and stays.
    """
    touched = False
    about_quotas = "/quotas" in line["request"]["path"]
    for side in ("expected", "actual"):
        kept = []
        for table, verb, row in line[side]["changes"]:
            if table == "quotas" and verb == "put":
                limits = {k: v for k, v in row.items() if not k.startswith("in_use_") and k != "project_id"}
                if all(v is None for v in limits.values()) or (side == "expected" and not about_quotas):
                    touched = True
                    continue
                touched = True
                row = {k: v for k, v in row.items() if not k.startswith("in_use_")}
            kept.append([table, verb, row])
        line[side]["changes"] = kept
    return touched


from . import departures_children as departures_children  # noqa: E402 - its rules join the list
from . import departures_http as departures_http  # noqa: E402 - its rules join the list
from . import departures_loadbalancer as departures_loadbalancer  # noqa: E402 - its rules join the list
from . import departures_provider as departures_provider  # noqa: E402 - its rules join the list
