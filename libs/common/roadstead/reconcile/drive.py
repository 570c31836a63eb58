"""A pass from observation to outcome.

Short on purpose: observe once, then decide and act until a decision ends it.  After a verb the observation is what the verb
returned, never an assumption; nothing is read twice within a pass.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Decision, Done, Outcome, Retry, Stop, Yield
from roadstead.reconcile.kind import Kind, S, T
from roadstead.reconcile.outcomes import on_delete_path, outcome_of
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.status import conditions_of, merged


@dataclass(frozen=True)
class Decided:
    """One decision as it is recorded."""

    decision_id: str
    rule: str
    verb: str | None
    why: str
    generation: int
    code: str
    events: tuple[str, ...] = ()


@dataclass
class Ending:
    """How a pass ended: the outcome, status changes to keep in every case, and what was decided on the way."""

    outcome: Outcome
    status: dict[str, Any] = field(default_factory=dict)
    decided: list[Decided] = field(default_factory=list)
    rule: str = ""
    error: CloudError | None = None
    lost: bool = False  # the lease went: nothing may be written
    writes: Sequence[Mapping[str, Any]] = ()  # what was asked of the cloud


@dataclass(frozen=True)
class Asked:
    """A create whose answer was never seen, by an earlier pass."""

    service: str
    verb: str
    at: datetime


def settling(asked: tuple[Asked, ...], now: datetime, seconds: float) -> tuple[Asked, ...]:
    """Those whose fate is still open."""
    return tuple(a for a in asked if now - a.at < timedelta(seconds=seconds))


async def drive(
    kind: Kind[S, T, Any],
    p: Pass[S, T, Any],
    *,
    asked: tuple[Asked, ...] = (),
    settle: float = 65.0,
    observe_limit: float | None = None,
    on_decision: Callable[[Decision], None] | None = None,
) -> Ending:
    """Run one pass.  Never raises for what the cloud did; programming errors pass through.

    asked: unanswered creates of earlier passes; while one is younger than `settle` seconds no creating verb runs and an absence
    proves nothing (architecture.md section 3.4).
    """
    ending = Ending(Done())
    open_asks = settling(asked, p.now, settle)
    try:
        async with asyncio.timeout(observe_limit):
            p.seen = await kind.observe(p)
        for _ in range(kind.max_verbs):
            decision = kind.decide(p.resource, p.seen, p.now)
            if on_decision is not None:
                on_decision(decision)
            decision = _held_back(kind, p, decision, open_asks, settle)
            p.decision_id = secrets.token_hex(8)
            _note(ending, p, decision)
            _keep(ending, p, decision.status)
            if decision.verb is None:
                assert decision.outcome is not None
                ending.outcome = decision.outcome
                break
            step = await kind.act[decision.verb](p)
            _keep(ending, p, step.status)
            if isinstance(step, Stop):
                ending.outcome = step.outcome
                break
            p.seen = step.seen
        else:
            ending.outcome = Retry(Code.INTERNAL, "the pass did not come to an end within its bound of steps")
    except CloudError as error:
        ending.error = error
        ending.lost = error.verdict is Verdict.LEASE_LOST
        ending.outcome = outcome_of(error)
    except TimeoutError:
        ending.outcome = Retry(Code.UNAVAILABLE, "the cloud did not answer in time")
    if p.resource.deleting:
        ending.outcome = on_delete_path(ending.outcome)
    return ending


def _held_back(
    kind: Kind[Any, Any, Any],
    p: Pass[Any, Any, Any],
    decision: Decision,
    asks: tuple[Asked, ...],
    settle: float,
) -> Decision:
    """While a create's fate is open: no second create, and no deletion is finished on an absence."""
    creates = decision.verb is not None and decision.verb in kind.creating
    finishes = p.resource.deleting and isinstance(decision.outcome, Done)
    if not asks or not (creates or finishes):
        return decision
    left = max(0.0, settle - min((p.now - a.at).total_seconds() for a in asks))
    message = "a request to create was sent and its answer never seen; looking again before asking anew"
    return replace(
        decision,
        verb=None,
        outcome=Yield(Code.SETTLING, message, min(left + 0.5, 10.0)),
        why=message,
        status={},
    )


def _note(ending: Ending, p: Pass[Any, Any, Any], decision: Decision) -> None:
    code = getattr(decision.outcome, "code", Code.NONE)
    ending.rule = str(decision.rule)
    ending.decided.append(
        Decided(
            p.decision_id,
            str(decision.rule),
            str(decision.verb) if decision.verb is not None else None,
            decision.why,
            p.resource.generation,
            str(code),
            decision.events,
        )
    )


def _keep(ending: Ending, p: Pass[Any, Any, Any], changes: Mapping[str, Any]) -> None:
    """Status changes count at once for the next decision of the same pass, and are written whatever comes after."""
    if not changes:
        return
    ending.status.update(changes)
    p.pending_status.update(changes)
    before = p.resource.status.model_dump(mode="json", exclude_none=True)
    before["conditions"] = list(p.resource.conditions.values())
    after = merged(before, changes, p.now)
    conditions = conditions_of(after)
    after.pop("conditions", None)
    p.resource = replace(
        p.resource, status=type(p.resource.status).model_validate(after), conditions=conditions
    )
