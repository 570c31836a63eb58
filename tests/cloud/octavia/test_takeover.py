"""Load balancers that the cloud's own Octavia made are taken over by ours: they stay as they are, can be changed, and go back."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openstack
import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer
from roadstead_ovn.store.postgres import SCHEMA as WORK
from tests.octavia.building import member, removed
from tests.octavia.client import Client
from tests.octavia.osc import Osc
from tests.octavia.people import PASSWORD, Home
from tests.octavia.test_openstack_command import environment
from tests.scenarios import test_loadbalancer
from tests.world.adapter_stack import Session

from .reference import ReferenceCloud
from .takeover import Rows, Takeover

# Minutes long: `make soak` runs it.
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        os.environ.get("ROADSTEAD_SOAK") != "1", reason="long: ROADSTEAD_SOAK=1, or make soak"
    ),
]
WITHIN = 60.0
LISTS = ("loadbalancers", "listeners", "pools", "healthmonitors")


@pytest.fixture(scope="module")
def takeover(
    reference_cloud: ReferenceCloud, postgres_server: PostgresServer, server_directory: Any
) -> Iterator[Takeover]:
    name = f"octavia_takeover_{os.getpid()}"
    asyncio.run(migrate(postgres_server.create_database(name), ["octavia", WORK]))
    takeover = Takeover(reference_cloud, server_directory / name, postgres_server, name)
    try:
        yield takeover.start()
    finally:
        takeover.stop()
        if kept := os.environ.get("ROADSTEAD_KEEP_LOGS"):
            for program in (*takeover.replicas, *takeover.workers):
                (Path(kept) / f"{name}-{program.directory.name}.log").write_text(program.words())


async def until(check: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first true value."""
    try:
        async with asyncio.timeout(WITHIN):
            while True:
                if found := await check():
                    return found
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"not within {WITHIN:g} s: {what}") from None


class Cloud:
    """Calls to whichever API serves the cloud now."""

    def __init__(self, takeover: Takeover, url: str) -> None:
        self.takeover = takeover
        self.api = Client(url, takeover.people.token_of(takeover.people.red))

    async def settled(self, lb: str) -> Any:
        """ACTIVE, with everything below: the original says so of the load balancer first."""

        async def all_active() -> Any:
            tree = (await self.api.ok("GET", f"loadbalancers/{lb}/status"))["loadbalancer"]
            return "PENDING" not in json.dumps(tree) and tree

        return await until(all_active, f"load balancer {lb} settled")

    async def made(self, path: str, kind: str, lb: str, **values: Any) -> Any:
        found = await self.api.ok("POST", path, {kind: values})
        await self.settled(lb)
        return found

    async def balancer(self, home: Home, name: str, port: int = 80, **more: Any) -> str:
        """With a listener, a pool, two members and a monitor."""
        lb = (
            await self.api.ok(
                "POST",
                "loadbalancers",
                {"loadbalancer": {"name": name, "vip_subnet_id": home.subnet, **more}},
            )
        )["id"]
        await self.settled(lb)
        pool = (
            await self.made(
                "pools",
                "pool",
                lb,
                loadbalancer_id=lb,
                name=name,
                protocol="TCP",
                lb_algorithm="SOURCE_IP_PORT",
            )
        )["id"]
        for number in (1, 2):
            await self.made(
                f"pools/{pool}/members",
                "member",
                lb,
                **member(f"10.0.7.{number}", port, subnet_id=home.subnet),
            )
        await self.made(
            "listeners", "listener", lb, loadbalancer_id=lb, name=name, protocol="TCP", protocol_port=port, default_pool_id=pool
        )  # fmt: skip
        await self.made(
            "healthmonitors", "healthmonitor", lb, pool_id=pool, type="TCP", delay=5, timeout=3, max_retries=2
        )
        return str(lb)

    async def picture(self) -> dict[str, Any]:
        """All that lists show, members too; times of change aside, and what health checks say meanwhile."""
        found: dict[str, Any] = {}
        for plural in LISTS:
            found[plural] = await self.api.listed(plural)
        for pool in found["pools"]:
            found[f"members of {pool['id']}"] = await self.api.listed(f"pools/{pool['id']}/members")
        moving = ("updated_at", "operating_status")
        return {
            plural: [{k: _ordered(v) for k, v in row.items() if k not in moving} for row in rows]
            for plural, rows in found.items()
        }


def connection(takeover: Takeover) -> Any:
    return openstack.connect(
        auth_url=takeover.auth_url,
        username=takeover.people.red.name,
        password=PASSWORD,
        project_name=takeover.people.red.name,
        user_domain_name="Default",
        project_domain_name="Default",
        region_name=takeover.region,
        load_yaml_config=False,
        load_envvars=False,
    )


