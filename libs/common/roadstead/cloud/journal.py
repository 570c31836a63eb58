"""What every request to a cloud leaves behind: a note for metrics and spans, and the difference of the clocks."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from roadstead.clock import Clock
from roadstead.cloud.limits import retry_after
from roadstead.cloud.logins import SCOPE_WORDS
from roadstead.cloud.operations import Operation
from roadstead.cloud.port import Scope, Verdict
from roadstead.cloud.sending import Access, NotSent, RawAnswer, Unanswered
from roadstead.cloud.verdicts import NO_ANSWER, error_of, verdict

_T = TypeVar("_T", bound="RawAnswer | Access")


@dataclass(frozen=True)
class RequestNote:
    """One HTTP request, for metrics (openstack_api_*) and spans; bears no ids, only the path's template.

    status 0: no answer.  seconds: on the monotonic clock.  verdict: None for a success.
    """

    service: str
    verb: str
    method: str
    template: str
    status: int
    seconds: float
    scope: str
    region: str
    request_id: str | None
    verdict: Verdict | None


@dataclass
class Journal:
    """Tells the listener of each request.

    skews: seconds by which a region's clock was ahead of ours, by its last token or the date of its last answer.
    """

    clock: Clock
    listener: Callable[[RequestNote], None] | None = None
    skews: dict[str, float] = field(default_factory=dict)

    async def watch(self, op: Operation, scope: Scope, sending: Awaitable[_T]) -> _T:
        """Await one call of a sender and note how it went; raises what it raises."""
        begun = self.clock.monotonic()
        status, request_id, means = 0, None, None
        try:
            raw = await sending
            if isinstance(raw, RawAnswer):
                status, request_id = raw.status, raw.request_id
                self._compare_clocks(scope.region, raw)
                if not op.succeeds(raw.status):
                    pause = retry_after(raw.headers, self.clock.now())
                    means = verdict(op, raw.status, *error_of(raw.body), pause)
            else:
                status = 201
                if raw.issued_at is not None:
                    self.skews[scope.region] = (raw.issued_at - self.clock.now()).total_seconds()
            return raw
        except NotSent as refused:
            means = refused.verdict
            raise
        except Unanswered:
            means = verdict(op, NO_ANSWER, None, "")
            raise
        finally:
            if self.listener is not None:
                self.listener(
                    RequestNote(
                        op.service, op.verb, op.method, op.path, status, self.clock.monotonic() - begun,
                        SCOPE_WORDS[type(scope)], scope.region, request_id, means,
                    )
                )  # fmt: skip

    def _compare_clocks(self, region: str, raw: RawAnswer) -> None:
        said = raw.headers.get("date")
        if not said:
            return
        try:
            self.skews[region] = (parsedate_to_datetime(said) - self.clock.now()).total_seconds()
        except (ValueError, TypeError):
            self.skews.pop(region, None)
