"""The command's own part of a trace: `apply` opens it, every request carries it on, services and cloud requests hang below."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_tracing: Any = None


@contextmanager
def traced(name: str) -> Iterator[None]:
    """The whole command as one span, sent where ROADSTEAD_OTLP_ENDPOINT or ROADSTEAD_TRACE_FILE say."""
    # Imported here because most commands need no trace, and the exporters take longer to import than a request takes.
    from roadstead.cli.failures import UserError
    from roadstead.settings import BadSettings, load_settings
    from roadstead.telemetry.traces import start_tracing

    global _tracing
    try:
        settings = load_settings()
        _tracing = start_tracing(
            "cli", settings.replica, "", endpoint=settings.otlp_endpoint, file=settings.trace_file
        )
    except BadSettings as error:
        raise UserError(str(error), 2) from None
    except OSError as error:
        raise UserError(f"ROADSTEAD_TRACE_FILE cannot be written: {error.strerror}", 2) from None
    try:
        with _tracing.span(f"roadstead {name}", {}):
            yield
    finally:
        _tracing.close()
        _tracing = None


@contextmanager
def span(name: str) -> Iterator[dict[str, str]]:
    """A part of the command's span; the headers that carry it on, none when nothing is traced."""
    if _tracing is None:
        yield {}
        return
    from opentelemetry.trace import SpanKind

    with _tracing.span(name, kind=SpanKind.CLIENT):
        yield _tracing.headers()
