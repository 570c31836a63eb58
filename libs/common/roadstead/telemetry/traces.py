"""One trace through bus, rows and cloud: W3C `traceparent` in headers, spans sent by OTLP over HTTP or written as lines.

Without a receiver a trace still gets an id and is carried on, so that logs of all services can be joined; only nothing is sent.
"""

import base64
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # it ships no types
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

PROPAGATOR = TraceContextTextMapPropagator()
SEND_EVERY_MS = 1000
NUMBERS = RandomIdGenerator()
_IDS = ("traceId", "spanId", "parentSpanId")


class Tracing:
    """The spans of one process.  Methods cost microseconds and never raise."""

    def __init__(self, provider: TracerProvider, *, sends: bool) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("roadstead")
        self.sends = sends

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
        parent = PROPAGATOR.extract(carrier) if carrier is not None else None
        if not self.sends:
            with _ids_only(parent) as unsent:
                yield unsent
            return
        with self._tracer.start_as_current_span(
            name, context=parent, kind=kind, attributes=attributes, record_exception=False
        ) as span:
            yield span

    def past(self, name: str, began_ns: int, ended_ns: int, *, failed: bool, **attributes: str | int) -> None:
        """A client span that is already over, under the current one."""
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, start_time=began_ns, attributes=attributes)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended_ns)

    def headers(self) -> dict[str, str]:
        """`traceparent` (and `tracestate`) of the current span; empty outside of any."""
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier)
        return carrier

    def close(self) -> None:
        """Send what waits, a few seconds at most."""
        self._provider.force_flush(3000)
        self._provider.shutdown()


def start_tracing(
    service: str, replica: str, version: str, *, endpoint: str | None = None, file: Path | None = None
) -> Tracing:
    """endpoint: base address of an OTLP/HTTP receiver (`/v1/traces` is added); file: OTLP-JSON, one batch a line.

    OSError when the file cannot be written.
    """
    resource = Resource.create(
        {"service.name": f"roadstead-{service}", "service.instance.id": replica, "service.version": version}
    )
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporters: list[SpanExporter] = []
    if endpoint:
        exporters.append(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5))
    if file is not None:
        exporters.append(LinesExporter(file))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=SEND_EVERY_MS))
    return Tracing(provider, sends=bool(exporters))


@contextmanager
def _ids_only(parent: otel_context.Context | None) -> Iterator[Span]:
    """The ids that a span would have, current inside the block; a span that nobody is sent costs ten times as much."""
    above = trace.get_current_span(parent).get_span_context()
    trace_id = above.trace_id if above.is_valid else NUMBERS.generate_trace_id()
    flags = above.trace_flags if above.is_valid else TraceFlags(TraceFlags.SAMPLED)
    state = above.trace_state if above.is_valid else None
    span = NonRecordingSpan(SpanContext(trace_id, NUMBERS.generate_span_id(), False, flags, state))
    token = otel_context.attach(set_span_in_context(span, parent))
    try:
        yield span
    finally:
        otel_context.detach(token)


def no_tracing() -> Tracing:
    """Ids are made and carried, nothing is sent."""
    return Tracing(TracerProvider(shutdown_on_exit=False), sends=False)


def current_ids() -> tuple[str, str] | None:
    """(trace id, span id) of the current span in hex; None outside of any."""
    found = trace.get_current_span(otel_context.get_current()).get_span_context()
    return (f"{found.trace_id:032x}", f"{found.span_id:016x}") if found.is_valid else None


class LinesExporter(SpanExporter):
    """Appends each batch as one line of OTLP-JSON.  Several processes may share the file: a line is one write."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        message = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        for part in message.get("resourceSpans", ()):
            for scope in part.get("scopeSpans", ()):
                for span in scope.get("spans", ()):
                    _hex_ids(span)
        with self._lock:
            self._file.write(orjson.dumps(message) + b"\n")
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._file.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


def _hex_ids(span: dict[str, Any]) -> None:
    """OTLP-JSON spells ids in hex, the generic JSON of its messages in base64."""
    for name in _IDS:
        if name in span:
            span[name] = base64.b64decode(span[name]).hex()
    for link in span.get("links", ()):
        _hex_ids(link)
