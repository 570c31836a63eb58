"""Spans as lines of OTLP-JSON in a file, one batch a line; made without the detour over protobuf messages, which costs more than
the span itself."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_REMOTE_KNOWN, _REMOTE = 0x100, 0x200


class LinesExporter(SpanExporter):
    """Appends each batch as one line of OTLP-JSON.  Several processes may share the file: a line is one write."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        line = orjson.dumps(message(spans)) + b"\n"
        with self._lock:
            self._file.write(line)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._file.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


def message(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """An ExportTraceServiceRequest of spans that share resource and scope, in the JSON of OTLP: enums as numbers, ids in hex, and
    numbers of 64 bits as texts."""
    if not spans:
        return {}
    resource, scope = spans[0].resource, spans[0].instrumentation_scope
    named = {"name": scope.name} if scope is not None else {}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource.attributes)},
                "scopeSpans": [{"scope": named, "spans": [_span(s) for s in spans]}],
            }
        ]
    }


def _span(span: ReadableSpan) -> dict[str, Any]:
    context, parent = span.context, span.parent
    assert context is not None
    made: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "flags": _REMOTE_KNOWN | (_REMOTE if parent is not None and parent.is_remote else 0),
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "status": {},
    }
    if context.trace_state:
        made["traceState"] = context.trace_state.to_header()
    if parent is not None:
        made["parentSpanId"] = f"{parent.span_id:016x}"
    if span.attributes:
        made["attributes"] = _attributes(span.attributes)
    if span.status.status_code.value:
        made["status"] = {"code": span.status.status_code.value}
        if span.status.description:
            made["status"]["message"] = span.status.description
    return made


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
