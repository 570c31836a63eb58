"""What regions offer (flavors, images, volume types, external networks): lists read in each region's own project, and kept.

A list dies with the credential and the configuration that it was read with.  A read that fails keeps what was known.  A list that
shows nothing is unknown, not empty, until a second look of a later moment shows nothing either; an empty one is believed for a
short while only, since clouds tell an empty list where they mean an error.  At most one request at a time for each region and list.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import structlog

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Call, Cloud, CloudError, RegionProject, Verdict
from roadstead.region import OpenStack, RegionSpec

log = structlog.get_logger("roadstead.inventory")

T = TypeVar("T")
Found = Mapping[str, Any]

ROUNDS = 6
"""Rounds of the keeper in a pause: what failed is tried again well before anything is over its time."""


def _anything(_found: Found) -> bool:
    return True


@dataclass(frozen=True)
class Reading(Generic[T]):
    """What is read and what is made of it.

    what: for the log.  counts: whether a listed object is of the kind asked for, whatever the filter did.  outlives_config: what
    was read stays good when the configuration changes, only what is made of it does not.
    """

    what: str
    service: str
    verb: str
    made: Callable[[Sequence[Found], RegionSpec], T]
    args: Mapping[str, Any] = field(default_factory=dict)
    counts: Callable[[Found], bool] = _anything
    outlives_config: bool = False


@dataclass(frozen=True)
class Rhythm:
    """Seconds.  life: of a list.  pause: of one that shows nothing, or lacks what somebody looks for.  look_again: between the two
    looks that make an empty list true."""

    life: float = 3600.0
    pause: float = 60.0
    look_again: float = 2.0


@dataclass(frozen=True)
class _Held(Generic[T]):
    """One read.  origin: the credential, and the configuration unless it is outlived; config: what `made` was made with.  Times are
    monotonic."""

    raw: Sequence[Found]
    made: T
    origin: object
    config: OpenStack
    read_at: float
    due: float
    empty: bool = False


@dataclass
class _Place(Generic[T]):
    """One region.  doubt: when and with which origin the cloud first listed nothing, since it last listed something.  failing: the
    last read failed, so that a lasting failure is logged once."""

    held: _Held[T] | None = None
    doubt: tuple[float, object] | None = None
    failing: bool = False
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class Offered(Generic[T]):
    """One list of every region.  on_change: told of a region whose list became another, the first one included."""

    def __init__(
        self, cloud: Cloud, keyring: Keyring, clock: Clock, reading: Reading[T], rhythm: Rhythm | None = None
    ) -> None:
        self.cloud = cloud
        self.on_change: list[Callable[[str], None]] = []
        self._keyring = keyring
        self._clock = clock
        self._reading = reading
        self._rhythm = rhythm or Rhythm()
        self._places: dict[str, _Place[T]] = {}

    def known(self, region: str, spec: RegionSpec | None) -> T | None:
        """From memory; None while nothing of the present configuration and credential is known."""
        place = self._place(region)
        held, origin = place.held, self._origin(region, spec)
        if held is None or origin is None or held.origin != origin:
            return None
        assert spec is not None
        assert spec.openstack is not None
        if held.config != spec.openstack:
            held = place.held = replace(held, made=self._reading.made(held.raw, spec), config=spec.openstack)
        return held.made

    async def get(
        self, region: str, spec: RegionSpec | None, lacks: Callable[[T], bool] | None = None
    ) -> T | None:
        """The same, with one read when nothing fresh is held, or when it `lacks` what is looked for and is older than a pause.

        None: the cloud listed nothing, which is not believed yet.  CloudError when the read fails: an error is never an empty list.
        """
        place = self._place(region)
        async with place.reading:
            if self.is_stale(region, spec) or self._may_be_outdated(region, spec, lacks):
                await self._read(region, spec, place)
            return self.known(region, spec)

    def is_stale(self, region: str, spec: RegionSpec | None) -> bool:
        """Whether `get` would read."""
        held = self._place(region).held
        return self.known(region, spec) is None or held is None or held.due <= self._clock.monotonic()

    def lacking(self, region: str) -> None:
        """Somebody looked for what is not in the list: it is over its time after a pause already."""
        place = self._place(region)
        if place.held is not None:
            due = min(place.held.due, place.held.read_at + self._rhythm.pause)
            place.held = replace(place.held, due=due)

    def forget(self, region: str) -> None:
        """What was held proved wrong: nothing is known until it is read anew."""
        self._place(region).held = None

    def doubts(self, region: str) -> bool:
        """Whether the cloud listed nothing and is to be looked at once more."""
        place = self._place(region)
        return place.doubt is not None and (place.held is None or not place.held.empty)

    async def refresh(self, region: str, spec: RegionSpec | None) -> None:
        """`get` for a round over regions: a failure is logged and keeps what was known; without a credential nothing is asked."""
        place = self._place(region)
        if self._origin(region, spec) is None or not self.is_stale(region, spec):
            return
        try:
            await self.get(region, spec)
        except CloudError as error:
            if not place.failing:
                what = self._reading.what
                log.warning(f"{what} not read", region=region, error=str(error), text=error.text[:500])
            place.failing = True
        else:
            place.failing = False

    # ------------------------------------------------------------ reading

    async def _read(self, region: str, spec: RegionSpec | None, place: _Place[T]) -> None:
        """One list request (one a page); none while an empty answer is too fresh to be asked about again."""
        origin, reading = self._origin(region, spec), self._reading
        if origin is None or spec is None or spec.openstack is None:
            raise CloudError(Verdict.KEY, text="the region's credential is not in the keyring")
        if self._just_doubted(place, origin):
            return
        call = Call(RegionProject(region), reading.service, reading.verb, dict(reading.args))
        raw = list((await self.cloud.call(call)).value)
        now = self._clock.monotonic()
        empty = not any(reading.counts(found) for found in raw)
        if not empty:
            place.doubt = None
        elif place.doubt is None or place.doubt[1] != origin:
            log.info(f"the cloud lists no {reading.what}; looking again", region=region)
            place.doubt = (now, origin)
            if place.held is not None:
                place.held = replace(place.held, due=now + self._rhythm.look_again)
            return
        life = min(self._rhythm.life, self._rhythm.pause) if empty else self._rhythm.life
        before, made = place.held, reading.made(raw, spec)
        place.held = _Held(raw, made, origin, spec.openstack, now, now + life, empty)
        if before is None or before.origin != origin or before.made != made:
            for listener in self.on_change:
                listener(region)

    def _just_doubted(self, place: _Place[T], origin: object) -> bool:
        if place.doubt is None or place.doubt[1] != origin:
            return False
        return self._clock.monotonic() - place.doubt[0] < self._rhythm.look_again

    def _may_be_outdated(
        self, region: str, spec: RegionSpec | None, lacks: Callable[[T], bool] | None
    ) -> bool:
        known, held = self.known(region, spec), self._place(region).held
        if lacks is None or known is None or held is None or not lacks(known):
            return False
        return self._clock.monotonic() - held.read_at >= self._rhythm.pause

    def _place(self, region: str) -> _Place[T]:
        return self._places.setdefault(region, _Place())

    def _origin(self, region: str, spec: RegionSpec | None) -> object | None:
        credential = self._keyring.region(region)
        if credential is None or spec is None or spec.openstack is None:
            return None
        return credential if self._reading.outlives_config else (credential, spec.openstack)


class Keeper:
    """Keeps lists fresh behind the readers' backs.  regions: the accepted specs of those that are clouds."""

    def __init__(
        self,
        lists: Sequence[Offered[Any]],
        regions: Callable[[], Mapping[str, RegionSpec]],
        rhythm: Rhythm | None = None,
    ) -> None:
        self._lists = lists
        self._regions = regions
        self._rhythm = rhythm or Rhythm()
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """A region or its credential moved: look at once."""
        self._stirred.set()

    async def keep_warm(self) -> None:
        """For ever: read what is missing or over its time."""
        while True:
            self._stirred.clear()
            await self.look()
            doubtful = any(x.doubts(region) for x in self._lists for region in self._regions())
            pause = self._rhythm.look_again if doubtful else self._rhythm.pause / ROUNDS
            try:
                async with asyncio.timeout(pause):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """One round, regions and lists side by side: one that is slow or down holds up no other."""
        regions = self._regions()
        await asyncio.gather(
            *(x.refresh(region, spec) for region, spec in regions.items() for x in self._lists)
        )
