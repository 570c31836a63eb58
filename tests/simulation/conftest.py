"""Simulated worlds log a lot on purpose; what they log is shown where a test fails, and silenced while it runs well."""

import logging

import structlog


def pytest_configure() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
