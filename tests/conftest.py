"""Marks of tests that span services, and logs that a person can read where one fails."""

import logging

import pytest
import structlog


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "worlds(*names): the worlds that a scenario is for; without it, all of them"
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            # Tracebacks without local variables: drawing those takes longer than a test may wait.
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
    )
