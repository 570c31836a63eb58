"""How often the database is asked for one request: the same number whatever the request, the page or the tree holds."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from roadstead_octavia.call import Parts
from roadstead_octavia.db.port import Update
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.http.app import App
from roadstead_octavia.http.identity import HeaderIdentity
from roadstead_octavia.http.operations import load
from roadstead_octavia.options import Options
from roadstead_octavia.outside.absent import NoKeys, NoNetwork
from roadstead_octavia.policy_engine import PolicyEngine
from roadstead_octavia.provider.noop import driver

from .client import PROJECT, Got, ask

LIST = "/v2/lbaas/loadbalancers"
TABLES = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")


class Agreeing:
    """A provider that takes everything and makes ports."""

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        return

    async def ask(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        return driver.ask(method, {"arguments": list(arguments)}, driver.Manner()).get("returns")


class OneNetwork(NoNetwork):
    """A network in which every subnet is."""

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any]:
        return {"id": identifier, "network_id": PROJECT, "cidr": "192.0.2.0/24", "ip_version": 4}


@dataclass
class Service:
    """trips: of the last request."""

    app: App
    database: PostgresDatabase
    trips: int = 0
    trips_of_create: int = 0

    async def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Got:
        before = self.database.session.round_trips
        got = await ask(self.app, method, path, {"x-project-id": PROJECT}, body)
        self.trips = self.database.session.round_trips - before
        assert got.status < 300, got.text
        return got

    async def made(self, **more: Any) -> dict[str, Any]:
        """A load balancer, at work."""
        balancer = {"name": "one", "vip_subnet_id": "5f8f2c2e-8f43-4d3c-9a33-5b9f3c0d1c02", **more}
        got = await self.ask("POST", LIST, {"loadbalancer": balancer})
        self.trips_of_create = self.trips
        await self.activate(got.body["loadbalancer"]["id"])
        return dict(got.body["loadbalancer"])

    async def activate(self, identifier: str) -> None:
        tree = await self.database.tree(identifier)
        assert tree is not None
        await self.database.write(
            [
                Update(table, {"id": row["id"]}, {"provisioning_status": "ACTIVE"})
                for table in TABLES
                for row in tree.of(table)
            ]
        )


@pytest.fixture
async def service(database_url: str) -> AsyncIterator[Service]:
    database = PostgresDatabase(database_url, patience=2.0)
    await database.open()
    options = Options(
        auth_strategy="noauth", enabled_provider_drivers={"noop": "noop"}, default_provider_driver="noop"
    )
    parts = Parts(
        database=database,
        provider=Agreeing(),
        network=OneNetwork(),
        keys=NoKeys(),
        policy=PolicyEngine(),
        dispatch=lambda *_: None,
    )
    identity = HeaderIdentity(lambda _: True, everybody_is_admin=True)
    yield Service(App(parts, options, identity, operations=load()), database)
    await database.close()


def whole(size: int) -> dict[str, Any]:
    """So many listeners, each with a pool of its own with as many members, and as many policies with a rule."""
    return {"listeners": [_listener(at, size) for at in range(size)]}


def _listener(at: int, size: int) -> dict[str, Any]:
    pool = {"name": f"p{at}", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    members = [{"address": f"192.0.2.{n + 1}", "protocol_port": 80} for n in range(size)]
    monitor = {"type": "HTTP", "delay": 10, "timeout": 5, "max_retries": 3}
    rule = {"type": "PATH", "compare_type": "EQUAL_TO", "value": "/"}
    return {
        "protocol": "HTTP",
        "protocol_port": 80 + at,
        "default_pool": {**pool, "members": members, "healthmonitor": monitor},
        "l7policies": [{"action": "REJECT", "rules": [rule]} for _ in range(size)],
    }


@pytest.mark.parametrize("size", [0, 1, 6])
async def test_a_tree_of_any_size_is_made_shown_and_deleted_in_the_same_number_of_round_trips(
    service: Service, size: int
) -> None:
    balancer = await service.made(**whole(size), tags=["a", "b"][:size])
    path = f"{LIST}/{balancer['id']}"
    assert service.trips_of_create == 2  # the claim of the port, and the commit that takes it
    await service.ask("GET", path)
    assert service.trips == 1
    await service.ask("GET", f"{path}/status")
    assert service.trips == 1
    await service.ask("PUT", path, {"loadbalancer": {"name": "other"}})
    assert service.trips == 2  # the tree, and the commit
    await service.activate(balancer["id"])
    await service.ask("DELETE", f"{path}?cascade=true")
    assert service.trips == 2


@pytest.mark.parametrize("count", [1, 40])
async def test_a_list_is_two_round_trips_whatever_it_holds(service: Service, count: int) -> None:
    for _ in range(count):
        await service.made(**whole(1))
    for noun in ("loadbalancers", "listeners", "pools", "healthmonitors", "l7policies"):
        got = await service.ask("GET", f"/v2/lbaas/{noun}")
        assert len(got.body[noun]) == count
        assert service.trips == 2, noun


@pytest.mark.parametrize("count", [1, 200])
async def test_a_batch_of_members_is_two_round_trips_however_many_there_are(
    service: Service, count: int
) -> None:
    pool = {"name": "p", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    balancer = await service.made(pools=[pool])
    members = [{"address": f"192.0.2.{n + 1}", "protocol_port": 80} for n in range(count)]
    path = f"/v2/lbaas/pools/{balancer['pools'][0]['id']}/members"
    await service.ask("PUT", path, {"members": members})
    assert service.trips == 2
    await service.activate(balancer["id"])
    await service.ask("PUT", path, {"members": [{**member, "weight": 7} for member in members]})
    assert service.trips == 2
