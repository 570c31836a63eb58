"""Traces whose spans are sent, and traces of which only the ids are carried on."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from roadstead.telemetry.lines import message
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.spans import headers_of, parent_of
from roadstead.telemetry.traces import Tracing, current_ids, no_tracing, start_tracing

PROPAGATOR = TraceContextTextMapPropagator()
TRACE, ABOVE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CARRIER = {"traceparent": f"00-{TRACE}-{ABOVE}-01"}


@pytest.fixture(params=["sent", "ids only"])
def tracing(request: pytest.FixtureRequest, tmp_path: Path) -> Tracing:
    if request.param == "sent":
        return start_tracing("test", "one", "1", file=tmp_path / "spans.jsonl")
    return no_tracing()


def test_a_carrier_is_continued_under_a_new_span_id(tracing: Tracing) -> None:
    with tracing.span("inner", CARRIER):
        ids = current_ids()
        assert ids is not None
        assert ids[0] == TRACE
        assert ids[1] != ABOVE
        assert tracing.headers() == {"traceparent": f"00-{TRACE}-{ids[1]}-01"}
    assert current_ids() is None
    assert tracing.headers() == {}


def test_an_empty_carrier_begins_a_trace_and_no_carrier_stays_in_the_current_one(tracing: Tracing) -> None:
    with tracing.span("outer", {}):
        outer = current_ids()
        with tracing.span("inside"):
            inside = current_ids()
        with tracing.span("apart", {}):
            apart = current_ids()
        assert current_ids() == outer
    assert outer is not None
    assert inside is not None
    assert apart is not None
    assert inside[0] == outer[0]
    assert inside[1] != outer[1]
    assert apart[0] != outer[0]


def test_a_trace_that_was_not_sampled_stays_so(tracing: Tracing) -> None:
    with tracing.span("inner", {"traceparent": f"00-{TRACE}-{ABOVE}-00"}):
        assert tracing.headers()["traceparent"].endswith("-00")


def test_an_exception_leaves_the_block_and_the_current_span_is_as_before(tracing: Tracing) -> None:
    with tracing.span("outer", {}):
        before = current_ids()
        with pytest.raises(RuntimeError, match="on the way"), tracing.span("inner"):
            raise RuntimeError("on the way")
        assert current_ids() == before
    assert not trace.get_current_span().get_span_context().is_valid


def test_sent_spans_hang_below_each_other_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    tracing = start_tracing("test", "one", "1", file=path)
    with tracing.span("outer", CARRIER), tracing.span("inner", seconds=1):
        pass
    tracing.close()
    batches = [json.loads(line) for line in path.read_text().splitlines()]
    spans = {
        s["name"]: s for b in batches for r in b["resourceSpans"] for x in r["scopeSpans"] for s in x["spans"]
    }
    assert spans["outer"]["traceId"] == spans["inner"]["traceId"] == TRACE
    assert spans["outer"]["parentSpanId"] == ABOVE
    assert spans["inner"]["parentSpanId"] == spans["outer"]["spanId"]


class Kept(SpanExporter):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


def test_a_line_is_what_the_librarys_own_messages_say() -> None:
    """And so is what an OTLP receiver gets, which is made from the same spans."""
    kept = Kept()
    tracing = Tracing(Resource.create({"service.name": "x", "n": 3}), [BatchSpanProcessor(kept)])
    with tracing.span("remote", {**CARRIER, "tracestate": "a=b,c=d"}, kind=SpanKind.CONSUMER) as outer:
        outer.set_attribute("text", "grün")
        outer.set_attributes({"big": 2**62, "half": 0.5, "yes": True})
        with tracing.span("to be named", seconds=1) as inner:
            inner.update_name("named")
        tracing.past("GET x", 5, 7, failed=True, status=500)
    with pytest.raises(RuntimeError), tracing.span("apart", {}, kind=SpanKind.SERVER):
        raise RuntimeError("on the way")
    tracing.close()
    assert [s.name for s in kept.spans] == ["named", "GET x", "remote", "apart"]
    expected = MessageToDict(encode_spans(kept.spans), use_integers_for_enums=True)
    for span in expected["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in {"traceId", "spanId", "parentSpanId"} & set(span):
            span[name] = base64.b64decode(span[name]).hex()
    assert message(kept.spans) == expected
    assert message([]) == {}


def test_what_was_not_sampled_is_not_sent() -> None:
    kept = Kept()
    tracing = Tracing(Resource.get_empty(), [BatchSpanProcessor(kept)])
    with tracing.span("not sampled", {"traceparent": f"00-{TRACE}-{ABOVE}-00"}), tracing.span("below"):
        tracing.past("GET x", 5, 7, failed=False)
    with tracing.span("sampled", CARRIER):
        pass
    tracing.close()
    assert [s.name for s in kept.spans] == ["sampled"]


PIECES = st.sampled_from(
    ["00", "01", "ff", "0", TRACE, TRACE.upper(), "0" * 32, ABOVE, "0" * 16, "", "x", " "]
)


@given(st.lists(PIECES, max_size=6), st.sampled_from(["", "a=b", "a=b,c=d", "=", "a=b,,"]))
def test_headers_are_read_and_written_as_the_standard_says(pieces: list[str], state: str) -> None:
    carrier = {"traceparent": "-".join(pieces), "tracestate": state}
    for made in (carrier, {**carrier, "traceparent": CARRIER["traceparent"]}):
        expected = trace.get_current_span(PROPAGATOR.extract(made)).get_span_context()
        found = parent_of(made)
        assert (found or INVALID_SPAN_CONTEXT) == expected
        if found is not None:
            written: dict[str, str] = {}
            PROPAGATOR.inject(written, trace.set_span_in_context(NonRecordingSpan(expected)))
            assert headers_of(found) == written


def test_labels_are_told_apart_and_counted_up() -> None:
    meters = Meters()
    for outcome in ("done", "done", "yield"):
        meters.count("roadstead_passes_total", kind="server", outcome=outcome)
    meters.count("roadstead_passes_total", kind="volume", outcome="done")
    assert meters.value("roadstead_passes_total", kind="server", outcome="done") == 2
    assert meters.value("roadstead_passes_total", kind="server", outcome="yield") == 1
    assert meters.value("roadstead_passes_total", kind="volume", outcome="done") == 1


def test_a_metric_or_label_that_the_table_lacks_is_refused() -> None:
    meters = Meters()
    with pytest.raises(KeyError):
        meters.count("roadstead_nothing_total")
    with pytest.raises(ValueError, match="label"):
        meters.count("roadstead_passes_total", kind="server")
