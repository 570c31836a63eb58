"""Passes and cloud requests as numbers and spans."""

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import structlog

from roadstead.cloud.engine import RequestNote
from roadstead.cloud.port import Verdict
from roadstead.reconcile.decision import Done
from roadstead.reconcile.drive import Ending
from roadstead.store.api import Row
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing


class PassWatcher:
    """The loop's telemetry.  A pass's span continues the trace of what woke the row."""

    def __init__(self, meters: Meters, tracing: Tracing) -> None:
        self._meters = meters
        self._tracing = tracing

    @contextlib.contextmanager
    def began(self, kind: str, row: Row, lag: float) -> Iterator[Any]:
        self._meters.observe("roadstead_due_lag_seconds", lag, kind=kind)
        cause = row.work.cause.get("traceparent")
        carrier = {"traceparent": str(cause)} if cause else {}
        key = str(row.key)
        with (
            structlog.contextvars.bound_contextvars(key=key, generation=row.generation),
            self._tracing.span(f"pass {kind}", carrier) as span,
        ):
            span.set_attribute("roadstead.key", key)
            span.set_attribute("roadstead.generation", row.generation)
            yield span

    def ended(self, kind: str, row: Row, ending: Ending, seconds: float) -> None:
        outcome = outcome_word(ending)
        self._meters.count("roadstead_passes_total", kind=kind, outcome=outcome)
        self._meters.observe("roadstead_pass_seconds", seconds, kind=kind)
        first = isinstance(ending.outcome, Done) and not row.deleting and not row.ever_provisioned
        if first and row.created_at is not None:
            age = (datetime.now(UTC) - row.created_at).total_seconds()
            self._meters.observe("roadstead_provisioned_seconds", max(0.0, age), kind=kind)


def outcome_word(ending: Ending) -> str:
    """done, yield, park or retry, with the code where there is one: `park NOT_OFFERED`."""
    word = type(ending.outcome).__name__.lower()
    code = str(getattr(ending.outcome, "code", "") or "")
    return f"{word} {code}" if code else word


class CloudWatcher:
    """Listener of the cloud engine: `openstack_api_*`, and one client span a request under the pass that made it."""

    def __init__(self, meters: Meters, tracing: Tracing) -> None:
        self._meters = meters
        self._tracing = tracing

    def __call__(self, note: RequestNote) -> None:
        if note.verdict is Verdict.LEASE_LOST:
            return  # nothing was sent
        what = {"service": note.service, "method": note.method, "template": note.template}
        self._meters.count("openstack_api_requests_total", status=str(note.status), **what)
        self._meters.observe("openstack_api_request_duration_seconds", note.seconds, **what)
        if self._tracing.sends:
            ended = time.time_ns()
            self._tracing.past(
                f"{note.method} {note.service} {note.template}",
                ended - int(note.seconds * 1e9),
                ended,
                failed=note.status == 0 or note.status >= 500,
                status=note.status,
                request_id=note.request_id or "",
                scope=note.scope,
            )
