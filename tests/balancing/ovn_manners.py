"""A provider for tests that takes and refuses what OVN takes and refuses, and carries nothing out.

`python -m tests.balancing.ovn_manners`: the noop provider under the name `ovn`, with the OVN worker's rules for what it checks.
"""

import asyncio
import signal
from collections.abc import Mapping
from typing import Any

import orjson
import uvloop
from nats.aio.msg import Msg

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.rights import inbox_of, provider_user
from roadstead.bus.tasks import end_all
from roadstead.settings import load_settings
from roadstead_octavia.provider.noop.driver import Manner
from roadstead_octavia.provider.noop.process import NoopProvider
from roadstead_ovn.check import check

NAME = "ovn"


class OvnManners(NoopProvider):
    """VIP ports are left to the API."""

    async def _asked(self, message: Msg) -> None:
        method = message.subject.rpartition(".")[2]
        if method != "check":
            await super()._asked(message)
            return
        request: Mapping[str, Any] = orjson.loads(message.data)
        refusal = check(request["method"], request["arguments"])
        told: dict[str, Any] = {"ok": True}
        if refusal is not None:
            told = {"error": {"class": refusal.kind, "user": refusal.text, "operator": refusal.text}}
        await message.respond(orjson.dumps(told))


async def serve() -> None:
    """Until SIGTERM or SIGINT."""
    settings, user = load_settings(), provider_user(NAME)
    bus = Bus(
        BusOptions(
            tuple(settings.nats_url), f"roadstead-{user}-{settings.replica}", inbox_prefix=inbox_of(user)
        )
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await bus.connect()
    manner = Manner(refuses={"create_vip_port": "NotImplemented"})
    work = asyncio.create_task(OvnManners(bus, NAME, manner).run())
    await asyncio.wait({work, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    await end_all([work])
    await bus.close()


if __name__ == "__main__":
    uvloop.run(serve())
