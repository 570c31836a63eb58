"""What a health monitor may ask for and hardly means: allowed, as the original allows it, and told in the log of the API."""

from collections.abc import Mapping
from typing import Any

import structlog

log = structlog.get_logger("roadstead.octavia")

FIRST, LAST = 100, 599  # codes that HTTP has


def doubts(monitor: Mapping[str, Any]) -> list[str]:
    """One sentence each; monitor: its row, or the part of it that is known."""
    found = []
    delay, timeout = monitor.get("delay"), monitor.get("timeout")
    if delay is not None and timeout is not None and timeout > delay:
        found.append(f"a check may take {timeout} s and the next one begins after {delay} s")
    codes = str(monitor.get("expected_codes") or "")
    for part in filter(None, (text.strip() for text in codes.split(","))):
        first, _, last = part.partition("-")
        numbers = [int(text) for text in (first, last) if text.isdigit()]
        if any(not FIRST <= number <= LAST for number in numbers):
            found.append(f"no server answers {part}")
        elif numbers != sorted(numbers):
            found.append(f"the range {part} is empty")
    return found


def tell(identifier: str, monitor: Mapping[str, Any]) -> None:
    """A warning for each."""
    for doubt in doubts(monitor):
        log.warning("health monitor asks for what it hardly means", health_monitor=identifier, doubt=doubt)
