"""A broker that goes away and comes back: nothing is lost, everything goes on by itself."""

import asyncio
import os
import signal
from typing import Any

import pytest

from roadstead.testing.servers import NatsServer

from .conftest import Rig, client_of, eventually, new_id, spec_body, subject_of

pytestmark = pytest.mark.integration


async def test_consuming_publishing_and_requests_go_on_after_a_kill(own_nats: NatsServer) -> None:
    rig = Rig(own_nats.url)
    await rig.start()
    try:
        for round_number in range(3):
            own_nats.kill()
            await asyncio.sleep(0.2)
            own_nats.start()
            ident, asked = new_id(), new_id()
            async with client_of(own_nats.url) as client:
                await client.jetstream().publish(subject_of(ident), spec_body("red"), timeout=5)
                await eventually(lambda ident=ident: rig.row(ident), what=f"consumed in round {round_number}")
                await rig.ready()
                reply = await client.request(
                    subject_of(asked, head="api").rsplit(".", 1)[0] + ".get",
                    f'{{"id": "{ident}"}}'.encode(),
                    timeout=5,
                )
                assert b'"red"' in reply.data
                found = await eventually(lambda client=client, ident=ident: _status(client, ident))
                assert found
        assert rig.bus.number == 3
        assert rig.epochs.epoch == 1
    finally:
        await rig.stop()


async def _status(client: Any, ident: str) -> Any:
    from nats.js.errors import NotFoundError

    try:
        return await client.jetstream().get_msg("STATUS", subject=subject_of(ident, head="status"))
    except NotFoundError:
        return None


async def test_a_stalled_broker_is_noticed_and_what_it_takes_later_is_handled(own_nats: NatsServer) -> None:
    rig = Rig(own_nats.url)
    await rig.start()
    try:
        os.kill(own_nats.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: rig.bus.number >= 1, seconds=15, what="the stall is noticed")
            assert await rig.bus.answers(0.5) is False
        finally:
            os.kill(own_nats.pid, signal.SIGCONT)
        ident = new_id()
        async with client_of(own_nats.url) as client:
            await client.jetstream().publish(subject_of(ident), spec_body("red"), timeout=5)
        await eventually(lambda: rig.row(ident))
    finally:
        await rig.stop()


async def test_a_service_waits_for_a_broker_that_is_not_there_yet(own_nats: NatsServer) -> None:
    own_nats.stop()
    rig = Rig(own_nats.url)
    starting = asyncio.create_task(rig.start())
    await asyncio.sleep(1)
    assert not starting.done()
    own_nats.start()
    await asyncio.wait_for(starting, 20)
    await rig.stop()


async def test_a_consumer_that_somebody_deleted_is_made_again(own_nats: NatsServer) -> None:
    rig = Rig(own_nats.url)
    await rig.start()
    try:
        async with client_of(own_nats.url) as client:
            await client.jetstream().delete_consumer("SPEC", "volumes-spec")
            ident = new_id()
            await client.jetstream().publish(subject_of(ident), spec_body("red"))
            await eventually(lambda: rig.row(ident))
    finally:
        await rig.stop()


async def test_a_stream_that_somebody_deleted_is_made_again_as_another_life(own_nats: NatsServer) -> None:
    rig = Rig(own_nats.url)
    await rig.start()
    try:
        async with client_of(own_nats.url) as client:
            ident = new_id()
            await client.jetstream().publish(subject_of(ident), spec_body("red"))
            await eventually(lambda: rig.row(ident))
            await client.jetstream().delete_stream("SPEC")
            await eventually(lambda: rig.epochs.epoch == 2)
            await rig.ready()
            await client.jetstream().publish(subject_of(ident), spec_body("blue"))

            async def blue() -> bool:
                return await rig.colour(ident) == "blue"

            await eventually(blue)
    finally:
        await rig.stop()
