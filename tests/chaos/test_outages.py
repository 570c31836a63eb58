"""Broker and database go away, come back and come back older while people edit; lines between them and services go bad."""

import asyncio
import shutil
import time
from collections.abc import Callable

import pytest

from roadstead.testing.server_process import ServerProcess
from tests.chaos.edits import Edits
from tests.chaos.stack import People, Stack


def killed(server: ServerProcess, away: float) -> Callable[[], None]:
    def trouble() -> None:

        server.kill()
        time.sleep(away)
        server.start()

    return trouble


async def soon(stack: Stack, work: Callable[[], None]) -> None:
    await asyncio.sleep(0.5)
    await stack.do(work)


async def edited_during(
    stack: Stack, people: People, trouble: Callable[[], None], *, count: int = 6
) -> Edits:
    """Groups that are edited while the trouble lasts, and a server that is made in it; all must come to rest."""
    network = await people.network()
    edits = Edits(stack, people, network, count)
    await edits.everywhere()
    name = stack.name("web")
    server = people.server_key(network, name)
    body = people.server_spec(network)
    making = asyncio.create_task(people.apply(server, name, body, networkId=network.id))
    await edits.during(asyncio.ensure_future(soon(stack, trouble)))
    await making
    await edits.settled()
    await people.until(server, "provisioned", within=40)
    assert [len(x(server.id)) for x in (stack.servers, stack.ports, stack.addresses)] == [1, 1, 1]
    return edits


async def test_k12_a_broker_restarted_in_order_loses_and_doubles_nothing(
    stack: Stack, people: People
) -> None:
    """GIVEN edits under way WHEN the broker is ended by SIGTERM and started THEN the newest wishes are in force, once."""
    await edited_during(stack, people, stack.nats.restart)


async def test_k12_a_broker_killed_loses_and_doubles_nothing(stack: Stack, people: People) -> None:
    """GIVEN edits under way WHEN the broker is killed and away for two seconds THEN the newest wishes are in force, once."""
    await edited_during(stack, people, killed(stack.nats, 2.0))


async def test_k13_a_database_restarted_in_order_loses_and_doubles_nothing(
    stack: Stack, people: People
) -> None:
    """GIVEN edits under way WHEN the database is ended and started THEN the newest wishes are in force, once."""
    await edited_during(stack, people, stack.postgres.restart)


async def test_k13_a_database_killed_loses_and_doubles_nothing(stack: Stack, people: People) -> None:
    """GIVEN edits under way WHEN the database is killed and away for two seconds THEN the newest wishes are in force, once."""
    await edited_during(stack, people, killed(stack.postgres, 2.0))


@pytest.mark.parametrize("what", ["late", "cut", "stalled"])
async def test_k7_a_replica_behind_a_bad_line_disturbs_nothing(
    stack: Stack, people: People, what: str
) -> None:
    """GIVEN one replica of each service behind a bad line WHEN it is late, cut again and again, or silent for longer than
    a lease THEN the other one's work and its own never meet: one of each object, the newest wishes in force."""
    lines = (stack.bus_line, stack.database_line)

    def trouble() -> None:

        for line in lines:
            line.latency = 0.05 if what == "late" else 0.0
            if what == "stalled":
                stack.lines.do(line.stall(True))
        for _ in range(4):
            time.sleep(1.0)
            if what == "cut":
                for line in lines:
                    stack.lines.do(line.cut())
        for line in lines:
            line.latency = 0.0
            stack.lines.do(line.stall(False))

    await edited_during(stack, people, trouble)
    stack.crew.ready(30)


async def test_architecture_3_2_a_broker_restored_from_an_older_copy_takes_nothing_back(
    stack: Stack, people: People
) -> None:
    """GIVEN edits after a copy of the broker's store was made WHEN that copy is put in place
    THEN the newest accepted wishes stay in force, no object is made again, and new edits are taken."""
    network = await people.network()
    edits = Edits(stack, people, network, 4)
    await edits.everywhere()
    await edits.settled()
    store, copy = stack.nats.directory / "store", stack.nats.directory / "copy"
    shutil.rmtree(copy, ignore_errors=True)

    def take_copy() -> None:
        stack.nats.stop()
        shutil.copytree(store, copy)
        stack.nats.start()

    await stack.do(take_copy)
    await edits.everywhere()
    await edits.everywhere()
    late = Edits(stack, people, network, 2)  # made after the copy: the stream knows nothing of them
    await late.everywhere()
    await edits.settled()
    await late.settled()

    def put_back() -> None:
        stack.nats.kill()
        shutil.rmtree(store)
        copy.rename(store)
        stack.nats.start()

    mark, end = stack.cloud.sequence + 1, await people.end_of("SPEC")
    await stack.do(put_back)
    assert await people.end_of("SPEC") < end
    await edits.settled()
    await late.settled()
    writes = [w for w in stack.writes(mark) if w.path.endswith("/security-groups")]
    assert writes == []
    await edits.everywhere()
    await late.everywhere()
    await edits.settled()
    await late.settled()
    assert [m.fault() for m in stack.crew.members] == [None] * len(stack.crew.members)
