"""What a sweep measured, as metrics: the rows of the table of metrics that begin with roadstead_server and roadstead_sweep."""

from roadstead.telemetry.metrics import Meters
from roadstead_monitor.measures import Measures
from roadstead_monitor.sweep import Swept


def export(measures: Measures, swept: Swept, seconds: float, meters: Meters) -> None:
    """After each sweep.  The gauge holds what this sweep read and nothing older."""
    meters.refill("roadstead_servers", [(vars(cell), count) for cell, count in measures.servers.items()])
    provisioning, scheduling = measures.drain()
    for value in provisioning:
        meters.observe("roadstead_server_provisioning_seconds", value)
    for value in scheduling:
        meters.observe("roadstead_server_scheduling_seconds", value)
    meters.observe("roadstead_sweep_seconds", seconds)
    for outcome, count in (("read", swept.projects - swept.failed), ("failed", swept.failed)):
        meters.count("roadstead_sweep_projects_total", count, outcome=outcome)
    _observations(swept, meters)


def export_look(looked: Swept, meters: Meters) -> None:
    """After a look between two sweeps."""
    for outcome, count in (("read", looked.projects - looked.failed), ("failed", looked.failed)):
        meters.count("roadstead_sweep_looks_total", count, outcome=outcome)
    _observations(looked, meters)


def _observations(swept: Swept, meters: Meters) -> None:
    for outcome, count in (("sent", swept.sent), ("unsent", swept.unsent)):
        meters.count("roadstead_sweep_observations_total", count, outcome=outcome)
