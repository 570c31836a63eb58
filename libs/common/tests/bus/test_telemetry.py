"""Metrics, traces, logs, settings: what a process tells about itself, and what it must not."""

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog

from roadstead.cloud.engine import RequestNote
from roadstead.cloud.port import Verdict
from roadstead.logs import start_logging
from roadstead.seal import MARK, Secret
from roadstead.service_watch import CloudWatcher
from roadstead.settings import BadSettings, load_settings, table
from roadstead.telemetry.metrics import BY_NAME, METRICS, Meters, Shape
from roadstead.telemetry.traces import current_ids, no_tracing, start_tracing

# Regions and flavors are few, and alerts need them.
IDS = ("id", "key", "project", "identity", "name", "tenant")


def test_metrics_have_help_a_unit_in_their_name_and_no_label_that_is_an_id() -> None:
    for metric in METRICS:
        assert metric.help
        assert not set(metric.labels) & set(IDS), metric.name
        assert (metric.shape is Shape.COUNTER) == metric.name.endswith("_total"), metric.name
        assert (metric.shape is Shape.HISTOGRAM) == bool(metric.buckets), metric.name
        assert list(metric.buckets) == sorted(metric.buckets)
    assert len(BY_NAME) == len(METRICS)


def test_meters_count_what_they_are_told_and_know_no_other_name() -> None:
    meters = Meters()
    meters.count("roadstead_bus_errors_total", error="Error")
    meters.count("roadstead_bus_errors_total", 2, error="Error")
    meters.put("roadstead_stream_epoch", 3, stream="SPEC")
    meters.observe("roadstead_pass_seconds", 0.7, kind="server")
    assert meters.value("roadstead_bus_errors_total", error="Error") == 3
    text = meters.text().decode()
    assert 'roadstead_stream_epoch{stream="SPEC"} 3.0' in text
    assert 'roadstead_pass_seconds_bucket{kind="server",le="1.0"} 1.0' in text
    with pytest.raises(KeyError):
        meters.count("roadstead_unheard_of_total")
    with pytest.raises(ValueError, match="label"):
        meters.count("roadstead_bus_errors_total", subject="x")


def test_a_cloud_request_is_counted_by_template_and_status() -> None:
    meters = Meters()
    watch = CloudWatcher(meters, no_tracing())
    watch(
        RequestNote(
            "compute", "server.get", "GET", "/servers/{id}", 404, 0.2, "principal", "r", "req-1", Verdict.GONE
        )
    )
    watch(
        RequestNote(
            "compute", "server.create", "POST", "/servers", 0, 60.0, "principal", "r", None, Verdict.UNKNOWN
        )
    )
    watch(
        RequestNote(
            "compute", "server.create", "POST", "/servers", 0, 0.0, "principal", "r", None, Verdict.LEASE_LOST
        )
    )
    found = {"service": "compute", "method": "GET", "template": "/servers/{id}", "status": "404"}
    assert meters.value("openstack_api_requests_total", **found) == 1
    silent = {"service": "compute", "method": "POST", "template": "/servers", "status": "0"}
    assert meters.value("openstack_api_requests_total", **silent) == 1  # what was not sent is no request


def test_a_trace_is_carried_on_without_a_receiver() -> None:
    tracing = no_tracing()
    assert tracing.headers() == {}
    with tracing.span("outer", {}):
        outer = tracing.headers()["traceparent"]
        with tracing.span("inner"):
            assert tracing.headers()["traceparent"][:36] == outer[:36]
    with tracing.span("continued", {"traceparent": outer}):
        assert current_ids() is not None
        assert current_ids() == (outer[3:35], tracing.headers()["traceparent"][36:52])
    assert current_ids() is None
    with tracing.span("nonsense is no parent", {"traceparent": "00-zz"}):
        assert tracing.headers()["traceparent"][3:35] != outer[3:35]


def test_the_trace_file_holds_one_batch_a_line_with_hex_ids(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "traces.jsonl"
    tracing = start_tracing("compute", "replica-1", "1.2.3", file=file)
    with tracing.span("pass server", {}, generation=3):
        headers = tracing.headers()["traceparent"]
    tracing.close()
    [line] = file.read_text().splitlines()
    [part] = json.loads(line)["resourceSpans"]
    said = {a["key"]: a["value"]["stringValue"] for a in part["resource"]["attributes"]}
    assert (said["service.name"], said["service.instance.id"]) == ("roadstead-compute", "replica-1")
    [span] = part["scopeSpans"][0]["spans"]
    assert (span["name"], span["traceId"], span["spanId"]) == ("pass server", headers[3:35], headers[36:52])
    assert span["kind"] == 1


def test_traces_are_sent_to_an_otlp_receiver(tmp_path: Path) -> None:
    heard: list[tuple[str, str, int]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((self.path, self.headers["Content-Type"], len(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        tracing = start_tracing("compute", "r", "1", endpoint=f"http://127.0.0.1:{server.server_port}/")
        with tracing.span("pass server", {}):
            pass
        tracing.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert heard[0][:2] == ("/v1/traces", "application/x-protobuf")
    assert heard[0][2] > 0


@pytest.mark.parametrize("form", ["json", "console"])
def test_inv_287_a_secret_in_a_log_line_or_a_traceback_is_a_mark(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        start_logging("identity", "r1", level="debug", form=form)
        log = structlog.get_logger("test")
        password = "hunter2-hunter2"
        secret = Secret(password)
        with no_tracing().span("x", {}):
            log.info("made", credential=secret, deep={"a": [secret]})
            log.info(f"in the text {secret}")
        try:
            raise RuntimeError("failed")
        except RuntimeError:
            log.exception("no local variables here")
        logging.getLogger("other.library").warning("of the standard library %s", secret)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    text = capsys.readouterr().err
    assert password not in text
    assert MARK in text
    assert "of the standard library" in text
    assert "RuntimeError: failed" in text
    if form == "json":
        first = json.loads(text.splitlines()[0])
        assert (first["service"], first["replica"], first["event"]) == ("identity", "r1", "made")
        assert len(first["trace_id"]) == 32


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key_file = tmp_path / "keys"
    key_file.write_text("# first seals\nAAA\nBBB\n")
    monkeypatch.setenv("ROADSTEAD_NATS_URL", "nats://a:4222, nats://b:4222")
    monkeypatch.setenv("ROADSTEAD_SEAL_KEY_FILE", str(key_file))
    monkeypatch.setenv("ROADSTEAD_HEALTH_PORT", "")  # empty is unset
    settings = load_settings()
    assert settings.nats_url == ["nats://a:4222", "nats://b:4222"]
    assert settings.sealing_keys() == ["AAA", "BBB"]
    assert settings.health_port == 0
    assert settings.replica


def test_every_wrong_setting_is_named_at_once_and_no_value_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROADSTEAD_PACE", "-1")
    monkeypatch.setenv("ROADSTEAD_NATS_URL", "http://secret@host")
    with pytest.raises(BadSettings) as error:
        load_settings()
    lines = str(error.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["ROADSTEAD_NATS_URL", "ROADSTEAD_PACE"]
    assert "secret" not in str(error.value)


def test_secret_settings_do_not_print() -> None:
    settings = load_settings(
        nats_nkey_seed="SUASEED", seal_keys="KEYKEY", database_url="postgresql://u:pass@h/d"
    )
    assert not any(word in repr(settings) for word in ("SUASEED", "KEYKEY", "u:pass"))


def test_every_setting_is_described() -> None:
    for row in table():
        assert row["variable"].startswith("ROADSTEAD_")
        assert row["description"].endswith(".")
