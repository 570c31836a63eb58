"""Requests as gophercloud makes them, and the orders in which Terraform's provider and cloud-provider-openstack do: same paths, queries and
bodies, the status codes that they accept, and answers that decode into their types."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from .client import Client, Reply
from .go_types import misfits
from .ground import Ground
from .people import Home

V2 = "/v2.0/lbaas"
# What gophercloud takes for success, by method, unless a call says otherwise.
ACCEPTED = {"GET": (200,), "POST": (201, 202), "PUT": (200, 202), "DELETE": (202, 204)}


class Go:
    """gophercloud's way of asking: every answer is decoded."""

    def __init__(self, client: Client) -> None:
        self.client = client
        client.headers |= {"User-Agent": "gophercloud/v2.7.0", "Accept": "application/json"}

    async def raw(self, method: str, path: str, body: Any = None, codes: tuple[int, ...] = ()) -> Reply:
        reply = await self.client.call(method, path if path.startswith("/v") else f"{V2}/{path}", body)
        assert reply.status in (codes or ACCEPTED[method]), f"{method} {path}: {reply.status} {reply.body}"
        return reply

    async def one(self, method: str, path: str, kind: str, values: Any = None) -> Any:
        reply = await self.raw(method, path, None if values is None else {kind: values})
        found = reply.body[kind]
        assert misfits(kind, found) == []
        return found

    async def all(self, path: str, kind: str, plural: str) -> list[Any]:
        """All pages, as LinkedPageBase walks them; it stops at an absent or empty list of links."""
        found: list[Any] = []
        where: str | None = path
        while where:
            reply = await self.raw("GET", where)
            assert isinstance(reply.body[plural], list)
            found += reply.body[plural]
            links = reply.body.get(f"{plural}_links") or []
            following = [x["href"] for x in links if x["rel"] == "next"]
            where = "/" + following[0].split("/", 3)[3] if following else None
        for one in found:
            assert misfits(kind, one) == []
        return found

    async def active(self, lb: str) -> Any:
        await self.client.active(f"loadbalancers/{lb}")
        return await self.one("GET", f"loadbalancers/{lb}", "loadbalancer")

    async def gone(self, path: str) -> None:
        """gophercloud takes 404 for the end of a deletion."""
        assert await self.client.settled(path) is None


@pytest.fixture
async def go(ground: Ground) -> AsyncIterator[Go]:
    client = Client(ground.url, ground.people.token_of(ground.people.red))
    yield Go(client)
    client.close()


@pytest.fixture
async def go_admin(ground: Ground) -> AsyncIterator[Go]:
    client = Client(ground.url, ground.people.admin_token)
    yield Go(client)
    client.close()


async def test_cloud_provider_openstack_tells_features_by_the_current_version(go: Go) -> None:
    """It lists versions at the endpoint and takes that of status CURRENT, `vMAJOR.MINOR`."""
    versions = (await go.client.call("GET", "/")).body["versions"]
    (current,) = [v["id"] for v in versions if v["status"] == "CURRENT"]
    major, minor = current.removeprefix("v").split(".")
    assert (int(major), int(minor) >= 26) == (2, True)
    assert all(isinstance(v["links"], list) and v["updated"] for v in versions)


