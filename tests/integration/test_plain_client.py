"""A person with a plain NATS client: bare JSON bodies, no headers, nothing of ours but the subject."""

import asyncio
import json
import uuid
from typing import Any

import nats
from tests.world.adapter_stack import StackScenario
from tests.world.base import Ref

NETWORK = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}


async def test_a_bare_body_is_realised_and_the_same_again_changes_nothing(world: StackScenario) -> None:
    """GIVEN a plain client WHEN it publishes a bare spec THEN it is realised; the same body again is no edit and no write."""
    client = await nats.connect(world.session.stack.nats.url)
    heard: list[dict[str, Any]] = []

    async def hear(message: Any) -> None:
        heard.append(json.loads(message.data))

    try:
        network = Ref(world.key("network"), world.name("net"), NETWORK)
        world.applied.append(network)
        subject = f"spec.{world.region}.{world.project}.network.{network.id}"
        await client.subscribe(f"status.{world.region}.{world.project}.network.{network.id}", cb=hear)
        metadata = {"name": network.name, "organizationId": world.organization, "projectId": world.project}
        body = json.dumps({"metadata": metadata, "spec": NETWORK}).encode()
        await client.publish(subject, body)  # no headers, no acknowledgement asked for
        await world.until(network, "provisioned")
        await asyncio.sleep(0.5)
        generation = world.document(network)["metadata"]["generation"]
        await world.mark(network)
        await client.publish(subject, body)
        await world.quiet_pass(network)
        assert world.document(network)["metadata"]["generation"] == generation == 1
        assert await world.writes(network) == []
        words = [d["status"]["provisioningStatus"] for d in heard]
        assert words[0] == "provisioning"
        assert "provisioned" in words
        versions = [d["resourceVersion"] for d in heard]
        assert versions == sorted(set(versions))
        assert len(await world.cloud.network_objects("networks", name=f"network-{network.id}")) == 1
    finally:
        await client.close()


async def test_a_message_published_twice_under_one_id_is_one_message(world: StackScenario) -> None:
    """GIVEN a publisher that got no answer WHEN it sends the same message id again THEN the stream keeps one."""
    ref = Ref(world.key("identity"), world.name("team"), {"provider": "openstack"})
    world.applied.append(ref)
    subject = f"spec.{world.region}.{world.project}.identity.{ref.id}"
    body = json.dumps(
        {"metadata": {"name": ref.name, "organizationId": world.organization}, "spec": dict(ref.spec)}
    ).encode()
    headers = {"Nats-Msg-Id": str(uuid.uuid4())}
    first = await world.session.js.publish(subject, body, headers=headers)
    again = await world.session.js.publish(subject, body, headers=headers)
    assert (again.seq, again.duplicate) == (first.seq, True)
    await world.until(ref, "provisioned")
    assert world.document(ref)["metadata"]["generation"] == 1


async def test_an_edit_with_an_outdated_expectation_is_refused_by_the_broker(world: StackScenario) -> None:
    """GIVEN two editors WHEN the second expects what the first has replaced THEN its publish fails and nothing changes."""
    ref = await world.settled("identity", world.name("team"), {"provider": "openstack"})
    subject = f"spec.{world.region}.{world.project}.identity.{ref.id}"
    seen = world.document(ref)["specPosition"]["sequence"]
    body = json.dumps(
        {"metadata": {"name": "renamed", "organizationId": world.organization}, "spec": dict(ref.spec)}
    )
    expected = {"Nats-Expected-Last-Subject-Sequence": str(seen)}
    await world.session.js.publish(subject, body.encode(), headers=expected)
    refused = None
    try:
        await world.session.js.publish(subject, body.encode(), headers=expected)
    except nats.js.errors.APIError as error:
        refused = error
    assert refused is not None
    assert refused.err_code == 10071
    await world.until(ref, when=lambda d: d["metadata"]["name"] == "renamed")
