"""Load balancers as the case tests need them: one listener, pool, members and perhaps a monitor at a time."""

from dataclasses import dataclass, field

from .lbaas import Json
from .stack import Stack

MONITOR = {"type": "TCP", "delay": 1, "timeout": 1, "max_retries": 1, "max_retries_down": 2}


@dataclass
class Built:
    """Ids of what was made.  members: by address and port."""

    lb: Json
    pool: str = ""
    listener: str = ""
    monitor: str = ""
    members: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.lb["id"])


def built(
    stack: Stack,
    name: str,
    members: list[tuple[str, int]],
    *,
    port: int = 80,
    monitor: bool = False,
    lb: Json | None = None,
) -> Built:
    """A TCP listener with these members of the front network, on a load balancer of its own unless one is given."""
    user, front = stack.user, stack.scene.front
    made = Built(lb or user.balancer(name=name, vip_subnet_id=front.subnet))
    made.listener = user.make("listeners", made.id, protocol="TCP", protocol_port=port)["id"]
    made.pool = user.make(
        "pools", made.id, listener_id=made.listener, protocol="TCP", lb_algorithm="SOURCE_IP_PORT"
    )["id"]
    for address, number in members:
        made.members[address, number] = user.member(
            made.id, made.pool, address=address, protocol_port=number,
            subnet_id=front.subnet6 if ":" in address else front.subnet,
        )["id"]  # fmt: skip
    if monitor:
        made.monitor = user.make("healthmonitors", made.id, pool_id=made.pool, **MONITOR)["id"]
    return made
