"""A simulated OpenStack cloud: real API shapes, a controlled clock, deterministic, in one process.

`Cloud` answers `Request` values without I/O; `http` puts it behind a socket. See docs/cloudsim.md.
"""

from .caller import Caller, Stage, stage
from .cloud import Cloud
from .faults import Fault, Outcome
from .ids import SimClock
from .settings import Durations, PageSizes, SimSettings
from .wire import Request, Response, request

__all__ = [
    "Caller",
    "Cloud",
    "Durations",
    "Fault",
    "Outcome",
    "PageSizes",
    "Request",
    "Response",
    "SimClock",
    "SimSettings",
    "Stage",
    "request",
    "stage",
]
