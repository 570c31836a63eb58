"""A server is made while its service dies at one point after another: one server, one port, one address, whatever the point.

Every second replica hears a quarter of its messages twice and late.  Points run side by side, each on a server of its own: the
deaths of one disturb the others, as they would.
"""

import asyncio
import signal

import pytest

from roadstead.subjects import Key
from tests.chaos.lives import Point, all_reached, armed
from tests.chaos.points import Arm
from tests.chaos.stack import People, Stack, eventually

INGEST = (
    Point("store.ingest.before"),
    Point("store.ingest.after"),
    Point("ack.spec.before"),
    Point("ack.spec.after"),
    Point("store.claim.after"),
)
REFERENCES = (
    Point("store.granted.before"),
    Point("request.rpc.network.reference.add.before"),
    Point("request.rpc.network.reference.add.after"),
    Point("request.rpc.identity.reference.add.before"),
    Point("store.reference_add.before", "network"),
    Point("store.reference_add.after", "network"),
    Point("store.reference_add.after", "identity"),
)
PORT = (
    Point("store.intend.port.create.before"),
    Point("store.intend.port.create.after"),
    Point("cloud.network.port.create.before"),
    Point("cloud.network.port.create.during", slow=("POST", "/ports$")),
    Point("cloud.network.port.create.after"),
    Point("store.intend.floatingip.create.before"),
    Point("cloud.network.floatingip.create.during", slow=("POST", "/floatingips$")),
    Point("cloud.network.floatingip.create.after"),
)
SERVER = (
    Point("store.intend.server.create.before"),
    Point("store.intend.server.create.after"),
    Point("cloud.compute.server.create.before"),
    Point("cloud.compute.server.create.during", slow=("POST", "/servers$")),
    Point("cloud.compute.server.create.after"),
    Point("store.finish.server.create.before"),
    Point("store.finish.server.create.after"),
    Point("publish.status.before"),
    Point("publish.status.after"),
    Point("store.outbox_done.before"),
)


async def one_life(stack: Stack, people: People, network: Key, group: Key, point: Point) -> bool:
    """A server whose service dies once at the point; whether the point was reached, which another death may prevent."""
    name = stack.name("web")
    key = people.server_key(network, name)
    arm = armed(stack, name, point, key.id)
    body = people.server_spec(network, [group])
    await people.apply(key, name, body, networkId=network.id)
    await people.apply(key, name, body, networkId=network.id)  # the same once more changes nothing
    await people.until(key, "provisioned", within=50)
    document = await people.status(key)
    assert document is not None
    counts = (len(stack.servers(key.id)), len(stack.ports(key.id)), len(stack.addresses(key.id)))
    assert counts == (1, 1, 1), f"{point.where}: {counts} of servers, ports, addresses"
    assert len(stack.made("/servers$", key.id)) == 1, f"{point.where}: asked for more than one server"
    assert document["metadata"]["generation"] == 1, f"{point.where}: the same spec counted as another one"
    return arm.hit(stack.crew.arms) is not None


@pytest.mark.parametrize(
    "points",
    [INGEST + REFERENCES, PORT, SERVER],
    ids=["before_the_first_write", "port_and_address", "server_and_status"],
)
async def test_oc_21_a_kill_at_each_point_of_a_create_leaves_one_of_each(
    stack: Stack, people: People, points: tuple[Point, ...]
) -> None:
    """GIVEN two replicas of every service WHEN one is killed at a point of a server's create
    THEN the server is provisioned, with exactly one server, port and floating IP in the cloud."""
    network = await people.network()
    group = await people.group(network)
    await people.until(group, "provisioned")
    await all_reached(points, lambda point: one_life(stack, people, network, group, point))


async def test_a_frozen_process_sends_nothing_when_it_thaws(stack: Stack, people: People) -> None:
    """GIVEN a process that stops right before its POST WHEN the other replica made the server meanwhile
    THEN the thawed one finds its lease gone and asks for nothing."""
    network = await people.network()
    name = stack.name("web")
    key = people.server_key(network, name)
    arm = Arm(name, "cloud.compute.server.create.before", key.id, "compute", action="stop")
    arm.put(stack.crew.arms)
    await people.apply(key, name, people.server_spec(network, public=False), networkId=network.id)

    async def frozen() -> int | None:
        return arm.hit(stack.crew.arms)

    pid = await eventually(frozen, 20)
    member = next(m for m in stack.crew.members if m.pid == pid)
    try:
        await people.until(key, "provisioned", within=40)
    finally:
        member.signal(signal.SIGCONT)
    await asyncio.sleep(2)
    assert len(stack.made("/servers$", key.id)) == 1
    assert len(stack.servers(key.id)) == 1
    assert await people.state(key) == "provisioned"
