"""The database as the rest of the worker sees it: a whole local copy to read, one transaction per load balancer to write, and wakes.

What is read comes from a copy in memory and costs no request; what is written is verified against what was read, so a decision made on
an old view is refused and made again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from roadstead_ovn.balancer import Balancer
from roadstead_ovn.facts import Facts
from roadstead_ovn.rows import LoadBalancerRow, Wanted


class Unready(Exception):
    """The local copy is not complete, or the connection is lost: nothing may be compared or written now."""


class Conflict(Exception):
    """Somebody wrote meanwhile: what was read is out of date.  Nothing was written; read and decide again."""


class Superseded(Exception):
    """The database holds a newer revision of this load balancer than the one to be written.  Nothing was written."""


class Rejected(Exception):
    """The database refuses the transaction for what it says (a constraint, a missing column).  The text is its own."""


class Unknown(Exception):
    """The connection ended between the request and its answer: it may have been carried out.  Read again once ready."""


@dataclass(frozen=True)
class FoundRow:
    """A Load_Balancer row as it is.  handle: its UUID in the database.  revision: None when it has none of ours."""

    handle: str
    row: LoadBalancerRow
    revision: int | None


@dataclass(frozen=True)
class Found:
    """What the database has of one load balancer.

    addresses: of the switch ports of its VIPs, by port id, those that exist.  pinned: floating IPs of `Wanted.centralised` whose NAT row
    still has external_mac or logical_port.
    """

    rows: tuple[FoundRow, ...] = ()
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pinned: frozenset[str] = frozenset()

    @property
    def revision(self) -> int | None:
        """The highest of the rows'."""
        return max((r.revision for r in self.rows if r.revision is not None), default=None)


class Source(StrEnum):
    """Where a wake comes from; a label of metrics and logs."""

    FLOATING_IP = "floating_ip"
    ROUTER = "router"
    PORT = "port"
    SWITCH = "switch"
    PROBE = "probe"
    ROWS = "rows"
    RECONNECT = "reconnect"


@dataclass(frozen=True)
class Wake:
    """Load balancers that a change may concern.  ids: None stands for all of them (after a reconnect or a loss)."""

    source: Source
    ids: frozenset[str] | None


@dataclass(frozen=True)
class Written:
    """transactions: how many the database was sent for it (0: nothing differed).  rows: how many it wrote or removed."""

    transactions: int
    rows: int


class Northbound(Protocol):
    async def ready(self) -> None:
        """Returns when the local copy (Northbound and Southbound) is complete and the connection stands."""

    def is_ready(self) -> bool: ...

    def facts(self, balancer: Balancer) -> Facts:
        """What the database knows around that load balancer: networks, ports, router ports, floating IPs, probes.  Unready.

        Subnets are not in the database: the caller adds them (`Facts.subnets`), and passes those of the balancer's VIPs and members in
        `remember` once, so that ports can be told which subnet their addresses lie in.
        """

    def remember(self, subnets: Sequence[tuple[str, str, str]]) -> None:
        """Subnets as (id, network id, cidr), kept for as long as the process lives; a subnet's network and cidr never change."""

    def disown(self, ports: Iterable[str]) -> None:
        """Ids of ports that the network service has no more: facts leave them out for as long as the process lives."""

    def found(self, load_balancer_id: str, wanted: Wanted) -> Found:
        """Its rows, and the state of what else `wanted` says.  Unready.

        Its rows are those of its name, and those that somebody renamed: they have a UUID that was chosen for it, or our revision and the
        port of its VIP.
        """

    def known(self) -> Mapping[str, int | None]:
        """Every load balancer that has rows, with its revision (None: rows of another writer).  Unready."""

    async def write(self, load_balancer_id: str, revision: int, wanted: Wanted, found: Found) -> Written:
        """Makes it so in one transaction which verifies what `found` says.  `wanted` without rows takes everything away.

        Nothing differs: no transaction.  Conflict, Superseded, Rejected, Unready, Unknown.
        """

    async def wakes(self) -> Sequence[Wake]:
        """The next changes, one batch; waits for the first.  Own writes wake nobody.  Changes while nobody asks are not lost: they are
        put together, and end as one Wake for all when they are too many."""

    async def close(self) -> None: ...
