"""A network and the identity that it brings are made while either service dies at one point after another."""

from collections import Counter
from uuid import UUID, uuid5

from roadstead.cloud import names
from tests.chaos.lives import Point, all_reached, armed
from tests.chaos.stack import People, Stack

NETWORK = (
    Point("store.ingest.before", "network", soak=True),
    Point("store.ingest.after", "network"),
    Point("publish.spec.before", "network"),  # of the identity that it brings
    Point("publish.spec.after", "network", soak=True),
    Point("request.rpc.identity.reference.add.after", "network"),
    Point("store.intend.network.create.after", "network"),
    Point("cloud.network.network.create.during", "network", ("POST", "/networks$")),
    Point("cloud.network.network.create.after", "network"),
    Point("cloud.network.subnet.create.after", "network"),
    Point("cloud.network.router.create.after", "network", soak=True),
    Point("store.finish.before", "network"),
)
IDENTITY = (
    Point("store.intend.project.create.after", "identity", soak=True),
    Point("cloud.identity.project.create.during", "identity", ("POST", "/projects$")),
    Point("cloud.identity.project.create.after", "identity"),
    Point("store.save_record.before", "identity"),
    Point("store.save_record.after", "identity"),
    Point("cloud.identity.user.create.after", "identity"),
    Point("cloud.identity.credential.create.after", "identity"),
    Point("cloud.compute.servergroup.create.after", "identity", soak=True),
    Point("cloud.compute.keypair.create.after", "identity"),
    Point("publish.credential.before", "identity", soak=True),
    Point("publish.credential.after", "identity"),
)
ONE_OF_EACH = {
    "projects": 1, "users": 1, "application_credentials": 1, "server_groups": 1,
    "networks": 1, "subnets": 1, "routers": 1,
}  # fmt: skip


def named(stack: Stack, *wanted: str) -> Counter[str]:
    """How many objects of each kind in the cloud bear one of the names."""
    with stack.cloud.lock:
        dump = stack.admin.call("GET", "/admin/dump")
    return Counter(
        kind
        for kinds in dump.values()
        if isinstance(kinds, dict)
        for kind, listed in kinds.items()
        for item in listed["objects"]
        if item.get("name") in wanted
    )


async def one_life(stack: Stack, people: People, point: Point) -> bool:
    """A network whose network or identity service dies once at the point; whether the point was reached."""
    key = people.key("network")
    hidden = str(uuid5(UUID(key.id), "identity"))
    of_identity = point.service == "identity" or ("spec" in point.where and "publish" in point.where)
    arm = armed(stack, stack.name("net"), point, hidden if of_identity else key.id)
    spec = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
    await people.apply(key, arm.name, spec)
    await people.until(key, "provisioned", within=50)
    await people.until(people.key("identity", hidden), "provisioned", within=20)
    found = named(stack, names.network_name(key.id), names.identity_name(hidden))
    assert found == ONE_OF_EACH, f"{point.where}: {found}"
    return arm.hit(stack.crew.arms) is not None


async def test_inv_266_a_kill_at_each_point_of_a_network_leaves_one_of_each(
    stack: Stack, people: People
) -> None:
    """GIVEN two replicas WHEN the network service dies at a point of a network's create THEN there is one of each object."""
    await all_reached(NETWORK, lambda point: one_life(stack, people, point))


async def test_oc_21_a_kill_at_each_point_of_an_identity_leaves_one_of_each(
    stack: Stack, people: People
) -> None:
    """GIVEN two replicas WHEN the identity service dies at a point of an identity's create THEN there is one of each object."""
    await all_reached(IDENTITY, lambda point: one_life(stack, people, point))
