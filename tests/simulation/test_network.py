"""Networks and security groups through the whole product on virtual time."""

from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_network.__main__ import SERVICE as NETWORK

NET = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
RULES = {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}]}


def test_ref_024_a_network_brings_its_hidden_identity_and_takes_it_away() -> None:
    async def scenario() -> None:
        async with SimWorld.running((IDENTITY, NETWORK)) as world:
            await world.register()
            before = Admin(world.cloud).objects()
            network = await world.apply(world.key("network"), "net-1", NET)
            document = await world.until(network, "provisioned")
            group = await world.apply(world.key("securitygroup"), "web", RULES, networkId=network.id)
            await world.until(group, "provisioned")
            identity = document["metadata"]["identityId"]
            assert world.provisioning(world.key("identity", identity)) == "provisioned"
            await world.delete(network, cascade=True)
            await world.until(network, "gone")
            assert world.provisioning(group) == "gone"
            await world.until(world.key("identity", identity), "gone")
            left = {k for k, _ in Admin(world.cloud).objects() - before}
            assert left <= {"security_groups"}, left

    run_virtual(scenario())