def _ordered(value: Any) -> Any:
    """References to children come in no order."""
    return sorted(value, key=str) if isinstance(value, list) else value


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Field by field."""
    told = [f"{plural} are others" for plural in found.keys() ^ expected.keys()]
    for plural in found.keys() & expected.keys():
        pairs = [{row["id"]: row for row in rows[plural]} for rows in (found, expected)]
        for identifier in pairs[0].keys() | pairs[1].keys():
            now, then = (side.get(identifier, {}) for side in pairs)
            told += [
                f"{plural} {identifier} {name}: {now.get(name)!r}, was {then.get(name)!r}"
                for name in sorted(now.keys() | then.keys())
                if now.get(name) != then.get(name)
            ]
    return told


@dataclass(frozen=True)
class Taken:
    """Three load balancers that the original made; rows and shown: as they were before ours took over."""

    takeover: Takeover
    kept: str
    changed: str
    deleted: str
    rows: Mapping[str, Rows]
    shown: dict[str, Any]

    def ours(self) -> "Cloud":
        return Cloud(self.takeover, self.takeover.url)

    def rows_now(self, *ids: str) -> dict[str, Rows]:
        return {lb: self.takeover.rows_in_ovn(lb) for lb in ids}


@pytest.fixture(scope="module")
def taken(takeover: Takeover) -> Taken:
    """Ours serves the cloud."""
    found = asyncio.run(_made_by_the_original(takeover))
    takeover.take_over()
    return found


async def _made_by_the_original(takeover: Takeover) -> Taken:
    before = Cloud(takeover, takeover.original_url)
    home = takeover.people.red
    made = await asyncio.gather(
        before.balancer(home, "kept"),
        before.balancer(home, "changed", 8080),
        before.balancer(home, "deleted", 8081),
    )
    rows = {lb: takeover.rows_in_ovn(lb) for lb in made}
    assert all(found["rows"] and found["holders"] and found["checks"] for found in rows.values()), rows
    shown = await before.picture()
    before.api.close()
    return Taken(takeover, made[0], made[1], made[2], rows, shown)


async def test_rows_and_answers_are_those_of_the_original(taken: Taken) -> None:
    ours = taken.ours()
    assert differences(await ours.picture(), taken.shown) == []

    async def adopted() -> bool:
        return all(None not in taken.takeover.revision_in_ovn(lb) for lb in taken.rows)

    await until(adopted, "our worker knows the rows")
    assert taken.rows_now(*taken.rows) == taken.rows
    assert differences(await ours.picture(), taken.shown) == []
    ours.api.close()


def test_clients_change_and_delete_what_the_original_made(taken: Taken) -> None:
    takeover, red = taken.takeover, taken.takeover.people.red
    # openstacksdk finds ours by the catalog of the same region.
    proxy = connection(takeover).load_balancer
    assert {lb.id for lb in proxy.load_balancers()} >= {taken.kept, taken.changed, taken.deleted}
    (pool,) = proxy.pools(loadbalancer_id=taken.changed)
    proxy.create_member(pool, address="10.0.7.3", protocol_port=8080, subnet_id=red.subnet)
    proxy.wait_for_load_balancer(taken.changed, wait=WITHIN, interval=0.2)
    assert "10.0.7.3:8080" in str(takeover.rows_in_ovn(taken.changed)["rows"][0]["vips"])

    # So does the openstack command.
    osc = Osc(**environment(takeover, red.name, PASSWORD))
    try:
        osc.do(f"set {taken.changed} --name renamed --wait")
        assert osc.see("show renamed")["id"] == taken.changed
        osc.do(f"delete {taken.deleted} --cascade --wait")
    finally:
        osc.close()
    assert takeover.rows_in_ovn(taken.deleted) == {"rows": [], "checks": [], "holders": []}
    assert takeover.ports(device_id=f"lb-{taken.deleted}") == []
    assert taken.rows_now(taken.kept) == {taken.kept: taken.rows[taken.kept]}


def test_our_own_region_makes_and_edits_load_balancers_through_it(taken: Taken) -> None:
    """A registered region on the real cloud: its catalog leads to ours."""
    clouds = taken.takeover.cloud.clouds
    region = Session("cloud", pace=0.35, at_once=2, patience=240, cloud=(clouds, "roadstead-admin"))
    scenarios = (
        test_loadbalancer.test_inv_262_inv_264_inv_265_inv_283_inv_285_create_full,
        test_loadbalancer.test_inv_263_inv_274_inv_275_inv_276_inv_278_edits_change_the_parts_in_place,
    )
    try:
        region.open()
        region.schedule([(one, one.__name__, {}) for one in scenarios])
        for one in scenarios:
            region.result(one, one.__name__, {})
    finally:
        region.close()


async def test_the_original_goes_on_with_what_ours_left(taken: Taken) -> None:
    """What ours made and changed meanwhile goes along, and can be changed and deleted there."""
    takeover = taken.takeover
    ours = taken.ours()
    new = await ours.balancer(takeover.people.red, "new", 8082)
    left = [lb["id"] for lb in await ours.api.listed("loadbalancers")]
    assert {new, taken.kept, taken.changed} <= set(left)
    rows, shown = taken.rows_now(*left), await ours.picture()
    ours.api.close()

    takeover.hand_back()
    after = Cloud(takeover, takeover.original_url)
    assert differences(await after.picture(), shown) == []
    assert taken.rows_now(*left) == rows
    (listener,) = [one for one in await after.api.listed("listeners") if one["name"] == "new"]
    await after.api.ok("PUT", f"listeners/{listener['id']}", {"listener": {"admin_state_up": False}})
    await after.settled(new)
    assert [row["vips"] for row in takeover.rows_in_ovn(new)["rows"]] == [{}]
    for lb in left:
        await removed(after.api, lb)
        assert takeover.rows_in_ovn(lb)["rows"] == []
    after.api.close()
