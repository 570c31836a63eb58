"""first light"""

import time
from tests.chaos.stack import People, Stack


async def test_server(stack: Stack, people: People) -> None:
    began = time.monotonic()
    network = await people.network()
    print("network", time.monotonic() - began)
    group = await people.group(network)
    name = stack.name("web")
    key = people.server_key(network, name)
    await people.apply(key, name, people.server_spec(network, [group]), networkId=network.id)
    await people.until(key, "provisioned")
    print("server", time.monotonic() - began)
    assert len(stack.servers(key.id)) == 1
    assert len(stack.ports(key.id)) == 1
    assert len(stack.addresses(key.id)) == 1
