"""One trace through bus, rows and cloud: W3C `traceparent` in headers, spans sent by OTLP over HTTP or written as lines.

Without a receiver a trace still gets an id and is carried on, so that logs of all services can be joined; only nothing is sent.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    set_span_in_context,
)

from roadstead.telemetry.lines import LinesExporter
from roadstead.telemetry.spans import OpenSpan, below, headers_of, parent_of

SEND_EVERY_MS = 1000
FAILED = Status(StatusCode.ERROR)


class Tracing:
    """The spans of one process.  Methods cost microseconds and never raise.

    resource: what the process is; processors: where its ended spans go, without any they are not even recorded.
    """

    def __init__(self, resource: Resource, processors: Sequence[BatchSpanProcessor] = ()) -> None:
        self._resource = resource
        self._processors = tuple(processors)
        self.sends = bool(processors)

    @contextmanager
    def span(
        self,
        name: str,
        carrier: Mapping[str, str] | None = None,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        **attributes: str | int | float | bool,
    ) -> Iterator[Span]:
        """A span, current inside the block.

        carrier: headers whose trace is continued; None: the current span's.  An exception that leaves the block marks the span.
        """
        parent = parent_of(carrier) if carrier is not None else _current()
        if not self.sends:
            unsent = NonRecordingSpan(below(parent))
            token = otel_context.attach(set_span_in_context(unsent))
            try:
                yield unsent
            finally:
                otel_context.detach(token)
            return
        span = OpenSpan(name, parent, self._resource, self._ended, kind=kind, attributes=attributes)
        token = otel_context.attach(set_span_in_context(span))
        try:
            yield span
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
            raise
        finally:
            otel_context.detach(token)
            span.end()

    def past(self, name: str, began_ns: int, ended_ns: int, *, failed: bool, **attributes: str | int) -> None:
        """A client span that is already over, under the current one."""
        span = OpenSpan(
            name,
            _current(),
            self._resource,
            self._ended,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start=began_ns,
        )
        if failed:
            span.set_status(FAILED)
        span.end(ended_ns)

    def headers(self) -> dict[str, str]:
        """`traceparent` (and `tracestate`) of the current span; empty outside of any."""
        current = _current()
        return headers_of(current) if current is not None else {}

    def _ended(self, span: ReadableSpan) -> None:
        for processor in self._processors:
            processor.on_end(span)

    def close(self) -> None:
        """Send what waits, a few seconds at most."""
        for processor in self._processors:
            processor.force_flush(3000)
            processor.shutdown()  # type: ignore[no-untyped-call]  # the library leaves it untyped


def _current() -> SpanContext | None:
    found = trace.get_current_span().get_span_context()
    return found if found.is_valid else None


def start_tracing(
    service: str, replica: str, version: str, *, endpoint: str | None = None, file: Path | None = None
) -> Tracing:
    """endpoint: base address of an OTLP/HTTP receiver (`/v1/traces` is added); file: OTLP-JSON, one batch a line.

    OSError when the file cannot be written.
    """
    resource = Resource.create(
        {"service.name": f"roadstead-{service}", "service.instance.id": replica, "service.version": version}
    )
    exporters: list[SpanExporter] = []
    if endpoint:
        exporters.append(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5))
    if file is not None:
        exporters.append(LinesExporter(file))
    processors = [BatchSpanProcessor(e, schedule_delay_millis=SEND_EVERY_MS) for e in exporters]
    return Tracing(resource, processors)


def no_tracing() -> Tracing:
    """Ids are made and carried, nothing is sent."""
    return Tracing(Resource.get_empty())


def current_ids() -> tuple[str, str] | None:
    """(trace id, span id) of the current span in hex; None outside of any."""
    found = _current()
    return (f"{found.trace_id:032x}", f"{found.span_id:016x}") if found is not None else None
