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

from roadstead.clock import iso
from roadstead.cloud.port import CloudError, Verdict
from roadstead.reconcile.decision import Code, Decision, Done, Outcome, Retry, Stop, Yield
from roadstead.reconcile.kind import Kind, S, T
from roadstead.reconcile.outcomes import on_delete_path, outcome_of
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.status import conditions_of, merged

LOOK_AGAIN = 2.0  # seconds until the pass is due again, before the pace


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
    release: tuple[str, ...] = ()  # references to let go of
    judged: str | None = None  # digest of what the region said to this pass (offers.py)


@dataclass(frozen=True)
class Asked:
    """A create whose answer was never seen, by an earlier pass."""

    service: str
    verb: str
    at: datetime


@dataclass(frozen=True)
class Memory:
    """What earlier passes of this life leave for this one.

    made: how often each creating verb was performed.  ever: the resource was once provisioned.  absent_since: when an earlier pass
    first found absent what had been there.  look_again: seconds until a second look counts.
    """

    asked: tuple[Asked, ...] = ()
    made: Mapping[str, int] = field(default_factory=dict)
    ever: bool = False
    absent_since: datetime | None = None
    settle: float = 65.0
    look_again: float = 2.0


def settling(asked: tuple[Asked, ...], now: datetime, seconds: float) -> tuple[Asked, ...]:
    """Those whose fate is still open."""
    return tuple(a for a in asked if now - a.at < timedelta(seconds=seconds))


async def drive(
    kind: Kind[S, T, Any],
    p: Pass[S, T, Any],
    memory: Memory | None = None,
    *,
    observe_limit: float | None = None,
    on_decision: Callable[[Decision], None] | None = None,
) -> Ending:
    """Run one pass.  Never raises for what the cloud did; programming errors pass through.

    While a create of an earlier pass is unanswered and younger than the settling time no creating verb runs and an absence proves
    nothing (architecture.md section 3.4).  What once was there is made again, or a deletion ended, only after a second look: one
    empty list is no proof.
    """
    memory = memory or Memory()
    ending = Ending(Done())
    open_asks = settling(memory.asked, p.now, memory.settle)
    try:
        async with asyncio.timeout(observe_limit):
            p.seen = await kind.observe(p)
        for _ in range(kind.max_verbs):
            decision = kind.decide(p.resource, p.seen, p.now)
            if on_decision is not None:
                on_decision(decision)
            decision = _held_back(kind, p, decision, open_asks, memory.settle)
            decision = _looked_twice(kind, p, decision, memory)
            p.decision_id = secrets.token_hex(8)
            p.act = str(decision.verb or "")
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
    """While a create's fate is open: no second create, and nothing is concluded from an absence, the end of a deletion least."""
    creates = decision.verb is not None and decision.verb in kind.creating
    concludes = decision.verb is not None and decision.verb in kind.concluding
    finishes = p.resource.deleting and isinstance(decision.outcome, Done)
    if not asks or not (creates or concludes or finishes):
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


def _looked_twice(
    kind: Kind[Any, Any, Any], p: Pass[Any, Any, Any], decision: Decision, memory: Memory
) -> Decision:
    """The second look, before what was there is made anew or counts as gone."""
    verb = decision.verb
    again = (
        verb is not None
        and verb in kind.creating
        and verb not in kind.repeatable
        and (memory.ever or memory.made.get(str(verb), 0) > 0)
        and not any(w["act"] == str(verb) for w in p.writes)
    )
    finishes = (
        p.resource.deleting
        and isinstance(decision.outcome, Done)
        and (memory.ever or bool(memory.made) or bool(memory.asked))
    )
    if not (again or finishes):
        return decision
    since = memory.absent_since
    if since is not None and (p.now - since).total_seconds() >= memory.look_again:
        return decision
    message = "what was there is absent; looking again before anything follows from it"
    outcome = Yield(Code.SETTLING, message, LOOK_AGAIN)
    first = iso(since if since is not None else p.now)
    return replace(decision, verb=None, outcome=outcome, why=message, status={"absentSince": first})


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
