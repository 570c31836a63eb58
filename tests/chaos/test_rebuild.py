"""Either side from the other: streams that were deleted, a database that was dropped; nothing is made twice, nothing is lost."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from roadstead.cli.context import Context
from roadstead.cli.rebuilding import rebuild_from_bus, rebuild_from_database
from roadstead.store.migrate import migrate
from roadstead.subjects import Key
from roadstead.testing.paced import paced_environment
from tests.chaos.stack import SERVICES, People, Stack, eventually

STREAMS = ("SPEC", "STATUS", "CREDENTIAL")
KEPT = ("metadata", "spec", "consumers", "references", "everProvisioned", "paused")
REST = 40.0


class Estate:
    """One of everything, with what must be the same after a rebuild."""

    def __init__(self, stack: Stack, people: People) -> None:
        self.stack = stack
        self.people = people
        self.keys: dict[str, Key] = {}

    async def build(self) -> None:
        people, stack = self.people, self.stack
        network = self.keys["network"] = await people.network()
        group = self.keys["group"] = await people.group(network)
        volume_spec = {"networkID": network.id, "volumeClassID": stack.volume_class(), "size": "2Gi"}
        volume = await people.apply(people.key("volume"), stack.name("data"), volume_spec)
        name = stack.name("web")
        spec = {**people.server_spec(network, [group]), "volumes": [{"id": volume.id}]}
        server = await people.apply(people.server_key(network, name), name, spec)
        listener = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": []}}
        balancer = await people.apply(
            people.key("loadbalancer"), stack.name("front"), {"listeners": [listener]}, networkId=network.id
        )
        self.keys |= {"volume": volume, "server": server, "balancer": balancer}
        self.keys["identity"] = people.key("identity", await self.identity())
        for key in self.keys.values():
            await people.until(key, "provisioned")
        paused = await people.group(network)
        await people.until(paused, "provisioned")
        await people.ask(self._api(paused, "pause"), {"id": paused.id})
        self.keys["paused"] = paused

    async def identity(self) -> str:
        document = await self.people.status(self.keys["network"])
        assert document is not None
        return str(document["metadata"]["identityId"])

    def _api(self, key: Key, verb: str) -> str:
        return f"api.{key.region}.{key.project}.{key.kind}.{verb}"

    async def told(self) -> dict[str, Any]:
        """What the services say of each resource, of the identity's credentials, and the VLAN table."""
        said: dict[str, Any] = {}
        for name, key in self.keys.items():
            document = await self.people.ask(self._api(key, "get"), {"id": key.id})
            said[name] = {part: document.get(part) for part in KEPT}
            said[name]["claim"] = document["status"].get("claimRef")
        identity = self.keys["identity"]
        said["credentials"] = await self.people.ask(self._api(identity, "credentials"), {"id": identity.id})
        query = f"SELECT body FROM network.document WHERE name = 'vlan.{self.stack.region}'"
        said["vlan"] = json.loads(self.stack.postgres.execute(query))
        return said

    async def rest(self) -> None:
        async def still() -> bool:
            return await asyncio.to_thread(self.stack.due) == 0

        await eventually(still, REST)

    async def holds_after(self, before: dict[str, Any], mark: int) -> None:
        """Every resource passes again without a write, is as it was, can be edited, and goes without a trace."""
        await asyncio.to_thread(self.stack.wake)
        await self.rest()
        assert [(w.method, w.path) for w in self.stack.writes(mark)] == []
        assert await self.told() == before
        for key in self.keys.values():
            assert await self.people.state(key) == "provisioned"
        rules = {"rules": [{"direction": "ingress", "protocol": "udp", "port": {"number": 53}}]}
        group = self.keys["group"]
        name = before["group"]["metadata"]["name"]
        await self.people.apply(group, name, rules, networkId=self.keys["network"].id)

        async def edited() -> bool:
            document = await self.people.status(group)
            taken = document is not None and document["spec"]["rules"][0]["protocol"] == "udp"
            return taken and await self.people.state(group) == "provisioned"

        await eventually(edited, REST)
        paused = self.keys["paused"]
        await self.people.ask(self._api(paused, "resume"), {"id": paused.id})
        await self.people.delete(self.keys["network"], cascade=True)
        await self.people.until(self.keys["network"], "gone", within=50)
        left = [
            n
            for n in self.stack.listed("network", "/v2.0/networks", "networks")
            if self.keys["network"].id in n["name"]
        ]
        assert left == []


@pytest.fixture
def context(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Context:
    """How an operator reaches the stack."""
    for name, value in paced_environment(0.1).items():
        monkeypatch.setenv(name, value)
    file = Path(stack.folder) / "seal.keys"
    file.write_text(stack.seal_key + "\n")
    return Context("chaos", stack.nats.url, database_url=stack.postgres.url, seal_key_file=str(file))


@pytest.mark.timeout(150)
async def test_architecture_5_lost_streams_come_back_from_the_database(
    stack: Stack, people: People, context: Context
) -> None:
    """GIVEN one of everything WHEN the streams of specs, statuses and credentials are deleted and rebuilt
    THEN nothing is written to the cloud, all that was known is known, edits are taken, and a cascade ends all."""
    estate = Estate(stack, people)
    await estate.build()
    await estate.rest()
    before = await estate.told()
    mark = stack.cloud.sequence + 1
    await asyncio.to_thread(stack.services_down)
    for name in STREAMS:
        await people.client.jetstream().delete_stream(name)
    counts = await rebuild_from_database(context, SERVICES, dry_run=False)
    assert counts["compute"]["specs"] >= 1
    assert sum(count["credentials"] for count in counts.values()) >= 2
    await asyncio.to_thread(stack.services_up)
    await estate.holds_after(before, mark)


@pytest.mark.timeout(150)
async def test_architecture_5_a_lost_database_comes_back_from_the_streams(
    stack: Stack, people: People, context: Context
) -> None:
    """GIVEN one of everything WHEN every schema is dropped, migrated and rebuilt from the streams
    THEN nothing is written to the cloud, all that was known is known, edits are taken, and a cascade ends all."""
    estate = Estate(stack, people)
    await estate.build()
    await estate.rest()
    before = await estate.told()
    mark = stack.cloud.sequence + 1
    await asyncio.to_thread(stack.services_down)
    for service in SERVICES:
        stack.postgres.execute(f"DROP SCHEMA {service} CASCADE")
    await migrate(stack.postgres.url, SERVICES)
    counts = await rebuild_from_bus(context, SERVICES, dry_run=False)
    assert counts["compute"]["rows"] >= 1
    assert sum(count["unreadable"] for count in counts.values()) == 0
    await asyncio.to_thread(stack.services_up)
    await estate.holds_after(before, mark)
