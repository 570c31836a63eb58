#!/usr/bin/env python3
"""Writes `deploy/grafana/dashboards/roadstead.json` from the table of metrics, so that no figure is without a panel.

    dashboards.py [--check]

A counter is shown as its rate by labels, a gauge as it is, a histogram as its median and 99th percentile.  `make docs` runs it.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadstead.telemetry.metrics import METRICS, Metric, Shape

PATH = Path(__file__).resolve().parent.parent / "deploy/grafana/dashboards/roadstead.json"
SOURCE = {"type": "prometheus", "uid": "prometheus"}
WIDTH, HEIGHT, COLUMNS = 12, 8, 24

# Rows by the beginning of a metric's name, in the order in which a person looks.
ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Passes", ("roadstead_pass", "roadstead_due", "roadstead_provisioned")),
    ("Servers", ("roadstead_server", "roadstead_sweep")),
    ("Cloud requests", ("openstack_", "roadstead_region")),
    ("Requests", ("roadstead_request",)),
    ("Messages", ("roadstead_message", "roadstead_dead", "roadstead_publish", "roadstead_consumer")),
    ("Broker and process", ("roadstead_bus", "roadstead_stream", "roadstead_task")),
)
OTHERS = "Others"


def row_of(name: str) -> str:
    """The row that a metric is shown in."""
    return next((title for title, starts in ROWS if name.startswith(starts)), OTHERS)


def queries(metric: Metric) -> list[tuple[str, str]]:
    """(expression, legend) of a metric's lines."""
    labels = ", ".join(metric.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels) or metric.name
    match metric.shape:
        case Shape.COUNTER:
            by = f"sum by ({labels}) " if labels else "sum "
            return [(f"{by}(rate({metric.name}[$__rate_interval]))", legend)]
        case Shape.GAUGE:
            return [
                (f"max by ({', '.join(('app', *metric.labels))}) ({metric.name})", f"{{{{app}}}} {legend}")
            ]
        case Shape.HISTOGRAM:
            # By the first label alone: the product of all is too many lines for one panel.
            first = metric.labels[:1]
            by = ", ".join((*first, "le"))
            rate = f"sum by ({by}) (rate({metric.name}_bucket[$__rate_interval]))"
            prefix = f"{{{{{first[0]}}}}} " if first else ""
            return [(f"histogram_quantile({q}, {rate})", f"{prefix}p{q * 100:g}") for q in (0.5, 0.99)]
    raise AssertionError(metric.shape)


def unit_of(metric: Metric) -> str:
    """Grafana's name of the unit on the axis."""
    if metric.shape is Shape.COUNTER:
        return "ops"
    return "percentunit" if metric.name.endswith("_ratio") else (metric.unit or "short")


def panel(metric: Metric, number: int, x: int, y: int) -> dict[str, Any]:
    """One time series panel."""
    return {
        "id": number,
        "type": "timeseries",
        "title": metric.help,
        "description": f"`{metric.name}`",
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit_of(metric), "custom": {"fillOpacity": 5}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for i, (expression, legend) in enumerate(queries(metric))
        ],
    }  # fmt: skip


def dashboard(metrics: Sequence[Metric] = METRICS) -> dict[str, Any]:
    """The whole dashboard: a row per subject, two panels beside each other."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title in [*(title for title, _ in ROWS), OTHERS]:
        chosen = [m for m in metrics if row_of(m.name) == title]
        if not chosen:
            continue
        place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": place,
                "panels": [],
            }
        )
        y += 1
        for index, metric in enumerate(chosen):
            x = index * WIDTH % COLUMNS
            panels.append(panel(metric, len(panels) + 1, x, y + index * WIDTH // COLUMNS * HEIGHT))
        y += -(-len(chosen) * WIDTH // COLUMNS) * HEIGHT
    return {
        "uid": "roadstead",
        "title": "Roadstead",
        "tags": ["roadstead"],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": []},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def text() -> str:
    """The file's content."""
    return json.dumps(dashboard(), indent=1) + "\n"


def main() -> int:
    """Write or check; exit status 1 when the file is out of date."""
    if sys.argv[1:] not in ([], ["--check"]):
        sys.stderr.write(f"dashboards: {' '.join(sys.argv[1:])} is not known; the only argument is --check\n")
        return 2
    if PATH.exists() and PATH.read_text() == text():
        return 0
    if sys.argv[1:]:
        print("deploy/grafana/dashboards/roadstead.json is out of date: run `make docs`")
        return 1
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(text())
    print("deploy/grafana/dashboards/roadstead.json written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
