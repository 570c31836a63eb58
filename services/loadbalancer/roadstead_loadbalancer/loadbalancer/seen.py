"""What one pass read of a load balancer: a frozen value that decisions are made from."""

from dataclasses import dataclass, field

from roadstead_loadbalancer.loadbalancer.tree import Tree

PENDING = frozenset({"PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"})


@dataclass(frozen=True)
class BalancerSeen:
    """The load balancer of exactly our name.  status in upper case, "" when none is told; vip and port None until told."""

    id: str
    status: str
    vip: str | None
    port: str | None

    @property
    def moving(self) -> bool:
        return self.status in PENDING


@dataclass(frozen=True)
class AddressSeen:
    """A floating IP on the VIP port, or one that bears our mark and hangs on nothing."""

    id: str
    address: str


@dataclass(frozen=True)
class Strays:
    """VIP ports that a refused create of ours left behind: ids of those that may go; young: others will be old enough soon."""

    ports: tuple[str, ...] = ()
    young: bool = False


@dataclass(frozen=True)
class Seen:
    """One observation.

    balancer None: a complete list has none.  subnet: the network's in the cloud, None while it is not told; prefix: the
    network's, where known.  algorithm: the Region's balancing method.  tree: the parts, read while the load balancer rests.
    restless: statuses of parts that a cascade delete must not meet (deletion only).  refused: the provider cannot do what this
    pass asked for.  foreign: network or identity are another tenant's.  mismatch: the network lives in another identity than
    the load balancer names.
    """

    balancer: BalancerSeen | None = None
    subnet: str | None = None
    prefix: str | None = None
    algorithm: str = "ROUND_ROBIN"
    addresses: tuple[AddressSeen, ...] = ()
    tree: Tree = field(default_factory=Tree)
    restless: tuple[str, ...] = ()
    refused: bool = False
    strays: Strays = field(default_factory=Strays)
    foreign: bool = False
    mismatch: bool = False
