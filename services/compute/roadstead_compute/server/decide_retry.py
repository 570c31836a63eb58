"""A server that never boots is removed and made again, a bounded number of times (behaviour.md section 6.3).

The stored status says that a create failed; what is deleted is decided by this pass's own read: a server that shows a first
boot, or hides whether it had one, is never touched by this machinery (INV-234, INV-302).
"""

from collections.abc import Mapping
from typing import Any

from roadstead.reconcile.decision import Code, Decision, do, park, retry, wait
from roadstead_compute.server import texts
from roadstead_compute.server.model import ServerStatus
from roadstead_compute.server.rules import Rule, Verb
from roadstead_compute.server.seen import Seen

EVENT_RETRYING = "CREATE_RETRYING"
EVENT_READY = "CREATE_RETRY_READY"
EVENT_FAILED = "CREATE_FAILED"

_BOOTED = ("Running", "Stopping", "Stopped")


def create_failed(status: ServerStatus, conditions: Mapping[str, Mapping[str, Any]]) -> bool:
    """The one failure predicate, also a wake; false whenever something is not known."""
    health, active = conditions.get("Healthy", {}), conditions.get("Active", {})
    return (
        status.provisionedAt is None
        and status.launchedAt is None
        and active.get("reason") not in _BOOTED
        and health.get("status") == "False"
        and health.get("reason") == "Errored"
    )


def decide_retry(
    status: ServerStatus, conditions: Mapping[str, Mapping[str, Any]], seen: Seen
) -> Decision | None:
    """The retry's next step, or None: go on with the ordinary pass."""
    server = seen.server
    if status.providerCreateRetrying:
        return None if server is not None and server.launched is not False else _clear_away(seen)
    if not create_failed(status, conditions):
        return None
    if server is not None and (server.status != "ERROR" or server.launched is not False):
        return None  # the monitor's word is older than this read
    attempts = max(1, seen.attempts)
    failures = status.providerCreateFailures + 1
    if failures >= attempts:
        message = texts.create_exhausted(attempts)
        capped = park(
            Rule.RETRY_CAP,
            Code.CREATE_EXHAUSTED,
            message,
            terminal=True,
            providerCreateFailures=attempts,
            providerCreateRetrying=None,
        )
        news = status.providerCreateFailures != attempts
        return _with(capped, {}, (EVENT_FAILED,)) if news else capped
    counted = {"providerCreateFailures": failures, "providerCreateRetrying": True}
    step = _clear_away(seen)
    return _with(step, {**counted, **step.status}, (EVENT_RETRYING, *step.events), Rule.RETRY_COUNT)


def _clear_away(seen: Seen) -> Decision:
    """The server first; its addresses and port once it is proved gone; then the next create may come."""
    server = seen.server
    if server is not None and not server.going:
        return do(Rule.RETRY_DELETE, Verb.DELETE_SERVER, "the server never booted", **texts.RESET)
    if server is not None:
        return wait(Rule.RETRY_DELETING, Code.CREATE_RETRYING, texts.CREATE_REMOVING, **texts.RESET)
    if seen.taken:
        return retry(Rule.RETRY_TAKEN, Code.CONSISTENCY, texts.PORT_TAKEN)
    if seen.addresses:
        return do(Rule.RETRY_ADDRESS, Verb.DELETE_ADDRESS, "the failed server is gone", **texts.RESET)
    if seen.port is not None:
        return do(Rule.RETRY_PORT, Verb.DELETE_PORT, "the failed server is gone", **texts.RESET)
    ready = wait(
        Rule.RETRY_READY,
        Code.CREATE_RETRYING,
        texts.CREATE_READY,
        **{**texts.RESET, "providerCreateRetrying": None},
    )
    return _with(ready, {}, (EVENT_READY,))


def _with(
    decision: Decision, status: Mapping[str, Any], events: tuple[str, ...], rule: Rule | None = None
) -> Decision:
    return Decision(
        rule or decision.rule,
        decision.verb,
        decision.outcome,
        decision.why,
        {**decision.status, **status},
        events,
    )