async def test_cloud_provider_openstack_ensures_and_deletes_a_service(
    go: Go, red: Home, ground: Ground
) -> None:
    name = "kube_service_cluster_default_web"
    assert await go.all(f"loadbalancers?name={name}", "loadbalancer", "loadbalancers") == []
    # The whole tree in one request.
    listener = {
        "name": f"listener_0_{name}",
        "protocol": "TCP",
        "protocol_port": 80,
        "connection_limit": -1,
        "timeout_client_data": 50000,
        "timeout_member_connect": 5000,
        "timeout_member_data": 50000,
        "timeout_tcp_inspect": 0,
        "tags": [name],
        "default_pool": {
            "name": f"pool_0_{name}",
            "protocol": "TCP",
            "lb_algorithm": "SOURCE_IP_PORT",
            "session_persistence": {"type": "SOURCE_IP"},
            "members": [
                {
                    "address": f"10.0.0.{n}",
                    "protocol_port": 30080,
                    "name": f"node-{n}",
                    "subnet_id": red.subnet,
                    "monitor_port": 30081,
                }
                for n in (11, 12)
            ],
            "healthmonitor": {
                "name": f"monitor_0_{name}",
                "type": "HTTP",
                "delay": 5,
                "timeout": 3,
                "max_retries": 1,
                "max_retries_down": 3,
                "url_path": "/healthz",
                "http_method": "GET",
                "expected_codes": "200",
            },
        },
    }
    made = await go.one(
        "POST",
        "loadbalancers",
        "loadbalancer",
        {
            "name": name,
            "description": "Kubernetes external service default/web",
            "vip_subnet_id": red.subnet,
            "provider": "noop",
            "tags": [name],
            "admin_state_up": True,
            "listeners": [listener],
        },
    )
    lb = made["id"]
    await go.active(lb)
    (found,) = await go.all(f"loadbalancers?name={name}", "loadbalancer", "loadbalancers")
    assert found["tags"] == [name]
    (shown,) = await go.all(f"listeners?loadbalancer_id={lb}", "listener", "listeners")
    (pool,) = await go.all(f"pools?loadbalancer_id={lb}", "pool", "pools")
    assert [x["id"] for x in pool["listeners"]] == [shown["id"]]
    monitor = await go.one("GET", f"healthmonitors/{pool['healthmonitor_id']}", "healthmonitor")
    assert monitor["url_path"] == "/healthz"
    members = await go.all(f"pools/{pool['id']}/members", "member", "members")
    assert {m["monitor_port"] for m in members} == {30081}
    # A node more, one less.
    wanted = [
        {
            "address": f"10.0.0.{n}",
            "protocol_port": 30080,
            "name": f"node-{n}",
            "subnet_id": red.subnet,
            "monitor_port": 30081,
        }
        for n in (12, 13)
    ]
    await go.raw("PUT", f"pools/{pool['id']}/members", {"members": wanted}, (202,))
    await go.active(lb)
    members = await go.all(f"pools/{pool['id']}/members", "member", "members")
    assert sorted(m["name"] for m in members) == ["node-12", "node-13"]
    # loadBalancerSourceRanges, then none.
    for cidrs in (["198.51.100.0/24"], []):
        changed = await go.one(
            "PUT", f"listeners/{shown['id']}", "listener", {"allowed_cidrs": cidrs, "connection_limit": -1}
        )
        assert (changed["allowed_cidrs"] or []) == cidrs
        await go.active(lb)
    # Another port; the monitor that is there keeps its pool.
    second = await go.one(
        "POST",
        "listeners",
        "listener",
        {"loadbalancer_id": lb, "protocol": "UDP", "protocol_port": 53, "name": "udp", "tags": [name]},
    )
    await go.active(lb)
    await go.raw("DELETE", f"healthmonitors/{monitor['id']}")
    await go.active(lb)
    await go.raw("DELETE", f"listeners/{second['id']}")
    await go.active(lb)
    # The owner's tag is taken away by an update with an empty list.
    assert (await go.one("PUT", f"loadbalancers/{lb}", "loadbalancer", {"tags": []}))["tags"] == []
    await go.active(lb)
    await go.raw("DELETE", f"loadbalancers/{lb}?cascade=true")
    await go.gone(f"loadbalancers/{lb}")


