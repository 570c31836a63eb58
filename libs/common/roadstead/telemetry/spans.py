"""A span under way, and `traceparent` headers: the small part of OpenTelemetry that each pass and each message goes through.

The library's own span keeps bounded collections behind locks and asks samplers and limits at every step; ours is ended into the
same read-only span that processors and exporters take.  Its sampling is the carrier's: what was not sampled is carried on, not sent.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState
from opentelemetry.util.types import Attributes, AttributeValue

NUMBERS = RandomIdGenerator()
SCOPE = InstrumentationScope("roadstead")
_PARENT = re.compile(r"\s*([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?\s*")
UNSET = Status(StatusCode.UNSET)


def parent_of(carrier: Mapping[str, str]) -> SpanContext | None:
    """Where the headers say that the trace comes from (W3C trace context); None where they do not say it, or say nonsense."""
    text = carrier.get("traceparent")
    found = _PARENT.fullmatch(text) if text else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    state = carrier.get("tracestate")
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([state]) if state else None,
    )


def headers_of(context: SpanContext) -> dict[str, str]:
    """The headers that carry a trace on."""
    made = {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
    if context.trace_state:
        made["tracestate"] = context.trace_state.to_header()
    return made


def below(parent: SpanContext | None) -> SpanContext:
    """The ids of a new span: in its parent's trace, or in one of its own."""
    if parent is None:
        return SpanContext(
            NUMBERS.generate_trace_id(), NUMBERS.generate_span_id(), False, TraceFlags(TraceFlags.SAMPLED)
        )
    return SpanContext(
        parent.trace_id, NUMBERS.generate_span_id(), False, parent.trace_flags, parent.trace_state
    )


class OpenSpan(Span):
    """A span that is recorded until it ends; then `done` gets it.  resource: of the process."""

    __slots__ = (
        "_attributes", "_context", "_done", "_ended", "_kind", "_name", "_parent", "_resource", "_start", "_status",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        parent: SpanContext | None,
        resource: Resource,
        done: Callable[[ReadableSpan], None],
        *,
        kind: SpanKind,
        attributes: Mapping[str, AttributeValue],
        start: int | None = None,
    ) -> None:
        self._name = name
        self._parent = parent
        self._context = below(parent)
        self._resource = resource
        self._done = done
        self._kind = kind
        self._attributes = dict(attributes)
        self._start = time.time_ns() if start is None else start
        self._status = UNSET
        self._ended = False

    def end(self, end_time: int | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if not self._context.trace_flags.sampled:
            return
        self._done(
            ReadableSpan(
                name=self._name,
                context=self._context,
                parent=self._parent,
                resource=self._resource,
                attributes=self._attributes,
                kind=self._kind,
                status=self._status,
                start_time=self._start,
                end_time=time.time_ns() if end_time is None else end_time,
                instrumentation_scope=SCOPE,
            )
        )

    def get_span_context(self) -> SpanContext:
        return self._context

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        self._attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        self._attributes.update(attributes)

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        """Not kept: what happens within a span is a span or a log line here."""

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Not kept: the log has it, with the trace's id."""

    def update_name(self, name: str) -> None:
        self._name = name

    def is_recording(self) -> bool:
        return not self._ended

    def set_status(self, status: Any, description: str | None = None) -> None:
        self._status = status if isinstance(status, Status) else Status(status, description)
