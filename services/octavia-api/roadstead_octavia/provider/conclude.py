"""The one way an operation ends, whatever ended it: success, failure, or its deadline.  Pure.

Success gives each touched object the status that the operation promised; failure and the deadline give those that still wait the status
for that.  An end is no last word: success that comes late, at the load balancer's current revision, mends what the deadline or a failure
had left in ERROR.  Done is the last word.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from roadstead_octavia.db.port import Row, Tree, Update, Write
from roadstead_octavia.provider.judge import KIND_OF, Fault, Known, Verdict, apply_records

REASON_LENGTH = 1000


class State(StrEnum):
    """Of a row of `operation`."""

    SENT = "SENT"
    DONE = "DONE"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


class End(StrEnum):
    """What ended it."""

    SUCCESS = "success"
    FAILURE = "failure"
    DEADLINE = "deadline"


_STATES = {End.SUCCESS: State.DONE, End.FAILURE: State.FAILED, End.DEADLINE: State.TIMED_OUT}


@dataclass(frozen=True)
class Outcome:
    """reason: for people, on failure.  statuses: a status message about what the operation touched, applied on top."""

    end: End
    reason: str | None = None
    statuses: Mapping[str, Any] = field(default_factory=dict)


def read_result(message: Any) -> tuple[str, Outcome]:
    """(operation id, outcome) of a result message.  Fault."""
    if not isinstance(message, Mapping):
        raise Fault("the message is not an object")
    identifier, outcome = message.get("operation"), message.get("outcome")
    if not isinstance(identifier, str) or not identifier or len(identifier) > 36:
        raise Fault("operation is no id")
    if outcome not in (End.SUCCESS.value, End.FAILURE.value):
        raise Fault("outcome is neither success nor failure")
    statuses = message.get("statuses")
    if statuses is not None and not isinstance(statuses, Mapping):
        raise Fault("statuses is not an object")
    texts = [message.get(name) for name in ("user", "operator")]
    reason = "; ".join(t for t in texts if isinstance(t, str) and t) or None
    if outcome == End.FAILURE.value and reason is None:
        reason = "the provider gave no reason"
    return identifier, Outcome(End(outcome), reason, statuses or {})


def waiting(operation: Row, tree: Tree) -> list[str]:
    """Ids of touched objects that are still PENDING."""
    found = []
    for touched in operation["touched"]:
        row = tree.get(touched["table"], touched["id"])
        if row is not None and row["provisioning_status"].startswith("PENDING_"):
            found.append(touched["id"])
    return found


def concluded(operation: Row, tree: Tree, outcome: Outcome, at: datetime) -> Verdict | None:
    """What the end of an operation writes, its own row included; None when there is nothing to do.  Fault.

    operation: its row.  tree: its load balancer now.
    """
    state, end = operation["state"], outcome.end
    if state == State.DONE or (end is End.DEADLINE and state != State.SENT):
        return None
    late = state != State.SENT
    if late and end is End.FAILURE:
        return _only_row(operation, tree, {"reason": _cut(outcome.reason)})
    current = operation["revision"] == tree.revision
    known = Known([tree])
    if current:
        for touched in operation["touched"]:
            _one(known, touched, end)
        if outcome.statuses:
            apply_records(known, outcome.statuses)
    elif late:
        return None  # it mends nothing: what it was about has been changed since
    if end is End.DEADLINE and current and not waiting(operation, tree):
        end = End.SUCCESS  # everything was reported one by one
    values = {
        "state": _STATES[end].value,
        "reason": None if end is End.SUCCESS else _cut(outcome.reason),
        "ended_at": at,
        "next_send_at": None,
    }
    verdict = known.verdict()
    owner = tree.load_balancer["id"]
    own: Write = Update("operation", {"id": operation["id"]}, values)
    return Verdict({owner: (*verdict.writes.get(owner, ()), own)}, verdict.ports)


def _one(known: Known, touched: Mapping[str, Any], end: End) -> None:
    table, identifier = touched["table"], touched["id"]
    row = known.find(table, identifier)
    if row is None or row["provisioning_status"] == "DELETED":
        return
    pending = row["provisioning_status"].startswith("PENDING_")
    if end is not End.SUCCESS:
        if pending:
            known.set(table, identifier, {"provisioning_status": touched["failed"]})
        return
    if touched["done"] != "DELETED":
        if row["provisioning_status"] != touched["done"]:
            known.set(table, identifier, {"provisioning_status": touched["done"]})
        return
    if table == "load_balancer":
        for child, child_id in known.children(identifier):
            known.delete(child, child_id, {})
    known.delete(table, identifier, {"provisioning_status": "DELETED", "operating_status": "OFFLINE"})


def _only_row(operation: Row, tree: Tree, values: Mapping[str, Any]) -> Verdict:
    own = Update("operation", {"id": operation["id"]}, values)
    return Verdict({tree.load_balancer["id"]: (own,)})


def _cut(text: str | None) -> str | None:
    return None if text is None else text.replace("\x00", "")[:REASON_LENGTH]


def deadline_reason(operation: Row, tree: Tree) -> str:
    """Why objects are in ERROR after a deadline, for people."""
    waits = waiting(operation, tree)
    seconds = (operation["deadline"] - operation["created_at"]).total_seconds()
    return (
        f"provider {operation['provider']} did not report the end of {operation['method']} within {seconds:g} s"
        f" ({operation['sends']} times sent, {len(waits)} objects waiting)"
    )


def objects_of(operation: Row) -> dict[str, list[str]]:
    """The touched objects by the names of the lists in messages."""
    found: dict[str, list[str]] = {}
    for touched in operation["touched"]:
        found.setdefault(KIND_OF[touched["table"]], []).append(touched["id"])
    return found


def removed_by(operation: Row) -> list[str]:
    """Ids of the touched objects that go with success."""
    return [touched["id"] for touched in operation["touched"] if touched["done"] == "DELETED"]