async def test_terraform_applies_changes_and_destroys(go: Go, red: Home) -> None:
    lb = (
        await go.one(
            "POST",
            "loadbalancers",
            "loadbalancer",
            {"name": "tf", "vip_subnet_id": red.subnet, "admin_state_up": True, "tags": []},
        )
    )["id"]
    assert (await go.active(lb))["updated_at"] is not None
    listener = await go.one(
        "POST",
        "listeners",
        "listener",
        {
            "name": "tf",
            "protocol": "HTTP",
            "protocol_port": 8080,
            "loadbalancer_id": lb,
            "insert_headers": {"X-Forwarded-For": "true", "X-Forwarded-Port": "true"},
            "admin_state_up": True,
            "allowed_cidrs": ["0.0.0.0/0"],
        },
    )
    await go.active(lb)
    pool = await go.one(
        "POST",
        "pools",
        "pool",
        {
            "name": "tf",
            "protocol": "HTTP",
            "lb_algorithm": "ROUND_ROBIN",
            "listener_id": listener["id"],
            "session_persistence": {"type": "APP_COOKIE", "cookie_name": "session"},
            "admin_state_up": True,
        },
    )
    assert pool["session_persistence"]["cookie_name"] == "session"
    await go.active(lb)
    member = await go.one(
        "POST",
        f"pools/{pool['id']}/members",
        "member",
        {
            "name": "tf",
            "address": "10.0.0.50",
            "protocol_port": 8080,
            "subnet_id": red.subnet,
            "weight": 0,
            "admin_state_up": True,
        },
    )
    assert member["weight"] == 0
    await go.active(lb)
    monitor = await go.one(
        "POST",
        "healthmonitors",
        "healthmonitor",
        {
            "pool_id": pool["id"],
            "type": "HTTP",
            "delay": 20,
            "timeout": 10,
            "max_retries": 5,
            "max_retries_down": 3,
            "url_path": "/",
            "http_method": "GET",
            "expected_codes": "200",
            "http_version": "1.1",
            "domain_name": "a.example",
            "name": "tf",
            "admin_state_up": True,
        },
    )
    await go.active(lb)
    other = await go.one(
        "POST",
        "pools",
        "pool",
        {"name": "tf2", "protocol": "HTTP", "lb_algorithm": "SOURCE_IP", "loadbalancer_id": lb},
    )
    await go.active(lb)
    policy = await go.one(
        "POST",
        "l7policies",
        "l7policy",
        {
            "name": "tf",
            "action": "REDIRECT_TO_POOL",
            "listener_id": listener["id"],
            "redirect_pool_id": other["id"],
            "position": 1,
            "admin_state_up": True,
        },
    )
    await go.active(lb)
    rule = await go.one(
        "POST",
        f"l7policies/{policy['id']}/rules",
        "rule",
        {
            "type": "PATH",
            "compare_type": "EQUAL_TO",
            "value": "/api",
            "invert": False,
            "admin_state_up": True,
        },
    )
    await go.active(lb)

    for path, kind, change in (
        (f"listeners/{listener['id']}", "listener", {"insert_headers": {}, "timeout_client_data": 2000}),
        (f"pools/{pool['id']}", "pool", {"lb_algorithm": "LEAST_CONNECTIONS", "session_persistence": None}),
        (
            f"pools/{pool['id']}/members/{member['id']}",
            "member",
            {"weight": 5, "backup": True, "tags": ["x"]},
        ),
        (
            f"healthmonitors/{monitor['id']}",
            "healthmonitor",
            {"delay": 30, "name": "", "http_version": "1.1"},
        ),
        (
            f"l7policies/{policy['id']}",
            "l7policy",
            {"action": "REDIRECT_TO_URL", "redirect_url": "http://b.example", "position": 1},
        ),
        (
            f"l7policies/{policy['id']}/rules/{rule['id']}",
            "rule",
            {"compare_type": "STARTS_WITH", "value": "/v2"},
        ),
    ):
        changed = await go.one("PUT", path, kind, change)
        for name, value in change.items():
            shown = changed[name]
            assert (shown == value) or (name == "http_version" and str(shown) == str(value)), (
                path,
                name,
                shown,
            )
        await go.active(lb)
        assert misfits(kind, (await go.raw("GET", path)).body[kind]) == []

    tree = (await go.raw("GET", f"loadbalancers/{lb}/status")).body["statuses"]["loadbalancer"]
    assert tree["listeners"][0]["pools"][0]["members"][0]["id"] == member["id"]
    # The resource `openstack_lb_members_v2` is destroyed by an empty list.
    await go.raw("PUT", f"pools/{pool['id']}/members", {"members": []}, (202,))
    await go.active(lb)
    for path in (
        f"l7policies/{policy['id']}/rules/{rule['id']}",
        f"l7policies/{policy['id']}",
        f"healthmonitors/{monitor['id']}",
        f"pools/{pool['id']}",
        f"pools/{other['id']}",
        f"listeners/{listener['id']}",
    ):
        await go.raw("DELETE", path)
        await go.active(lb)
        await go.gone(path)
    await go.raw("DELETE", f"loadbalancers/{lb}")
    await go.gone(f"loadbalancers/{lb}")


