"""Structured logs: one line an event, with service, trace id and, inside a pass, the resource's key."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog

from roadstead.telemetry.traces import current_ids

Event = MutableMapping[str, Any]


def add_trace(_logger: Any, _method: str, event: Event) -> Event:
    """The current span's ids, where there is one."""
    ids = current_ids()
    if ids is not None:
        event["trace_id"], event["span_id"] = ids
    return event


def start_logging(service: str, replica: str, *, level: str = "info", form: str = "json") -> None:
    """Set up structlog and the standard library's logging for this process; lines go to standard error.

    form: `json` or `console`.  level: a name of the standard library, any case.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_trace,
        _named(service, replica),
    ]
    if form == "json":
        ending: list[Any] = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_to_json),
        ]
    else:
        # The renderer's own tracebacks show local variables, and secrets may be among them.
        plain = structlog.dev.plain_traceback
        ending = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for noisy in ("nats", "uvicorn.access", "asyncio", "openstack", "keystoneauth", "urllib3", "alembic"):
        logging.getLogger(noisy).setLevel(max(number, logging.WARNING))


def _named(service: str, replica: str) -> Any:
    def add(_logger: Any, _method: str, event: Event) -> Event:
        event["service"], event["replica"] = service, replica
        return event

    return add


def _to_json(event: Any, **_options: Any) -> str:
    # A value that has no JSON (a Secret among them) is written as it prints, so it cannot leak and cannot stop the line.
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
