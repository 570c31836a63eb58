"""Many clients at once, and a replica that is killed among them: no fault reaches a client, nothing is half done, all agrees at the end."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from .client import Client
from .ground import Ground
from .storm import EXPECTED, Storm

SOAK = os.environ.get("ROADSTEAD_SOAK") == "1"
SECONDS = 600.0 if SOAK else 20.0
CLIENTS = 50
pytestmark = pytest.mark.timeout(int(SECONDS) + 240)
GROWTH = 60 * 2**20  # bytes that a replica may gain from the first quarter to the end

TABLES = {
    "load_balancer": ("load_balancer", 40),
    "listener": ("listener", 200),
    "pool": ("pool", 200),
    "member": ("member", 800),
    "health_monitor": ("health_monitor", 200),
    "l7policy": ("l7policy", 200),
    "l7rule": ("l7rule", 800),
}
# What no tree may be: each finds rows that have lost what they belong to, or belong to two trees.
HALF_DONE = {
    "a load balancer without its VIP": """SELECT b.id FROM load_balancer b LEFT JOIN vip v ON v.load_balancer_id = b.id
        WHERE v.load_balancer_id IS NULL""",
    "below a load balancer that is gone": """SELECT l.id FROM listener l JOIN load_balancer b ON b.id = l.load_balancer_id
        WHERE b.provisioning_status = 'DELETED' UNION ALL
        SELECT p.id FROM pool p JOIN load_balancer b ON b.id = p.load_balancer_id WHERE b.provisioning_status = 'DELETED'""",
    "a default pool of another load balancer": """SELECT l.id FROM listener l JOIN pool p ON p.id = l.default_pool_id
        WHERE p.load_balancer_id <> l.load_balancer_id""",
    "positions with a gap or twice": """SELECT listener_id FROM l7policy GROUP BY listener_id
        HAVING max(position) <> count(*) OR min(position) <> 1 OR count(DISTINCT position) <> count(*)""",
    "a listener's port twice": """SELECT load_balancer_id FROM listener GROUP BY load_balancer_id, protocol, protocol_port
        HAVING count(*) > 1""",
    "a member twice": "SELECT pool_id FROM member GROUP BY pool_id, ip_address, protocol_port HAVING count(*) > 1",
    "two monitors": "SELECT pool_id FROM health_monitor GROUP BY pool_id HAVING count(*) > 1",
    "an operation that never ended": "SELECT id FROM operation WHERE state = 'SENT'",
    "in error although the provider refused nothing": """SELECT id FROM member WHERE provisioning_status = 'ERROR'
        UNION ALL SELECT id FROM load_balancer WHERE provisioning_status = 'ERROR'""",
}


async def quotas(ground: Ground, project: str) -> None:
    root = Client(ground.url, ground.people.admin_token)
    await root.ok("PUT", f"quotas/{project}", {"quota": dict(TABLES.values())})
    root.close()


async def all_agrees(ground: Ground, project: str) -> None:
    """Nothing waits, no tree is half done, counts are within quotas and equal what the API lists."""
    ends = time.monotonic() + 90
    while left := ground.pending():
        assert time.monotonic() < ends, left[:5]
        await asyncio.sleep(0.5)
    for what, query in HALF_DONE.items():
        assert ground.sql(query) == [], what
    live = "provisioning_status <> 'DELETED'"
    for table, (_, limit) in TABLES.items():
        count = ground.number(f"SELECT count(*) FROM {table} WHERE project_id = '{project}' AND {live}")
        assert count <= limit, table
    client = Client(ground.url, ground.people.token_of(ground.people.red))
    for kind, table in (("loadbalancers", "load_balancer"), ("listeners", "listener"), ("pools", "pool")):
        listed = await client.listed(f"{kind}?fields=id")
        assert len(listed) == ground.number(
            f"SELECT count(*) FROM {table} WHERE project_id = '{project}' AND {live}"
        )
    client.close()


async def quota_equals_rows(ground: Ground, project: str) -> None:
    """Set to what there is, each quota refuses one more; set to one above, exactly one is let in."""
    client = Client(ground.url, ground.people.token_of(ground.people.red))
    root = Client(ground.url, ground.people.admin_token)
    live = "SELECT count(*) FROM load_balancer WHERE provisioning_status <> 'DELETED' AND project_id = '{}'"
    count = ground.number(live.format(project))
    wanted = {"loadbalancer": {"vip_subnet_id": ground.people.red.subnet}}
    await root.ok("PUT", f"quotas/{project}", {"quota": {"load_balancer": count + 1}})
    replies = await asyncio.gather(*(client.call("POST", "loadbalancers", wanted) for _ in range(8)))
    assert sorted(r.status for r in replies) == [201] + [403] * 7
    client.close()
    root.close()


@pytest.fixture(scope="module")
def shaken(make_ground: Callable[..., Ground]) -> Ground:
    return make_ground(replicas=2)


async def test_fifty_clients_on_shared_load_balancers(shaken: Ground) -> None:
    ground, home = shaken, shaken.people.red
    await quotas(ground, home.project)
    token = ground.people.token_of(home)
    storm = Storm(home.subnet, seed=1)
    clients = [Client(ground.replicas[n % 2].url, token) for n in range(CLIENTS)]
    until = time.monotonic() + SECONDS
    running = [asyncio.create_task(storm.client(c, n, until)) for n, c in enumerate(clients)]
    await asyncio.sleep(SECONDS / 4)
    before = [replica.memory() for replica in ground.replicas]
    await asyncio.gather(*running)
    after = [replica.memory() for replica in ground.replicas]
    for client in clients:
        client.close()
    assert storm.faults == [], storm.faults[:5]
    assert storm.broken == 0
    # Reads come before each choice, so most answers are 200.
    made = sum(storm.counts[code] for code in (201, 202, 204))
    assert made > 3 * SECONDS, storm.counts
    assert storm.counts[409] > 0, storm.counts
    for was, now in zip(before, after, strict=True):
        assert now - was < GROWTH, (before, after)
    await all_agrees(ground, home.project)
    await quota_equals_rows(ground, home.project)
    for replica in ground.replicas:
        assert "Traceback" not in replica.words()


async def test_a_replica_killed_under_load_leaves_no_request_half_done(shaken: Ground) -> None:
    ground, home = shaken, shaken.people.red
    await quotas(ground, home.project)
    token = ground.people.token_of(home)
    storm = Storm(home.subnet, seed=2, allowed=EXPECTED | {503})
    survivor = [Client(ground.replicas[0].url, token) for _ in range(12)]
    victims = [Client(ground.replicas[1].url, token) for _ in range(12)]
    seconds = 60.0 if SOAK else 15.0
    until = time.monotonic() + seconds
    running: list[Any] = [
        asyncio.create_task(storm.client(c, 100 + n, until)) for n, c in enumerate((*survivor, *victims))
    ]
    rounds = 4 if SOAK else 2
    for _ in range(rounds):
        await asyncio.sleep(seconds / (2 * rounds) - 1)
        ground.replicas[1].kill()
        await asyncio.sleep(1.0)
        ground.replicas[1].start(90)
    await asyncio.gather(*running)
    for client in (*survivor, *victims):
        client.close()
    assert storm.faults == [], storm.faults[:5]
    assert storm.broken > 0
    await all_agrees(ground, home.project)
    await quota_equals_rows(ground, home.project)
