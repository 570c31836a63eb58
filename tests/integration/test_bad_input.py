"""Every sort of bad input on the real bus: its answer, and that the accepted spec stays in force."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import nats
import pytest
from tests.world.adapter_stack import StackScenario
from tests.world.base import Ref

from roadstead.subjects import OWNERS, spec_subject

NETWORK: dict[str, Any] = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}


def body(world: StackScenario, spec: Any = NETWORK, **metadata: Any) -> bytes:
    told = {"name": "net", "organizationId": world.organization, "projectId": world.project, **metadata}
    return json.dumps({"metadata": told, "spec": spec}).encode()


async def dead_letter(world: StackScenario, sequence: int) -> tuple[str, dict[str, str], bytes]:
    """Subject, headers and body of the dead letter of one SPEC message."""
    js = world.session.js

    async def look() -> Any:
        state = (await js.stream_info("DLQ")).state
        for number in range(state.first_seq or 1, (state.last_seq or 0) + 1):
            message = await js.get_msg("DLQ", seq=number)
            if (message.headers or {}).get("Roadstead-Sequence") == str(sequence):
                return str(message.subject), dict(message.headers or {}), message.data or b""
        return None

    found: tuple[str, dict[str, str], bytes] = await world.eventually(
        look, f"dead letter of message {sequence}"
    )
    return found


BAD_BODIES: dict[str, tuple[Callable[[StackScenario], bytes], str]] = {
    "not JSON": (lambda w: b"{hello", "NOT_JSON"),
    "not UTF-8": (lambda w: b'{"spec": "\xff\xfe"}', "NOT_JSON"),
    "a list": (lambda w: b"[1, 2]", "NOT_AN_OBJECT"),
    "empty": (lambda w: b"", "NOT_JSON"),
    "no spec": (lambda w: b'{"metadata": {"name": "x"}}', "BAD_ENVELOPE"),
    "metadata is a text": (lambda w: b'{"metadata": "x", "spec": {}}', "BAD_ENVELOPE"),
    "delete is a text": (lambda w: b'{"delete": "yes"}', "BAD_ENVELOPE"),
    "wrong types": (lambda w: body(w, {"prefix": 7, "dnsNameservers": "one"}), "INVALID_FIELD"),
    "no name": (lambda w: body(w, name=""), "NAME_MISSING"),
    "long name": (lambda w: body(w, name="n" * 64), "NAME_TOO_LONG"),
    "no organization": (lambda w: body(w, organizationId=None), "ORGANIZATION_MISSING"),
    "another project": (lambda w: body(w, projectId="project-of-others"), "PROJECT_MISMATCH"),
    "another region": (lambda w: body(w, regionId="00000000-0000-4000-8000-000000000000"), "REGION_MISMATCH"),
    "another id": (lambda w: body(w, id="00000000-0000-4000-8000-000000000000"), "ID_MISMATCH"),
    "changed prefix": (lambda w: body(w, {**NETWORK, "prefix": "10.0.0.0/16"}), "PREFIX_IMMUTABLE"),
    "small prefix": (lambda w: body(w, {**NETWORK, "prefix": "10.0.0.0/25"}), "PREFIX_TOO_SMALL"),
    "too large": (lambda w: body(w, {**NETWORK, "x": "x" * 300_000}), "TOO_LARGE"),
    "10 000 levels": (lambda w: b'{"spec": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "TOO_DEEP"),
    "NUL": (lambda w: body(w, name="a\x00b"), "NUL"),
}


async def test_refused_specs_are_dead_letters_and_the_accepted_one_stays(world: StackScenario) -> None:
    """GIVEN an accepted network WHEN each bad body is published on its subject
    THEN its dead letter bears the reason, status says Accepted=False, nothing is written, and a good edit clears it."""
    network = await world.settled("network", world.name("net"), NETWORK)
    await world.mark(network)
    wrong = {}
    for name, (make, code) in BAD_BODIES.items():
        raw = make(world)
        sequence = await world.publish(network.key, raw)
        subject, headers, kept = await dead_letter(world, sequence)
        told = {d.get("code") for d in json.loads(headers.get("Roadstead-Details", "[]"))}
        if code not in {headers["Roadstead-Reason"], *told}:
            wrong[name] = headers
        assert subject == f"dlq.network.{network.key}"
        assert kept == raw
        await world.until(
            network, when=lambda d: any(c["reason"] == "Refused" for c in d["status"]["conditions"])
        )
        assert world.document(network)["spec"] == NETWORK
        assert world.status(network)["provisioningStatus"] == "provisioned"
    assert not wrong
    assert world.document(network)["metadata"]["generation"] == 1
    assert await world.writes(network) == []
    await world.edit(network, dnsNameservers=["192.0.2.7"])
    await world.until(network, "provisioned")
    assert world.condition(network, "Accepted")["status"] == "True"
    assert await world.writes(network) == ["subnet.update"]


@pytest.mark.parametrize(
    ("tail", "service"),
    [
        ("network.not-a-uuid", "identity"),
        ("network.AAAAAAAA-0000-4000-8000-000000000000", "identity"),
        ("gadget.00000000-0000-4000-8000-000000000000", "identity"),
        ("network", "identity"),
    ],
)
async def test_subjects_that_name_nothing_are_dead_letters(
    world: StackScenario, tail: str, service: str
) -> None:
    """GIVEN a subject with a bad id, an unknown kind or too few tokens THEN the message ends with the dead letters."""
    subject = f"spec.{world.region}.{world.project}.{tail}"
    ack = await world.session.js.publish(subject, body(world))
    where, headers, _ = await dead_letter(world, ack.seq)
    assert headers["Roadstead-Reason"] == "BAD_SUBJECT"
    assert headers["Roadstead-Subject"] == subject
    assert where.startswith("dlq.")


async def test_unknown_fields_are_kept_and_named(world: StackScenario) -> None:
    """GIVEN a misspelt field WHEN the spec is published THEN it is accepted with a warning that names the field."""
    spec = {**NETWORK, "dnsNameserver": ["192.0.2.1"]}
    network = await world.settled("network", world.name("net"), spec)
    accepted = world.condition(network, "Accepted")
    assert accepted["status"] == "True"
    assert "unknown field spec.dnsNameserver" in accepted["message"]
    assert world.document(network)["spec"]["dnsNameserver"] == ["192.0.2.1"]


async def test_ref_037_a_server_under_an_id_that_its_name_does_not_give(world: StackScenario) -> None:
    """GIVEN a server message with an id of its own WHEN it is published THEN it is refused and the right id named."""
    home = await world.home()
    spec = {
        "flavorID": world.offer.flavors["small"],
        "image": {"id": world.offer.images["A"]},
        "networks": [{"id": home.network.id}],
    }
    key = world.key("server")
    sequence = await world.publish(key, body(world, spec, identityId=home.identity.id))
    _, headers, _ = await dead_letter(world, sequence)
    assert headers["Roadstead-Reason"] == "WRONG_ID"
    await world.until(
        Ref(key, "net", spec), when=lambda d: "the id of this server must be" in str(d["status"])
    )


async def test_an_id_of_another_project_is_refused(world: StackScenario) -> None:
    """GIVEN a network of this project WHEN its id is published under another project THEN it is refused and untouched."""
    network = await world.settled("network", world.name("net"), NETWORK)
    before = world.document(network)["resourceVersion"]
    ack = await world.session.js.publish(
        f"spec.{world.region}.project-of-others.network.{network.id}",
        body(world, projectId="project-of-others"),
    )
    _, headers, _ = await dead_letter(world, ack.seq)
    assert headers["Roadstead-Reason"] == "ID_TAKEN"
    assert world.document(network)["resourceVersion"] == before


async def test_a_message_larger_than_the_stream_takes_is_refused_by_the_broker(world: StackScenario) -> None:
    """GIVEN a body over 1 MiB WHEN it is published THEN the broker says so and nothing reaches a service."""
    key = world.key("network")
    with pytest.raises(nats.js.errors.APIError, match="message size exceeds maximum allowed"):
        await world.publish(key, body(world, {**NETWORK, "x": "x" * (1 << 20)}))
    assert world.newest(key) is None


async def test_a_delete_for_what_never_was_is_remembered_and_harmless(world: StackScenario) -> None:
    """GIVEN an id that nobody used WHEN a delete is published, then a spec THEN the delete is no error and the spec lives."""
    network = Ref(world.key("network"), world.name("net"), NETWORK)
    world.applied.append(network)
    await world.delete(network)
    await world.until(network, "gone")
    await world.edit(network)
    await world.until(network, "provisioned")


async def test_a_spec_for_a_region_that_is_not_there_waits(world: StackScenario) -> None:
    """GIVEN a region nobody registered WHEN a spec is published for it THEN nothing is written and it can be deleted again;
    by request it is told at once."""
    region = "00000000-0000-4000-8000-00000000dead"
    key = world.key("identity")
    subject = f"spec.{region}.{world.project}.identity.{key.id}"
    told = {
        "metadata": {"name": "team", "organizationId": world.organization},
        "spec": {"provider": "openstack"},
    }
    await world.session.js.publish(subject, json.dumps(told).encode())
    ref = Ref(key, "team", {})
    document = await world.until(
        ref, when=lambda d: d["status"].get("provisioningStatus") in ("provisioning", "error")
    )
    assert document["metadata"]["regionId"] == region
    reply = await world.session.ask(f"api.{region}.{world.project}.identity.apply", told)
    assert reply["error"]["code"] == "REGION_NOT_FOUND"
    assert reply["error"]["status"] == 404
    await world.session.js.publish(subject, b'{"delete": true}')
    await world.until(ref, "gone")


async def test_requests_get_the_same_answers_as_messages(world: StackScenario) -> None:
    """GIVEN bad specs WHEN they are sent by request THEN the reply is the same refusal, and nothing is stored."""
    ident = world.key("network").id
    cases = {
        "PREFIX_TOO_SMALL": {"spec": {**NETWORK, "prefix": "10.0.0.0/30"}},
        "INVALID_FIELD": {"spec": {"prefix": []}},
        "PROJECT_MISMATCH": {"spec": NETWORK, "metadata": {"projectId": "project-of-others"}},
        "BAD_ENVELOPE": {},
    }
    for code, part in cases.items():
        metadata = {
            "id": ident,
            "name": "net",
            "organizationId": world.organization,
            **part.pop("metadata", {}),
        }
        reply = await world.request("network", "apply", {"metadata": metadata, **part})
        codes = {reply["error"]["code"], *(d["code"] for d in reply["error"]["details"])}
        assert code in codes, reply
    assert (await world.request("network", "get", {"id": ident}))["error"]["code"] == "NOT_FOUND"
    subject = f"api.{world.region}.{world.project}.network.apply"
    for raw in (b"", b"nonsense", b"[]", b"{" * 5000):
        answer = await world.session.bus.request(subject, raw, timeout=20)
        assert "error" in json.loads(answer.data)
    unknown = await world.request("network", "explode", {})
    assert unknown["error"]["code"] == "UNKNOWN_REQUEST"


async def test_an_edit_by_request_of_what_is_being_deleted_is_refused(world: StackScenario) -> None:
    """GIVEN a network that waits with its deletion WHEN it is edited by request THEN 409; by message it is the next life."""
    home = await world.build_home()
    await world.delete(home.network)
    await world.until(home.network, "deprovisioning")
    metadata = {"id": home.network.id, "name": home.network.name, "organizationId": world.organization}
    reply = await world.request("network", "apply", {"metadata": metadata, "spec": dict(home.network.spec)})
    assert (reply["error"]["code"], reply["error"]["status"]) == ("DELETING", 409)
    await world.edit(home.network)
    await world.delete(home.group)
    await world.until(
        home.network, "provisioned", when=lambda d: d["metadata"]["incarnation"] == 2, within=600
    )


async def test_a_hundred_bad_messages_hold_nothing_up(world: StackScenario) -> None:
    """GIVEN a burst of bad messages to every kind WHEN a good one follows THEN it is realised and every service is ready."""
    kinds = [k for k in OWNERS if k not in ("region", "image", "sshcertificateauthority")]
    burst = [
        world.session.js.publish(spec_subject(world.key(kinds[n % len(kinds)])), b"\x00" * n)
        for n in range(100)
    ]
    await asyncio.gather(*burst)
    await world.settled("identity", world.name("team"), {"provider": "openstack"})
    await world.session.stack.ready()
