"""SIGTERM: what runs ends or is given back within the drain time, and the other replica takes over at once."""

import asyncio
import time

from roadstead.clock import Durations
from roadstead.subjects import Key
from tests.chaos.crew import Member
from tests.chaos.stack import PACE, People, Stack, eventually

DRAIN = Durations().drain * PACE
ENDING = 6.0  # seconds for what follows the drain: outbox, broker, database
LEASE = Durations().call_deadline * PACE  # a lease is held at least that long before a creating call


async def under_way(stack: Stack, people: People, slow: float) -> tuple[Key, Member]:
    """A server whose POST the cloud answers late; its key, and the replica that waits for the answer."""
    network = await people.network()
    name = stack.name("web")
    key = people.server_key(network, name)
    stack.trouble("slow", service="compute", method="POST", path="/servers$", body=key.id, delay=slow)
    await people.apply(key, name, people.server_spec(network, public=False), networkId=network.id)

    async def asked() -> bool:
        return bool(stack.made("/servers$", key.id))

    await eventually(asked, 20, every=0.02)
    owner = stack.postgres.execute(f"SELECT lease_owner FROM compute.work WHERE id = '{key.id}'")
    return key, next(m for m in stack.crew.of("compute") if owner == f"compute-{m.name}")


async def ended(stack: Stack, member: Member) -> tuple[int, float]:
    """(exit status, seconds) of an ending by SIGTERM."""
    began = time.monotonic()
    status = await asyncio.to_thread(stack.crew.terminate, member, DRAIN + ENDING)
    return status, time.monotonic() - began


async def test_a_pass_that_ends_within_the_drain_is_written_before_the_process_goes(
    stack: Stack, people: People
) -> None:
    """GIVEN a pass that waits a second for the cloud WHEN its process gets SIGTERM
    THEN the process ends with status 0, the pass was written, and the other replica goes on."""
    key, member = await under_way(stack, people, slow=1.0)
    try:
        status, seconds = await ended(stack, member)
        assert status == 0
        assert seconds < DRAIN + ENDING
        row = stack.postgres.execute(
            f"SELECT coalesce(lease_owner, '') FROM compute.work WHERE id = '{key.id}'"
        )
        assert row in ("", *(f"compute-{m.name}" for m in stack.crew.of("compute") if m is not member))
        await people.until(key, "provisioned", within=LEASE)
    finally:
        stack.crew.start(member)
    assert len(stack.servers(key.id)) == 1


async def test_a_pass_that_outlives_the_drain_is_given_back_and_taken_over_at_once(
    stack: Stack, people: People
) -> None:
    """GIVEN a POST that the cloud answers long after the drain WHEN its process gets SIGTERM
    THEN the lease is given back at the drain's end, and the server is adopted: one, asked for once."""
    key, member = await under_way(stack, people, slow=DRAIN + 4.0)
    try:
        ending = asyncio.create_task(ended(stack, member))
        taken = await eventually(lambda: other_owner(stack, key, member), DRAIN + 1.5, every=0.02)
        assert taken
        status, _ = await ending
        assert status == 0
        await people.until(key, "provisioned", within=30)
    finally:
        stack.crew.start(member)
    assert len(stack.servers(key.id)) == 1
    assert len(stack.made("/servers$", key.id)) == 1


async def other_owner(stack: Stack, key: Key, member: Member) -> bool:
    """Whether the row is free or held by another replica."""
    owner = await asyncio.to_thread(
        stack.postgres.execute, f"SELECT coalesce(lease_owner, '') FROM compute.work WHERE id = '{key.id}'"
    )
    return owner != f"compute-{member.name}"
