"""A load balancer with one of everything below it, made call by call as a user would."""

from dataclasses import dataclass
from typing import Any

from .client import Client


@dataclass(frozen=True)
class Built:
    """Ids of one tree; `paths` are those of its objects, the load balancer first."""

    lb: str
    listener: str
    pool: str
    members: tuple[str, str]
    monitor: str
    policy: str
    rule: str

    @property
    def members_path(self) -> str:
        return f"pools/{self.pool}/members"

    @property
    def paths(self) -> tuple[str, ...]:
        return (
            f"loadbalancers/{self.lb}",
            f"listeners/{self.listener}",
            f"pools/{self.pool}",
            *(f"{self.members_path}/{member}" for member in self.members),
            f"healthmonitors/{self.monitor}",
            f"l7policies/{self.policy}",
            f"l7policies/{self.policy}/rules/{self.rule}",
        )


def member(address: str, port: int = 80, **more: Any) -> dict[str, Any]:
    return {"address": address, "protocol_port": port, **more}


async def build(client: Client, subnet: str, **lb: Any) -> Built:
    """All of it ACTIVE."""
    top = (await client.load_balancer(vip_subnet_id=subnet, **lb))["id"]
    listener = await client.made(
        "listener", "listeners", top, loadbalancer_id=top, protocol="HTTP", protocol_port=80, name="web"
    )
    pool = await client.made(
        "pool",
        "pools",
        top,
        listener_id=listener["id"],
        protocol="HTTP",
        lb_algorithm="ROUND_ROBIN",
        name="web",
    )
    path = f"pools/{pool['id']}/members"
    first = await client.made("member", path, top, **member("192.0.2.10"), name="a")
    second = await client.made("member", path, top, **member("192.0.2.11"), name="b")
    monitor = await client.made(
        "healthmonitor",
        "healthmonitors",
        top,
        pool_id=pool["id"],
        type="HTTP",
        delay=5,
        timeout=3,
        max_retries=2,
    )
    policy = await client.made(
        "l7policy", "l7policies", top, listener_id=listener["id"], action="REJECT", name="no"
    )
    rule = await client.made(
        "rule",
        f"l7policies/{policy['id']}/rules",
        top,
        type="PATH",
        compare_type="STARTS_WITH",
        value="/private",
    )
    return Built(
        top,
        listener["id"],
        pool["id"],
        (first["id"], second["id"]),
        monitor["id"],
        policy["id"],
        rule["id"],
    )


async def removed(client: Client, lb: str) -> None:
    """The load balancer with all below it, gone."""
    reply = await client.call("DELETE", f"loadbalancers/{lb}?cascade=true")
    assert reply.status == 204, reply.body
    assert await client.settled(f"loadbalancers/{lb}") is None
