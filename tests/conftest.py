"""Marks of tests that span services, and logs that a person can read where one fails."""

import logging
from collections.abc import Iterator

import pytest
import structlog


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "worlds(*names): the worlds that a scenario is for; without it, all of them"
    )


@pytest.fixture(scope="package", autouse=True)
def _readable_logs() -> Iterator[None]:
    """Errors only, with plain tracebacks: drawing local variables takes longer than a test may wait.

    Undone at the end of these tests, because others in the same run look at logs themselves.
    """
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
    )
    yield
    if before is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**before)
