"""What keeps one region's trouble to itself: its pace and its circuit.

The pace obeys what the cloud said about coming back; the circuit stops asking a door that nobody opens.  Both are kept
per region, count on the monotonic clock and do no I/O.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial

from roadstead.clock import Clock


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the cloud asks us to stay away: a number or a date; None when it says nothing readable."""
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


@dataclass
class Pace:
    """When the next request may leave.  A pause gets up to a tenth on top, so that not all come back at once."""

    clock: Clock
    jitter: random.Random = field(default_factory=random.Random)
    _not_before: float = 0.0

    def hold(self, seconds: float) -> None:
        """Nothing leaves for that long; a longer pause that is on stays."""
        until = self.clock.monotonic() + seconds * self.jitter.uniform(1.0, 1.1)
        self._not_before = max(self._not_before, until)

    def left(self) -> float:
        """Seconds until the next request may leave."""
        return max(0.0, self._not_before - self.clock.monotonic())


PROBE_SHARE = 0.1
"""Of the rest: after so long those who found a probe under way ask again, however long its answer takes."""


class CircuitOpen(Exception):
    """Not tried; `left` is the time until the next try, never zero."""

    def __init__(self, left: float) -> None:
        super().__init__(f"the circuit is open for {left:.1f} s more")
        self.left = left


@dataclass
class Attempt:
    """One request's word on whether the cloud answers; silence leaves the circuit as it was."""

    reached: bool | None = None


@dataclass
class Circuit:
    """Opens after `failures` requests in a row without an answer; after `rest` seconds one request tries the door.

    moved: called with True when it opens and with False when it closes, and never in between.
    """

    clock: Clock
    failures: int
    rest: float
    moved: Callable[[bool], None] = lambda _shut: None
    _in_a_row: int = 0
    _opened_at: float | None = None
    _probing: bool = False

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Enclose one request; raises CircuitOpen instead of letting it go."""
        probe = self._admit()
        attempt = Attempt()
        try:
            yield attempt
        finally:
            if probe:
                self._probing = False
            self._count(attempt.reached, probe)

    def _admit(self) -> bool:
        if self._opened_at is None:
            return False
        left = self._opened_at + self.rest - self.clock.monotonic()
        if self._probing:
            left = max(left, self.rest * PROBE_SHARE)
        if left > 0:
            raise CircuitOpen(left)
        self._probing = True
        return True

    def _count(self, reached: bool | None, probe: bool) -> None:
        if reached is None:
            return
        before = self.is_open
        if reached:
            self._in_a_row, self._opened_at = 0, None
            if before:
                self.moved(False)
            return
        self._in_a_row += 1
        # A request that left before the circuit opened and fails later must not prolong the rest.
        if probe or (self._opened_at is None and self._in_a_row >= self.failures):
            self._opened_at = self.clock.monotonic()
        if self.is_open and not before:
            self.moved(True)


@dataclass
class Limits:
    """Pace and circuit of every region."""

    clock: Clock
    circuit_failures: int
    circuit_open: float
    moved: Callable[[str, bool], None] = lambda _region, _shut: None
    _paces: dict[str, Pace] = field(default_factory=dict)
    _circuits: dict[str, Circuit] = field(default_factory=dict)

    def pace(self, region: str) -> Pace:
        return self._paces.setdefault(region, Pace(self.clock))

    def circuit(self, region: str) -> Circuit:
        held = self._circuits.get(region)
        if held is None:
            moved = partial(self._moved, region)
            held = Circuit(self.clock, self.circuit_failures, self.circuit_open, moved)
            self._circuits[region] = held
        return held

    def _moved(self, region: str, shut: bool) -> None:
        self.moved(region, shut)
