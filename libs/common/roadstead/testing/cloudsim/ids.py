"""Deterministic identifiers, times as the services write them, and a clock that can be moved."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from; the shape of roadstead.clock.Clock."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class _WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class SimClock:
    """A clock over another one that can be advanced and frozen."""

    def __init__(self, base: Clock | None = None) -> None:
        self._base: Clock = base if base is not None else _WallClock()
        self._offset = 0.0
        self._frozen: tuple[datetime, float] | None = None

    @property
    def frozen(self) -> bool:
        """True while the time stands still."""
        return self._frozen is not None

    def now(self) -> datetime:
        """Aware UTC time."""
        if self._frozen is not None:
            return self._frozen[0]
        return self._base.now() + timedelta(seconds=self._offset)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        if self._frozen is not None:
            return self._frozen[1]
        return self._base.monotonic() + self._offset

    def advance(self, seconds: float) -> None:
        """Move the time forward; also while frozen."""
        if seconds < 0:
            raise ValueError("the clock cannot be moved back; give seconds >= 0")
        if self._frozen is not None:
            now, mono = self._frozen
            self._frozen = (now + timedelta(seconds=seconds), mono + seconds)
        else:
            self._offset += seconds

    def freeze(self) -> None:
        """Stop the time; only `advance` moves it from here."""
        if self._frozen is None:
            self._frozen = (self.now(), self.monotonic())

    def thaw(self) -> None:
        """Let the time run again from where it stands."""
        if self._frozen is None:
            return
        self._offset = self._frozen[1] - self._base.monotonic()
        self._frozen = None


class Ids:
    """Identifiers drawn from a seeded generator: the same seed and calls give the same ids."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def uuid(self) -> str:
        """A version 4 UUID in its dashed form."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def hex(self) -> str:
        """32 hexadecimal digits, the form of Keystone's ids."""
        return f"{self.random.getrandbits(128):032x}"

    def mac(self) -> str:
        """A MAC address with the prefix that Neutron uses."""
        number = self.random.getrandbits(24)
        return f"fa:16:3e:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def seconds_z(at: datetime) -> str:
    """2026-01-02T03:04:05Z, as Nova, Neutron and Glance write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(at: datetime) -> str:
    """2026-01-02T03:04:05.000006 without a zone, as Cinder and Nova's launched_at."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")


def micros_z(at: datetime) -> str:
    """2026-01-02T03:04:05.000006Z, as Keystone."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain(at: datetime) -> str:
    """2026-01-02T03:04:05 without a zone, as Octavia."""
    return at.strftime("%Y-%m-%dT%H:%M:%S")
