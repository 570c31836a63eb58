"""Load balancers over HTTP: what comes before their operations, and the forms of the answers."""

from collections.abc import Mapping
from typing import Any

import pytest

from roadstead_octavia.call import Caller
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.http.app import App
from roadstead_octavia.http.operations import load_what_is_there

from ..answering.client import Got, ask
from .world import PROJECT, SUBNET, TOKEN, World

pytestmark = pytest.mark.integration
PATH = "/v2/lbaas/loadbalancers"


class Web(World):
    """The same world behind the application."""

    async def caller(self, _headers: Mapping[str, str]) -> Caller:
        return Caller("user", PROJECT, token=TOKEN)

    async def ask(self, method: str, path: str = "", body: Any = None) -> Got:
        app = App(self.call().parts, self.options, self, operations=load_what_is_there())
        return await ask(app, method, PATH + path, {}, body)


@pytest.fixture
def web(database: PostgresDatabase) -> Web:
    return Web(database)


async def test_a_load_balancer_from_creation_to_deletion(web: Web) -> None:
    made = await web.ask("POST", body={"loadbalancer": {"name": "a", "vip_subnet_id": SUBNET}})
    assert made.status == 201
    shown = made.body["loadbalancer"]
    assert (shown["vip_address"], shown["listeners"], shown["updated_at"]) == ("192.0.0.9", [], None)
    identifier = shown["id"]
    assert (await web.ask("GET", f"/{identifier}")).body["loadbalancer"] == shown
    statuses = (await web.ask("GET", f"/{identifier}/status")).body["statuses"]["loadbalancer"]
    assert (statuses["provisioning_status"], statuses["listeners"]) == ("PENDING_CREATE", [])
    assert (await web.ask("GET", f"/{identifier}/stats")).body["stats"]["bytes_in"] == 0
    busy = await web.ask("DELETE", f"/{identifier}?cascade=true")
    assert (busy.status, busy.body["debuginfo"], busy.body["faultcode"]) == (409, None, "Client")


async def test_a22_a_body_on_a_failover_is_not_looked_at(web: Web) -> None:
    identifier = await web.active()
    answer = await web.ask("PUT", f"/{identifier}/failover", body={"anything": ["at", "all"]})
    assert (answer.status, answer.raw) == (202, b"")
    assert web.sent[-1].method == "loadbalancer_failover"


@pytest.mark.parametrize("name", ["provider", "flavor_id", "availability_zone", "additional_vips", "tags"])
async def test_c_16_c_17_null_for_what_has_a_default_is_as_if_it_was_not_sent(web: Web, name: str) -> None:
    answer = await web.ask("POST", body={"loadbalancer": {name: None, "vip_subnet_id": SUBNET}})
    assert answer.status == 201
    assert answer.body["loadbalancer"]["provider"] == "noop"


@pytest.mark.parametrize(
    ("said", "status"),
    [("true", 204), ("True", 204), ("1", 204), ("false", 400), ("False", 400), ("maybe", 400)],
)
async def test_cascade_is_a_boolean(web: Web, said: str, status: int) -> None:
    identifier = await web.active(pools=[{"name": "p", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}])
    answer = await web.ask("DELETE", f"/{identifier}?cascade={said}")
    assert answer.status == status
    (row,) = await web.balancers()
    assert row["provisioning_status"] == ("PENDING_DELETE" if status == 204 else "ACTIVE")


async def test_an_update_without_a_body_is_refused_after_the_object_was_looked_for(web: Web) -> None:
    absent = "00000000-0000-4000-8000-00000000000a"
    assert (await web.ask("PUT", f"/{absent}", {})).status == 404
    identifier = await web.active()
    assert (await web.ask("PUT", f"/{identifier}", {})).status == 400