async def test_lists_by_filters_pages_and_fields(go: Go, red: Home) -> None:
    made = []
    for n in range(3):
        wanted = {"name": f"page-{n}", "vip_subnet_id": red.subnet, "tags": ["paged", f"t{n}"]}
        made.append((await go.one("POST", "loadbalancers", "loadbalancer", wanted))["id"])
    for lb in made:
        await go.active(lb)
    query = "loadbalancers?tags=paged&limit=2&sort_key=name&sort_dir=desc"
    found = await go.all(query, "loadbalancer", "loadbalancers")
    assert [one["name"] for one in found] == ["page-2", "page-1", "page-0"]
    for query, names in (
        ("tags=paged&tags=t1", ["page-1"]),
        ("tags-any=t0,t2", ["page-0", "page-2"]),
        (f"id={made[0]}&tags=paged", ["page-0"]),
        (f"vip_subnet_id={red.subnet}&tags=t1&provider=noop&admin_state_up=true", ["page-1"]),
        (f"project_id={red.project}&not-tags=t1&tags=paged", ["page-0", "page-2"]),
        ("provisioning_status=ERROR&tags=paged", []),
        ("name=page-9", []),
    ):
        rows = await go.all(f"loadbalancers?{query}&sort=name", "loadbalancer", "loadbalancers")
        assert [row["name"] for row in rows] == names, query
    few = (await go.raw("GET", "loadbalancers?tags=paged&fields=id&fields=name&sort=name")).body
    assert few["loadbalancers"] == [{"id": lb, "name": f"page-{n}"} for n, lb in enumerate(made)]
    for lb in made:
        await go.raw("DELETE", f"loadbalancers/{lb}?cascade=false")
        await go.gone(f"loadbalancers/{lb}")


async def test_terraform_keeps_quotas_flavors_and_zones(go_admin: Go, blue: Home) -> None:
    go = go_admin
    quota = await go.one(
        "PUT", f"quotas/{blue.project}", "quota", {"loadbalancer": 5, "healthmonitor": 6, "l7rule": 7}
    )
    assert (quota.get("loadbalancer", quota["load_balancer"]), quota["l7rule"]) == (5, 7)
    assert misfits("quota", (await go.raw("GET", f"quotas/{blue.project}")).body["quota"]) == []
    await go.raw("DELETE", f"quotas/{blue.project}")
    profile = (
        await go.raw(
            "POST",
            "flavorprofiles",
            {
                "flavorprofile": {
                    "name": "tf",
                    "provider_name": "noop",
                    "flavor_data": '{"amp_image_tag": "x"}',
                }
            },
        )
    ).body["flavorprofile"]
    flavor = (
        await go.raw(
            "POST",
            "flavors",
            {
                "flavor": {
                    "name": "tf",
                    "description": "",
                    "flavor_profile_id": profile["id"],
                    "enabled": True,
                }
            },
        )
    ).body["flavor"]
    assert isinstance(flavor["enabled"], bool)
    changed = await go.raw("PUT", f"flavors/{flavor['id']}", {"flavor": {"enabled": False}})
    assert changed.body["flavor"]["enabled"] is False
    await go.raw("DELETE", f"flavors/{flavor['id']}")
    await go.raw("DELETE", f"flavorprofiles/{profile['id']}")
    providers = (await go.raw("GET", "providers")).body["providers"]
    assert {"noop", "plain"} <= {p["name"] for p in providers}


async def test_errors_are_what_clients_look_for(go: Go, red: Home) -> None:
    """404 is the end of a deletion, 409 is tried again, 400 is told to the user."""
    nobody = "11111111-2222-4333-8444-555555555555"
    for kind in ("loadbalancers", "listeners", "pools", "healthmonitors", "l7policies"):
        for method in ("GET", "DELETE"):
            reply = await go.raw(method, f"{kind}/{nobody}", codes=(404,))
            assert nobody in reply.fault
    assert (await go.client.call("GET", "loadbalancers", headers={"X-Auth-Token": "wrong"})).status == 401
