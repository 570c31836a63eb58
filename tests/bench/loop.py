"""Specs taken in per second, and passes that find nothing to do per second.

One process of the network service each time; with telemetry and without in turn, so that a change of the machine's load meets both.
Without telemetry there are no spans, no trace headers and no metrics.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from roadstead.store.postgres import PostgresStore
from roadstead.subjects import Key
from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_network.__main__ import SERVICE as NETWORK

from . import raw
from .figures import Figure, hammer, percentile
from .ground import BenchFailed, Ground
from .inside import Inside, inside, noting_lags
from .latency import NETWORK as NETWORK_SPEC
from .latency import rules
from .profiling import Profiles

INGEST, PASSES = "specs taken in", "passes that find nothing to do"
IDENTITIES, GROUPS_EACH = 24, 10
WITHIN = 60.0


def words(telemetry: bool) -> str:
    return "with telemetry" if telemetry else "without telemetry"


# ---------------------------------------------------------------- ingest


async def ingest(g: Ground, scale: float, profiles: Profiles) -> list[Figure]:
    """Specs of new security groups wait in the stream; a service starts and takes them in."""
    rounds: dict[bool, list[Figure]] = {True: [], False: []}
    for _ in range(2):
        for telemetry in (True, False):
            rounds[telemetry].append(await _ingest(g, int(3000 * scale), telemetry, profiles))
    return [max(found, key=lambda f: f.rate or 0) for found in rounds.values()]


async def _ingest(g: Ground, count: int, telemetry: bool, profiles: Profiles) -> Figure:
    network = g.key("network")
    name = f"{INGEST}, {words(telemetry)}"

    async def one(_number: int) -> None:
        key = g.key("securitygroup")
        await g.publish(key, g.envelope(key, f"group-{key.id[:8]}", rules(22), networkId=network.id))

    await hammer(count, 64, one)
    meter = Taken(count)
    async with inside(g, _counted(meter), telemetry=telemetry, passes=False) as process:
        with profiles.of(name), g.processors.watch() as cpu:
            rate = await meter.rate()
        note = f"{round_trips(process) / count:.1f} database round trips each"
    return Figure(
        "one process of a service", name, rate=rate, samples=count, cpu=cpu, base=raw.CHANGE_MANY, note=note
    )


class Taken:
    """Counts messages that were taken in, from when the first one arrived."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._count = 0
        self._began = 0.0
        self._ended = asyncio.get_running_loop().create_future()

    def watch(self, handlers: Any) -> None:
        taken = handlers.spec

        async def spec(*arguments: Any) -> Any:
            self._began = self._began or time.perf_counter()
            result = await taken(*arguments)
            self._count += 1
            if self._count == self._wanted:
                self._ended.set_result(time.perf_counter())
            return result

        handlers.spec = spec

    async def rate(self) -> float:
        """Per second.  BenchFailed when they do not all come."""
        try:
            async with asyncio.timeout(WITHIN):
                ended: float = await self._ended
        except TimeoutError:
            raise BenchFailed(
                f"{self._count} of {self._wanted} specs were taken in within {WITHIN:g} s"
            ) from None
        return self._wanted / (ended - self._began)


def _counted(meter: Taken) -> Any:
    """The network service, with a counter in front of its spec handler."""

    def setup(assembly: Any) -> None:
        NETWORK.setup(assembly)
        meter.watch(assembly.handlers)

    return replace(NETWORK, setup=setup)


# ---------------------------------------------------------------- passes


async def passes(g: Ground, scale: float, profiles: Profiles) -> list[Figure]:
    """Settled security groups are made due again and again; the cloud's answers come from memory, but for one figure."""
    groups = await _settled(g)
    figures: dict[str, list[Figure]] = {}
    for _ in range(2):
        for telemetry in (True, False):
            async with inside(g, NETWORK, telemetry=telemetry) as process:
                memory = process.answer_from_memory()
                await _round(process, groups)  # logs in, and fills the memory
                name = f"{PASSES}, {words(telemetry)}"
                with profiles.of(name):
                    figures.setdefault(name, []).append(
                        await _passes(g, process, groups, name, int(12 * scale))
                    )
                if memory.asked > len(groups) * 2:
                    raise BenchFailed(
                        f"the cloud was asked {memory.asked} times by passes that should remember"
                    )
    async with inside(g, NETWORK, telemetry=True) as process:
        await _round(process, groups)
        name = f"{PASSES}, the cloud over HTTP"
        with profiles.of(name):
            figures[name] = [await _passes(g, process, groups, name, max(1, int(3 * scale)))]
    return [max(found, key=lambda f: f.rate or 0) for found in figures.values()]


async def _settled(g: Ground) -> list[Key]:
    """Provisioned security groups in many identities."""
    keys: list[Key] = []
    groups: list[Key] = []
    async with (
        inside(g, IDENTITY, telemetry=False),
        inside(g, NETWORK, telemetry=False),
        g.following() as told,
    ):

        async def apply(kind: str, spec: dict[str, Any], **metadata: str) -> Key:
            key = g.key(kind)
            keys.append(key)
            await g.publish(key, g.envelope(key, f"{kind}-{key.id[:8]}", spec, **metadata))
            return key

        for _ in range(IDENTITIES):
            identity = await apply("identity", {})
            network = await apply("network", NETWORK_SPEC, identityId=identity.id)
            groups += [
                await apply("securitygroup", rules(22), networkId=network.id) for _ in range(GROUPS_EACH)
            ]
        await asyncio.gather(*(told.provisioned(key, within=WITHIN) for key in keys))
    return groups


async def _round(process: Inside, groups: Sequence[Key]) -> None:
    """One pass of each group."""
    assert process.assembly is not None
    runner = process.assembly.runner
    wanted = runner.passes + len(groups)
    await process.store.wake([(k.kind, k.id) for k in groups], {"reason": "bench"})
    runner.nudge()
    async with asyncio.timeout(WITHIN):
        while runner.passes < wanted:  # noqa: ASYNC110 - the runner counts, it does not tell
            await asyncio.sleep(0.002)


async def _passes(g: Ground, process: Inside, groups: Sequence[Key], name: str, rounds: int) -> Figure:
    trips = round_trips(process)
    with noting_lags(process) as lags, g.processors.watch() as cpu:
        began = time.perf_counter()
        for _ in range(rounds):
            await _round(process, groups)
        rate = rounds * len(groups) / (time.perf_counter() - began)
    each = (round_trips(process) - trips) / (rounds * len(groups))
    return Figure(
        "one process of a service", name, rate, percentile(lags, 0.5) * 1000, percentile(lags, 0.99) * 1000, len(lags),
        cpu, base=raw.CHANGE_MANY, note=f"{each:.1f} database round trips each; from due to claimed, {len(groups)} due",
    )  # fmt: skip


def round_trips(process: Inside) -> int:
    """What the service has asked of the database so far."""
    assert isinstance(process.store, PostgresStore)
    return process.store.round_trips
