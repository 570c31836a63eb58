"""The real Northbound and Southbound databases behind the port: two replicas, one picture, and transactions."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import Facts
from roadstead_ovn.northbound import schema
from roadstead_ovn.northbound.interests import Interests, Wakes
from roadstead_ovn.northbound.look import Subnets
from roadstead_ovn.northbound.operations import operations
from roadstead_ovn.northbound.picture import Picture
from roadstead_ovn.northbound.plan import Plan, plan
from roadstead_ovn.northbound.port import Found, Rejected, Source, Superseded, Unready, Wake, Written
from roadstead_ovn.northbound.replica import Replica, Rows
from roadstead_ovn.northbound.wire import Bounds, TlsFiles, register_tls
from roadstead_ovn.rows import Wanted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Server:
    """One database.  remotes: `tcp:HOST:PORT`, `ssl:HOST:PORT`, `unix:PATH`; of a cluster all members.  tls: needed for ssl."""

    remotes: tuple[str, ...]
    tls: TlsFiles | None = None


@dataclass(frozen=True)
class Servers:
    northbound: Server
    southbound: Server
    bounds: Bounds = field(default_factory=Bounds)


class OvsdbNorthbound:
    """Implements `port.Northbound`.  `start` begins to connect; `close` ends it."""

    def __init__(self, servers: Servers) -> None:
        self._interests, self._wakes, self._subnets = Interests(), Wakes(), Subnets()
        self._picture = self._new_picture()
        self._writing: dict[str, int] = {}
        self._chooses = True
        self._was_complete = {"nb": False, "sb": False}
        self._readiness = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._nb = Replica(
            schema.NORTHBOUND,
            _remotes(servers.northbound, "sslnb"),
            leader_only=True,
            bounds=servers.bounds,
            changed=self._changed,
            settled=self._settled,
            complete=self._northbound_complete,
            lost=self._lost,
        )
        self._sb = Replica(
            schema.SOUTHBOUND,
            _remotes(servers.southbound, "sslsb"),
            leader_only=False,
            bounds=servers.bounds,
            changed=self._changed,
            settled=self._settled,
            complete=self._southbound_complete,
            lost=self._lost,
        )

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(replica.follow()) for replica in (self._nb, self._sb)]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = []
        self._readiness.clear()

    # ---------------------------------------------------------- the copy

    def _new_picture(self) -> Picture:
        return Picture(self._interests, self._wakes, self._subnets)

    def _northbound_complete(self, rows: Rows) -> Callable[[], None]:
        """In a thread, while nobody reads: the picture is drawn anew, and taken into use in the loop."""
        picture = self._new_picture()
        for table, handle, columns in rows:
            picture.apply(table, handle, columns)

        def adopt() -> None:
            picture.take_probes(self._picture)
            picture.forget_changes()
            self._picture = picture
            self._completed("nb")

        return adopt

    def _southbound_complete(self, rows: Rows) -> Callable[[], None]:
        listed = list(rows)

        def adopt() -> None:
            self._picture.lost_probes()
            for table, handle, columns in listed:
                self._picture.apply(table, handle, columns)
            self._picture.forget_changes()
            self._completed("sb")

        return adopt

    def _completed(self, side: str) -> None:
        if self._was_complete[side]:
            self._wakes.add(Source.RECONNECT, None)
        self._was_complete[side] = True
        if self.is_ready():
            self._readiness.set()

    def _changed(self, table: str, handle: str, columns: Mapping[str, Any] | None) -> None:
        self._picture.apply(table, handle, columns)

    def _settled(self) -> None:
        self._picture.settle(self._writing)

    def _lost(self) -> None:
        self._readiness.clear()

    # ---------------------------------------------------------- the port

    async def ready(self) -> None:
        await self._readiness.wait()

    def is_ready(self) -> bool:
        return self._nb.is_complete and self._sb.is_complete

    def fault(self) -> str | None:
        """Why the copy is not complete, with the addresses; None when it is."""
        sides = ((self._nb, "NB"), (self._sb, "SB"))
        found = [
            f"{text} (ROADSTEAD_OVN_{side}_CONNECTION)"
            for replica, side in sides
            if (text := replica.fault())
        ]
        return "; ".join(found) or None

    def _read(self) -> Picture:
        if not self.is_ready():
            raise Unready("the local copy of the Northbound or Southbound database is not complete")
        return self._picture

    def facts(self, balancer: Balancer) -> Facts:
        return self._read().facts(balancer)

    def remember(self, subnets: Sequence[tuple[str, str, str]]) -> None:
        self._subnets.remember(subnets)

    def disown(self, ports: Iterable[str]) -> None:
        self._subnets.absent.update(ports)

    def found(self, load_balancer_id: str, wanted: Wanted) -> Found:
        return self._read().found(load_balancer_id, wanted)

    def known(self) -> Mapping[str, int | None]:
        return self._read().known()

    async def write(self, load_balancer_id: str, revision: int, wanted: Wanted, found: Found) -> Written:
        picture = self._read()
        what = plan(load_balancer_id, revision, wanted, found)
        if what.newer is not None:
            raise Superseded(
                f"the database has revision {what.newer} of {load_balancer_id}, above {revision}"
            )
        if not wanted.rows:
            self._interests.forget(load_balancer_id)
        if not what.rows:
            return Written(0, 0)
        ops = operations(what, picture, chooses=self._chooses)
        try:
            await self._transact(what, ops)
        except Rejected as error:
            if not self._chooses or "'uuid' is present but not allowed" not in str(error):
                raise
            log.info(
                "this server chooses the UUIDs of rows itself: making rows takes longer where there are many"
            )
            self._chooses = False
            await self._transact(what, operations(what, picture, chooses=False))
            return Written(2, what.rows)
        return Written(1, what.rows)

    async def _transact(self, what: Plan, ops: Sequence[Any]) -> None:
        name = what.load_balancer_id
        self._writing[name] = self._writing.get(name, 0) + 1
        done = False

        def then() -> None:
            # The change itself has just been read; whatever else comes is another's.
            nonlocal done
            done = True
            self._settled()
            self._end_writing(name)

        try:
            await self._nb.transact(ops, then)
        finally:
            if not done:
                self._end_writing(name)

    def _end_writing(self, name: str) -> None:
        left = self._writing[name] - 1
        if left:
            self._writing[name] = left
        else:
            del self._writing[name]

    async def wakes(self) -> Sequence[Wake]:
        return await self._wakes.take()


def _remotes(server: Server, method: str) -> list[str]:
    if server.tls is None:
        return list(server.remotes)
    register_tls(method, server.tls)
    return [f"{method}:{x[4:]}" if x.startswith("ssl:") else x for x in server.remotes]
