"""Time, as a thing that is handed in.

Order comes from generations and sequences, durations from the monotonic clock, and wall time only
labels what people read.  Everything that waits, waits on a Clock, so that a test can own time.
"""

import asyncio
import time
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the product may know about time."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; for durations only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long on this clock."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Durations:
    """Every waiting time of the loop, in seconds, before scaling (architecture.md section 3.3)."""

    call_deadline: float = 60.0
    lease: float = 20.0
    renew_every: float = 5.0
    settling: float = 65.0
    yield_after: float = 10.0
    sweep: float = 60.0
    early_look: float = 1.0
    retry_after: float = 10.0
    retry_max: float = 300.0
    image_refresh: float = 60.0
    inventory_life: float = 3600.0
    drain: float = 25.0
    second_look: float = 2.0

    def paced(self, pace: float) -> "Durations":
        """All rhythms times `pace` (ROADSTEAD_PACE); what depends on how slow a cloud can be stays as it is."""
        rhythms = (f.name for f in fields(self) if f.name not in OF_CLOUDS)
        return replace(self, **{name: getattr(self, name) * pace for name in rhythms})


OF_CLOUDS = ("call_deadline", "settling", "second_look")
"""Times that keep a second object from being made: a setting each, never scaled."""


def iso(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds: the one spelling of a time on the bus."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """The inverse of `iso`, in UTC; also takes OpenStack's zone-less spellings as UTC.

    ValueError when it is none, or one that lies in no year of UTC's calendar.
    """
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError(f"{text} lies outside of the calendar") from None
