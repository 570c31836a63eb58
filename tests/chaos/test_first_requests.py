"""Many first requests of a new project at once, while the database goes away in the middle (OC-39)."""

import asyncio
import json
import time
import uuid
from typing import Any

import nats.errors

from roadstead.cloud import names
from roadstead.subjects import Key
from tests.chaos.stack import ORGANIZATION, RULES, People, Stack

NUMBER = 20
ALLOWED = (503,)


async def asked_once(people: People, project: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """One reply, an error included; a request that nobody answered counts as 503."""
    subject = f"api.{people.stack.region}.{project}.{kind}.apply"
    try:
        reply = await people.client.request(subject, json.dumps(body).encode(), timeout=30)
    except (nats.errors.Error, OSError) as error:
        return {"error": {"status": 503, "message": str(error)}}
    answer: dict[str, Any] = json.loads(reply.data)
    return answer


async def applied(people: People, project: str, kind: str, body: dict[str, Any]) -> list[int]:
    """Ask until it is taken; the statuses of the answers before that."""
    statuses: list[int] = []
    ends = time.monotonic() + 40
    while time.monotonic() < ends:
        answer = await asked_once(people, project, kind, body)
        if "error" not in answer:
            return statuses
        statuses.append(int(answer["error"]["status"]))
        await asyncio.sleep(0.3)
    raise AssertionError(f"{kind} was never taken: {statuses}")


async def test_oc_39_k13_twenty_first_requests_and_a_database_that_dies_in_the_middle(
    stack: Stack, people: People
) -> None:
    """GIVEN a project nobody knows WHEN twenty of its requests come at once and the database is killed in the middle
    THEN each is taken or answered 503, and in the end there are twenty groups and ten networks, once each, on ten VLANs."""
    project = f"project-{uuid.uuid4().hex[:8]}"
    networks = [Key(stack.region, project, "network", str(uuid.uuid4())) for _ in range(NUMBER // 4)]
    groups = [
        Key(stack.region, project, "securitygroup", str(uuid.uuid4())) for _ in range(NUMBER - len(networks))
    ]

    def body(key: Key, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        base = {
            "id": key.id,
            "name": stack.name(key.kind),
            "organizationId": ORGANIZATION,
            "projectId": project,
        }
        return {"metadata": {**base, **metadata}, "spec": spec}

    async def crash() -> None:
        await asyncio.sleep(0.05)
        await stack.do(stack.postgres.kill)
        await asyncio.sleep(1.0)
        await stack.do(stack.postgres.start)

    net = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
    bodies = [(key.kind, body(key, net)) for key in networks]
    bodies += [
        (key.kind, body(key, RULES, networkId=networks[number % len(networks)].id))
        for number, key in enumerate(groups)
    ]
    crashing = asyncio.create_task(crash())
    refusals = await asyncio.gather(*(applied(people, project, kind, wish) for kind, wish in bodies))
    await crashing
    assert {status for statuses in refusals for status in statuses} <= set(ALLOWED)
    for key in (*networks, *groups):
        await people.until(key, "provisioned", within=45)
    listed = stack.listed("network", "/v2.0/networks", "networks")
    mine = [n for n in listed if n["name"] in {names.network_name(key.id) for key in networks}]
    assert len(mine) == len({n["provider:segmentation_id"] for n in mine}) == len(networks)
    made = stack.listed("network", "/v2.0/security-groups", "security_groups")
    wanted = sorted(names.security_group_name(key.id) for key in groups)
    assert sorted(g["name"] for g in made if g["name"] in set(wanted)) == wanted
