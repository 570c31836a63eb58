"""The port to the Northbound database over databases in memory, with everything that goes wrong with a real one.

Reading, planning and the operations of a transaction are the real ones; only the server is a model. Faults come by a seed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import Facts
from roadstead_ovn.northbound.database import NORTHBOUND, SOUTHBOUND, Change, Database
from roadstead_ovn.northbound.interests import Interests, Wakes
from roadstead_ovn.northbound.look import Subnets
from roadstead_ovn.northbound.operations import operations
from roadstead_ovn.northbound.picture import HANDLED, Picture
from roadstead_ovn.northbound.plan import plan
from roadstead_ovn.northbound.port import (
    Conflict,
    Found,
    Source,
    Superseded,
    Unknown,
    Unready,
    Wake,
    Written,
)
from roadstead_ovn.northbound.replica import check
from roadstead_ovn.rows import Wanted


@dataclass(frozen=True)
class Faults:
    """Shares of writes, 0 to 1.

    conflict: somebody else was faster.  unsent: the connection breaks before the server has the transaction.  unanswered: it breaks after
    the server has carried it out.
    """

    seed: int = 0
    conflict: float = 0.0
    unsent: float = 0.0
    unanswered: float = 0.0


class ModelNorthbound:
    """Implements `port.Northbound`.  writes: transactions that were carried out, by the name of the load balancer."""

    def __init__(self, faults: Faults | None = None) -> None:
        self._faults = faults or Faults()
        self._random = Random(self._faults.seed)
        self._nb, self._sb = Database(NORTHBOUND), Database(SOUTHBOUND)
        self._interests, self._wakes, self._subnets = Interests(), Wakes(), Subnets()
        self._picture = Picture(self._interests, self._wakes, self._subnets)
        self._late: list[Change] = []
        self._readiness = asyncio.Event()
        self._readiness.set()
        self.writes: list[str] = []

    # ---------------------------------------------------------- what others do

    def transact(self, *ops: Mapping[str, Any], is_late: bool = False) -> list[Any]:
        """Another client's transaction.  is_late: its changes are on their way and reach the copy only with `deliver` or the next answer."""
        tables = {op["table"] for op in ops}
        results, changes = (self._sb if tables & SOUTHBOUND.keys() else self._nb).transact(ops)
        check(results)
        self._late += changes
        if not is_late:
            self.deliver()
        return results

    def deliver(self) -> None:
        """What is on its way arrives."""
        self._take()
        self._picture.settle()

    def _take(self) -> None:
        late, self._late = self._late, []
        for table, handle, columns in late:
            if table in HANDLED:
                self._picture.apply(table, handle, columns)

    def tables(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Rows by table and UUID, as they are in the databases."""
        return {**self._nb.tables, **self._sb.tables}

    def empty(self) -> None:
        """The server comes back with nothing in its databases."""
        self._nb, self._sb = Database(NORTHBOUND), Database(SOUTHBOUND)
        self.cut()
        self.mend()

    def cut(self) -> None:
        """The connection breaks."""
        self._readiness.clear()

    def mend(self) -> None:
        """It is there again, maybe to another member: the copy is fetched anew."""
        self._late = []
        self._picture = Picture(self._interests, self._wakes, self._subnets)
        for database in (self._nb, self._sb):
            for table, handle, columns in database.rows():
                if table in HANDLED:
                    self._picture.apply(table, handle, columns)
        self._picture.forget_changes()
        self._wakes.add(Source.RECONNECT, None)
        self._readiness.set()

    # ---------------------------------------------------------- the port

    async def ready(self) -> None:
        await self._readiness.wait()

    def is_ready(self) -> bool:
        return self._readiness.is_set()

    def _read(self) -> Picture:
        if not self.is_ready():
            raise Unready("the connection is cut")
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
        ops = operations(what, picture)
        await asyncio.sleep(0)  # the transaction travels: others go on
        dice = self._random.random
        if not self.is_ready():
            raise Unknown("the connection broke before the answer came")
        if dice() < self._faults.unsent:
            self._break()
            raise Unknown("the connection broke before the answer came")
        if dice() < self._faults.conflict:
            raise Conflict("what was read is out of date")
        results, changes = self._nb.transact(ops)
        if dice() < self._faults.unanswered:
            self._break()
            raise Unknown("the connection broke before the answer came")
        self._take()
        self._picture.settle()
        check(results)
        self.writes.append(load_balancer_id)
        self._late += changes
        self._take()
        self._picture.settle((load_balancer_id,))
        await asyncio.sleep(0)
        return Written(1, what.rows)

    def _break(self) -> None:
        self.cut()
        asyncio.get_running_loop().call_soon(self.mend)

    async def wakes(self) -> Sequence[Wake]:
        return await self._wakes.take()

    async def close(self) -> None:
        self.cut()
