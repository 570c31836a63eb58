"""Somebody who edits security groups all the time, and what must hold of them afterwards."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from roadstead.cloud import names
from roadstead.subjects import Key
from tests.chaos.stack import People, Stack, eventually


@dataclass
class Edited:
    """One group and what was wanted of it, newest last."""

    key: Key
    name: str
    network: Key
    wanted: list[int] = field(default_factory=list)  # the one port that is let in

    def spec(self) -> dict[str, Any]:
        number = self.wanted[-1]
        return {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": number}}]}


class Edits:
    """Some groups on one network."""

    def __init__(self, stack: Stack, people: People, network: Key, count: int) -> None:
        self.stack = stack
        self.people = people
        self.groups = [
            Edited(people.key("securitygroup"), stack.name("group"), network) for _ in range(count)
        ]
        self._chance = random.Random(count)

    async def once(self, group: Edited) -> None:
        group.wanted.append(self._chance.randint(1, 65535))
        await self.people.apply(group.key, group.name, group.spec(), networkId=group.network.id)

    async def everywhere(self) -> None:
        await asyncio.gather(*(self.once(group) for group in self.groups))

    async def for_ever(self, every: float = 0.15) -> None:
        """Until cancelled; each edit was acknowledged by the broker before the next one is sent."""
        while True:
            await self.everywhere()
            await asyncio.sleep(every)

    async def during(self, trouble: "asyncio.Future[Any]") -> None:
        """Edit until the trouble is over, and once more after it."""
        editing = asyncio.create_task(self.for_ever())
        try:
            await trouble
        finally:
            editing.cancel()
            await asyncio.gather(editing, return_exceptions=True)
        await self.everywhere()

    async def settled(self, within: float = 40.0) -> None:
        """Every group reads provisioned with its newest wish, and the cloud has exactly that, once."""
        for group in self.groups:

            async def is_there(group: Edited = group) -> bool:
                held = await self.held(group)
                return held is not None and held[0] == "provisioned" and held[1] == group.wanted[-1]

            try:
                await eventually(is_there, within)
            except TimeoutError:
                held = await self.held(group)
                raise AssertionError(
                    f"{group.name} is {held}, wanted {group.wanted[-1]} of {len(group.wanted)}"
                ) from None
            assert self.in_cloud(group) == [[group.wanted[-1]]]

    async def held(self, group: Edited) -> tuple[str, int] | None:
        """(how it stands, the port wanted) as its service says by request."""
        reply = await self.people.ask(
            f"api.{group.key.region}.{group.key.project}.securitygroup.get", {"id": group.key.id}
        )
        document = reply.get("resource", reply)
        status = document["status"]
        settled = status.get("observedGeneration") == document["metadata"]["generation"]
        state = str(status.get("provisioningStatus")) if settled else "provisioning"
        return state, int(document["spec"]["rules"][0]["port"]["number"])

    def in_cloud(self, group: Edited) -> list[list[int]]:
        """For each cloud group of that name the ports that its own rules let in."""
        listed = self.stack.listed("network", "/v2.0/security-groups", "security_groups")
        return [
            sorted(r["port_range_min"] for r in found["security_group_rules"] if r["port_range_min"])
            for found in listed
            if found["name"] == names.security_group_name(group.key.id)
        ]
