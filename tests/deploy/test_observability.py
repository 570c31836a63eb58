"""Alerts, dashboards and the collector speak of metrics that exist, with labels that they have."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from scripts import dashboards

from roadstead.telemetry.metrics import BY_NAME, METRICS, Meters, Shape

from .manifests import DEPLOY

ALERTS = DEPLOY / "otel/alerts.yaml"
OF_PROMETHEUS = {"up"}
OF_TARGETS = {"app", "job", "instance", "le"}
NAME = re.compile(r"\b(up|(?:roadstead|openstack)_[a-z_]+)\b")


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metric_of(name: str) -> str:
    """The table's name of a series: a histogram has three."""
    for ending in ("_bucket", "_count", "_sum"):
        base = name.removesuffix(ending)
        if base != name and base in BY_NAME and BY_NAME[base].shape is Shape.HISTOGRAM:
            return base
    return name


def expressions() -> Iterator[tuple[str, str]]:
    for rule in alerts():
        yield rule["alert"], rule["expr"]
    for panel in dashboards.dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_an_expression_uses_metrics_and_labels_that_exist(where: str, expression: str) -> None:
    bare = re.sub(r'"[^"]*"', '""', expression)
    names = {metric_of(n) for n in NAME.findall(re.sub(r"by \([^)]*\)|\{[^}]*\}", "", bare))}
    assert names
    assert names <= set(BY_NAME) | OF_PROMETHEUS, where
    known = {label for n in names if n in BY_NAME for label in BY_NAME[n].labels} | OF_TARGETS
    grouped = {part.strip() for inner in re.findall(r"by \(([^)]*)\)", bare) for part in inner.split(",")}
    chosen = set(re.findall(r"[{,]\s*([a-z_]+)\s*[=!]", bare))
    assert grouped | chosen <= known, where


def test_alerts_say_what_to_do_and_are_told_apart() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names)) >= 10
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert len(rule["annotations"]["description"]) > 40


def test_the_words_that_alerts_look_for_are_the_ones_that_passes_count() -> None:
    from roadstead.reconcile.decision import Code, Retry
    from roadstead.reconcile.drive import Ending
    from roadstead.service_watch import outcome_word

    wanted = re.findall(r'roadstead_passes_total\{outcome="([^"]+)"', ALERTS.read_text())
    assert wanted == [outcome_word(Ending(Retry(Code.INTERNAL, "")))]


@pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not on PATH; the other tests read the same files"
)
def test_promtool_takes_the_files() -> None:
    checked = subprocess.run(
        ["promtool", "check", "rules", str(ALERTS)], check=False, capture_output=True, text=True, timeout=30
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_dashboard_is_up_to_date_and_shows_every_metric() -> None:
    shown = json.loads(dashboards.PATH.read_text())
    assert shown == dashboards.dashboard(), "run `make docs`"
    panels = [p for p in shown["panels"] if p["type"] == "timeseries"]
    assert [f"`{m.name}`" for m in METRICS] != []
    assert {p["description"] for p in panels} == {f"`{m.name}`" for m in METRICS}


def test_panels_do_not_overlap_and_ids_are_told_apart() -> None:
    panels = dashboards.dashboard()["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < dashboards.COLUMNS for x, _ in cells)
        taken |= cells


def test_a_new_metric_gets_a_panel_in_some_row() -> None:
    metric = BY_NAME["roadstead_task_restarts_total"]
    fresh = type(metric)("something_new_total", Shape.COUNTER, "New")
    panels = dashboards.dashboard([metric, fresh])["panels"]
    assert [p["title"] for p in panels if p["type"] == "row"] == ["Broker and process", dashboards.OTHERS]


def test_every_series_that_is_asked_for_is_exposed() -> None:
    """Names in the exposition are not always those of the table: a counter's bears `_total`."""
    text = Meters().text().decode()
    for metric in METRICS:
        assert f"# HELP {metric.name.removesuffix('_total')}" in text or f"# HELP {metric.name} " in text


def test_the_collector_hands_traces_on_and_uses_only_what_it_declares() -> None:
    config = yaml.safe_load((DEPLOY / "otel/collector.yaml").read_text())
    for pipeline in config["service"]["pipelines"].values():
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= set(config[part])
        assert pipeline["processors"][0] == "memory_limiter"  # it refuses before anything is held


def test_grafana_is_told_where_its_sources_and_dashboards_are() -> None:
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/roadstead.yaml").read_text())[
        "datasources"
    ]
    assert dashboards.SOURCE["uid"] in {s["uid"] for s in sources}
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for source in sources:
        host = source["url"].split("://")[1].partition(":")[0]
        assert host in compose["services"]
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/roadstead.yaml").read_text())[
        "providers"
    ][0]
    assert any(
        m.endswith(f":{provider['options']['path']}:ro") for m in compose["services"]["grafana"]["volumes"]
    )
