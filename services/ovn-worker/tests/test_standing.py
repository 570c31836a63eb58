"""A worker waits until what it stands on has answered, and says what has not."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import structlog

from roadstead.bus.tasks import end_all
from roadstead_ovn.network import NetworkRefused, NoNetwork
from roadstead_ovn.northbound.model import Faults
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.wire import Bounds
from roadstead_ovn.standing import Standing

from . import virtual
from .model_region import Copy, ModelRegion


class Keystone(ModelRegion):
    """refuses: what is said to every question."""

    refuses: NetworkRefused | None = None

    async def subnets(self, identifiers: Sequence[str]) -> Any:
        if self.refuses is not None:
            raise self.refuses
        return await super().subnets(identifiers)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (NetworkRefused(None, "the network service cannot be asked: Unauthorized"), "ROADSTEAD_OVN_USERNAME"),
        (
            NetworkRefused(None, "the network service cannot be asked: ConnectFailure"),
            "ROADSTEAD_OVN_AUTH_URL",
        ),
    ],
)
def test_nothing_is_taken_until_the_network_service_has_answered(error: NetworkRefused, named: str) -> None:
    async def story() -> None:
        region = Keystone()
        region.refuses = error
        standing = Standing(Copy(region, Faults()), region, lambda: None)
        watching = asyncio.create_task(standing.run())
        waiting = asyncio.create_task(standing.all_there())
        with structlog.testing.capture_logs() as said:
            await asyncio.sleep(300)
            assert not waiting.done()
            assert named in str(standing.network_fault)
            lines = [x for x in said if x["log_level"] == "error"]
            assert 4 <= len(lines) <= 6
            assert all(x["part"] == "network service" and named in x["reason"] for x in lines)
            region.refuses = None
            await asyncio.sleep(31)
            assert waiting.done()
            assert standing.network_fault is None
            region.refuses = error  # once it has answered, its trouble is everybody's
            await asyncio.sleep(300)
            assert standing.network_fault is None
        await end_all([watching, waiting])

    virtual.run(story())


def test_databases_that_are_away_are_told_once_a_minute_and_a_short_loss_is_not() -> None:
    async def story() -> None:
        copy = Copy(ModelRegion(), Faults())
        reason = "tcp:192.0.2.1:6641: no connection"
        standing = Standing(copy, NoNetwork(), lambda: None if copy.is_ready() else reason)
        watching = asyncio.create_task(standing.run())
        with structlog.testing.capture_logs() as said:
            copy.cut()
            await asyncio.sleep(2)
            copy.mend()
            await asyncio.sleep(10)
            assert said == []
            copy.cut()
            await asyncio.sleep(100)
            assert [x["reason"] for x in said] == [reason, reason]
            waiting = asyncio.create_task(standing.all_there())
            await asyncio.sleep(1)
            assert not waiting.done()
            copy.mend()
            await asyncio.sleep(2)
            assert waiting.done()
            assert said[-1]["event"] == "it is there again"
        await end_all([watching, waiting])

    virtual.run(story())


async def test_a_fault_of_the_databases_names_address_and_setting() -> None:
    bounds = Bounds(first_retry=0.05, longest_retry=0.1)

    async def keep_silent(*_: Any) -> None:
        await asyncio.Event().wait()

    silent = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    away, there = Server(("tcp:127.0.0.1:1",), None), Server((f"tcp:127.0.0.1:{port}",), None)
    northbound = OvsdbNorthbound(Servers(away, there, bounds))
    await northbound.start()
    try:
        await asyncio.sleep(0.7)
        found = str(northbound.fault())
    finally:
        await northbound.close()
        silent.close()
    assert (
        "tcp:127.0.0.1:1: no connection to OVN_Northbound can be made (ROADSTEAD_OVN_NB_CONNECTION)" in found
    )
    assert f"tcp:127.0.0.1:{port}: connected, and no copy of OVN_Southbound is given" in found
