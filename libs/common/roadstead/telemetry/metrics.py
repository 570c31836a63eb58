"""Every metric as data: the registry, the tests and the dashboards are made from this one table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector


class Shape(StrEnum):
    """How a metric moves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
CALL = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
LONG = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)


@dataclass(frozen=True)
class Metric:
    """One metric.  unit: of the value, for axes; buckets: upper bounds of a histogram, in the unit."""

    name: str
    shape: Shape
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()


C, G, H = Shape.COUNTER, Shape.GAUGE, Shape.HISTOGRAM

METRICS: tuple[Metric, ...] = (
    Metric("roadstead_passes_total", C, "Passes by how they ended", ("kind", "outcome")),
    Metric("roadstead_pass_seconds", H, "Time a pass took", ("kind",), "s", LONG),
    Metric("roadstead_due_lag_seconds", H, "From due to claimed", ("kind",), "s", LONG),
    Metric(
        "roadstead_provisioned_seconds",
        H,
        "From the first accepted spec to Provisioned for the first time",
        ("kind",),
        "s",
        LONG,
    ),
    Metric(
        "roadstead_messages_total", C, "Messages consumed, by what became of them", ("subject", "outcome")
    ),
    Metric("roadstead_message_seconds", H, "Time a message was handled", ("subject",), "s", FAST),
    Metric(
        "roadstead_message_age_seconds", H, "From stored in the stream to handled", ("subject",), "s", LONG
    ),
    Metric("roadstead_dead_letters_total", C, "Messages put aside, by reason", ("subject", "reason")),
    Metric("roadstead_published_total", C, "Messages published, by outcome", ("subject", "outcome")),
    Metric("roadstead_publish_seconds", H, "Time to the broker's acknowledgement", ("subject",), "s", FAST),
    Metric("roadstead_requests_total", C, "Requests answered, by outcome", ("subject", "outcome")),
    Metric("roadstead_request_seconds", H, "Time to answer a request", ("subject",), "s", FAST),
    Metric("roadstead_bus_connected", G, "1 while the broker is connected and its streams were checked"),
    Metric("roadstead_bus_connections_total", C, "Connections made to the broker"),
    Metric("roadstead_bus_errors_total", C, "Errors that the broker or its connection reported", ("error",)),
    Metric("roadstead_stream_epoch", G, "Lives of a stream so far", ("stream",)),
    Metric("roadstead_stream_fill_ratio", G, "Bytes in a stream, of its limit", ("stream",)),
    Metric("roadstead_consumer_pending", G, "Messages that wait for a consumer", ("consumer",)),
    Metric("roadstead_consumer_unacknowledged", G, "Messages delivered and not acknowledged", ("consumer",)),
    Metric(
        "roadstead_task_restarts_total", C, "Background tasks that failed and were started again", ("task",)
    ),
    Metric(
        "roadstead_servers",
        G,
        "Servers that the last sweep read, by state",
        ("state", "region", "region_name", "flavor", "flavor_name"),
    ),
    Metric(
        "roadstead_server_provisioning_seconds",
        H,
        "From the accepted spec of a server to its first boot",
        (),
        "s",
        (5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600),
    ),
    Metric(
        "roadstead_server_scheduling_seconds",
        H,
        "From the accepted spec of a server to Nova's record of it",
        (),
        "s",
        (1, 2, 5, 10, 20, 30, 60, 120, 300),
    ),
    Metric("roadstead_sweep_seconds", H, "Time a sweep of the monitor took", (), "s", LONG),
    Metric("roadstead_sweep_projects_total", C, "Projects swept, by outcome", ("outcome",)),
    Metric("roadstead_sweep_looks_total", C, "Projects read between two sweeps, by outcome", ("outcome",)),
    Metric("roadstead_sweep_observations_total", C, "Observations of the monitor, by outcome", ("outcome",)),
    Metric(
        "roadstead_region_circuit_open",
        G,
        "1 while a region's cloud gives this process no answer",
        ("region",),
    ),
    Metric(
        "roadstead_ovn_passes_total",
        C,
        "Passes of the OVN worker over a load balancer",
        ("reason", "outcome"),
    ),
    Metric("roadstead_ovn_pass_seconds", H, "Time such a pass took", (), "s", FAST),
    Metric("roadstead_ovn_report_seconds", H, "From a call's arrival to its report", (), "s", FAST),
    Metric(
        "roadstead_ovn_transactions_total",
        C,
        "Transactions on the Northbound database, by outcome",
        ("outcome",),
    ),
    Metric(
        "roadstead_ovn_wakes_total", C, "Changes in OVN's databases that concern load balancers", ("source",)
    ),
    Metric("roadstead_ovn_due", G, "Load balancers that wait for a pass"),
    Metric("roadstead_ovn_due_lag_seconds", G, "How long the first of them waits", (), "s"),
    Metric("roadstead_ovn_failing", G, "Load balancers whose last pass failed"),
    Metric("roadstead_ovn_northbound_connected", G, "1 while the local copy of OVN's databases is complete"),
    Metric(
        "openstack_api_requests_total",
        C,
        "Requests to OpenStack; status 0: no answer",
        ("service", "method", "template", "status"),
    ),
    Metric(
        "openstack_api_request_duration_seconds",
        H,
        "Time of a request to OpenStack",
        ("service", "method", "template"),
        "s",
        CALL,
    ),
)
BY_NAME: Mapping[str, Metric] = {m.name: m for m in METRICS}


class Meters:
    """The metrics of one process.  KeyError for a name or label that the table does not have."""

    def __init__(self, *, process: bool = False) -> None:
        """process: add memory, processor time and garbage collection of this process."""
        self.registry = CollectorRegistry()
        if process:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)
            GCCollector(registry=self.registry)
        self._made: dict[str, Any] = {}
        self._labelled: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
        for metric in METRICS:
            name = metric.name.removesuffix("_total") if metric.shape is Shape.COUNTER else metric.name
            more: dict[str, Any] = {"registry": self.registry, "labelnames": metric.labels}
            match metric.shape:
                case Shape.COUNTER:
                    self._made[metric.name] = Counter(name, metric.help, **more)
                case Shape.GAUGE:
                    self._made[metric.name] = Gauge(name, metric.help, **more)
                case Shape.HISTOGRAM:
                    self._made[metric.name] = Histogram(name, metric.help, buckets=metric.buckets, **more)

    def _of(self, name: str, labels: Mapping[str, str]) -> Any:
        if not labels:
            return self._made[name]
        # The library checks names and takes a lock for each look-up; there are as many combinations as templates.
        key = (name, tuple(labels.items()))
        found = self._labelled.get(key)
        if found is None:
            found = self._labelled[key] = self._made[name].labels(**labels)
        return found

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self._of(name, labels).inc(amount)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        self._of(name, labels).observe(value)

    def put(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        self._of(name, labels).set(value)

    def refill(self, name: str, rows: Iterable[tuple[Mapping[str, str], float]], /) -> None:
        """Set a gauge to these values by their labels and forget all others, so that nothing stale is shown."""
        self._made[name].clear()
        self._labelled = {key: child for key, child in self._labelled.items() if key[0] != name}
        for labels, value in rows:
            self.put(name, value, **labels)

    def value(self, name: str, /, **labels: str) -> float:
        """What is shown for a counter or gauge now; 0 when it never moved."""
        metric = BY_NAME[name]
        return self.registry.get_sample_value(metric.name, labels) or 0.0

    def text(self) -> bytes:
        """The Prometheus exposition."""
        return generate_latest(self.registry)
