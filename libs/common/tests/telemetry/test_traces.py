"""Traces whose spans are sent, and traces of which only the ids are carried on."""

import json
from pathlib import Path

import pytest
from opentelemetry import trace

from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing, current_ids, no_tracing, start_tracing

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
