"""What an error of the cloud makes of a pass: one table from verdict to outcome (errors.md section 2).

Kinds catch only what behaviour.md gives a meaning of its own; everything else ends here.  Users read our text, never the cloud's.
"""

from roadstead.cloud.port import CloudError, Verdict
from roadstead.cloud.verdicts import safe_text
from roadstead.reconcile.decision import Code, Outcome, Park, Retry, Yield

CODES: dict[Verdict, Code] = {
    Verdict.GONE: Code.NOT_FOUND,
    Verdict.CONFLICT: Code.CONFLICT,
    Verdict.BUSY: Code.BUSY,
    Verdict.IN_USE: Code.IN_USE,
    Verdict.EXISTS: Code.CONFLICT,
    Verdict.QUOTA: Code.QUOTA_EXCEEDED,
    Verdict.EXHAUSTED: Code.ALLOCATION,
    Verdict.REFUSED: Code.REFUSED,
    Verdict.IMAGE_NOT_FOUND: Code.REFUSED,
    Verdict.FORBIDDEN: Code.FORBIDDEN,
    Verdict.UNAUTHORIZED: Code.FORBIDDEN,
    Verdict.THROTTLED: Code.THROTTLED,
    Verdict.UNAVAILABLE: Code.UNAVAILABLE,
    Verdict.UNKNOWN: Code.UNKNOWN,
    Verdict.CONSISTENCY: Code.CONSISTENCY,
    Verdict.NOT_SUPPORTED: Code.NOT_OFFERED,
    Verdict.WRONG_CLOUD: Code.WRONG_CLOUD,
    Verdict.KEY: Code.KEY,
    Verdict.LEASE_LOST: Code.INTERNAL,
}


STEADY = {("compute", "server.rebuild")}
"""Refusals that are asked again after the fixed pause: an image may be made good at any time (behaviour.md section 9.3, INV-118)."""


def outcome_of(error: CloudError) -> Outcome:
    """The outcome of a pass that an error ended.

    In use is a wait with a named reason; a slow-down asked for by the cloud is no failure; all else is Errored and tried again.
    """
    service, verb = (error.call.service, error.call.verb) if error.call else ("", "")
    text = safe_text(error.verdict, service, verb)
    code = CODES[error.verdict]
    if error.verdict is Verdict.THROTTLED:
        return Yield(code, text, error.retry_after)
    if error.verdict in (Verdict.IN_USE, Verdict.BUSY):
        return Yield(code, text)
    return Retry(code, text, error.retry_after, steady=(service, verb) in STEADY)


def on_delete_path(outcome: Outcome) -> Outcome:
    """A deletion never parks: a terminal result is an error that is tried again (REF-006)."""
    return Retry(outcome.code, outcome.message) if isinstance(outcome, Park) else outcome
