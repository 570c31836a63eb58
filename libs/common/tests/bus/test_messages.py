"""Messages of every sort on the bus: each is answered, and the consumer goes on (architecture.md section 3.11)."""

import asyncio
import json
import random
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from .conftest import (
    PROJECT,
    REGION,
    Rig,
    dead_letters,
    eventually,
    messages_of,
    new_id,
    spec_body,
    subject_of,
)

pytestmark = pytest.mark.integration

NESTED = 10_000
MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "NOT_JSON"),
    "not JSON": (b"{colour: red", "NOT_JSON"),
    "not UTF-8": (b'{"spec": {"colour": "\xff\xfe"}}', "NOT_JSON"),
    "a number": (b"42", "NOT_AN_OBJECT"),
    "a list": (b"[]", "NOT_AN_OBJECT"),
    "null": (b"null", "NOT_AN_OBJECT"),
    "over size": (spec_body("x" * 300_000), "TOO_LARGE"),
    "10 000 levels of lists": (b'{"spec":' + b"[" * NESTED + b"]" * NESTED + b"}", "TOO_DEEP"),
    "10 000 levels of objects": (b'{"a":' * NESTED + b"1" + b"}" * NESTED, "TOO_DEEP"),
    "10 000 levels never closed": (b"[" * NESTED, "TOO_DEEP"),
    "NUL in a value": (spec_body("re\x00d"), "NUL"),
    "NUL in a key": (b'{"metadata": {"a\\u0000": 1}, "spec": {"colour": "red"}}', "NUL"),
    "no spec": (b'{"metadata": {"name": "tin"}}', "BAD_ENVELOPE"),
    "spec of a wrong type": (b'{"metadata": {"name": "tin"}, "spec": 7}', "BAD_ENVELOPE"),
    "metadata of a wrong type": (b'{"metadata": [], "spec": {}}', "BAD_ENVELOPE"),
    "delete of a wrong type": (b'{"delete": "yes"}', "BAD_ENVELOPE"),
    "deletion time of a wrong type": (b'{"metadata": {"deletionTimestamp": 7}, "spec": {}}', "BAD_ENVELOPE"),
    "field of a wrong type": (
        b'{"metadata": {"name": "t", "organizationId": "o"}, "spec": {"colour": 7}}',
        "INVALID_FIELD",
    ),
    "name of a wrong type": (b'{"metadata": {"name": {}}, "spec": {"colour": "red"}}', "INVALID_FIELD"),
    "field missing": (b'{"metadata": {"name": "t", "organizationId": "o"}, "spec": {}}', "INVALID_FIELD"),
    "no name": (b'{"metadata": {"organizationId": "o"}, "spec": {"colour": "red"}}', "NAME_MISSING"),
    "no organization": (b'{"metadata": {"name": "t"}, "spec": {"colour": "red"}}', "ORGANIZATION_MISSING"),
    "of another project": (spec_body(projectId="project-b"), "PROJECT_MISMATCH"),
    "of another region": (spec_body(regionId="elsewhere"), "REGION_MISMATCH"),
    "a rule of the kind": (spec_body("invisible"), "COLOUR"),
}


@pytest.mark.parametrize("sort", MALFORMED)
async def test_a_malformed_spec_is_answered_and_the_consumer_goes_on(
    rig: Rig, person: Client, sort: str
) -> None:
    """Dead letter with reason and original body, Accepted=False in the status, and the next message is served."""
    body, code = MALFORMED[sort]
    bad, good = new_id(), new_id()
    js = person.jetstream()
    ack = await js.publish(subject_of(bad), body)
    await js.publish(subject_of(good), spec_body("green"))

    async def served() -> bool:
        return await rig.colour(good) == "green"

    await eventually(served, what="the next message is served")
    letters = await eventually(lambda: dead_letters(person), what="a dead letter")
    [(subject, headers, original)] = letters
    assert subject == f"dlq.volumes.{REGION}.{PROJECT}.volume.{bad}"
    assert headers["Roadstead-Reason"] == code
    assert headers["Roadstead-Message"]
    assert headers["Roadstead-Subject"] == subject_of(bad)
    assert int(headers["Roadstead-Sequence"]) == ack.seq
    assert original == body

    async def said() -> Any:
        return await messages_of(person, "STATUS", subject_of(bad, head="status"))

    [status] = await eventually(said, what="a status")
    accepted = next(c for c in status["status"]["conditions"] if c["type"] == "Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "Refused")
    assert code in [d["code"] for d in status["status"]["refusal"]]

    async def acknowledged() -> bool:
        info = await js.consumer_info("SPEC", "volumes-spec")
        return bool(info.num_ack_pending == 0 and info.num_pending == 0)

    await eventually(acknowledged, what="everything is acknowledged")


async def test_every_problem_of_a_spec_is_named_at_once(rig: Rig, person: Client) -> None:
    body = json.dumps({"metadata": {"projectId": "project-b"}, "spec": {"colour": "invisible"}}).encode()
    await person.jetstream().publish(subject_of(new_id()), body)
    [(_, headers, _)] = await eventually(lambda: dead_letters(person))
    codes = {d["code"] for d in json.loads(headers["Roadstead-Details"])}
    assert codes == {"PROJECT_MISMATCH", "NAME_MISSING", "ORGANIZATION_MISSING", "COLOUR"}


async def test_a_refused_edit_leaves_the_accepted_spec_in_force(rig: Rig, person: Client) -> None:
    ident = new_id()
    js = person.jetstream()
    await js.publish(subject_of(ident), spec_body("red"))
    await js.publish(subject_of(ident), spec_body("invisible"))
    await eventually(lambda: dead_letters(person))
    row = await rig.row(ident)
    assert (row.spec["colour"], row.generation) == ("red", 1)


@pytest.mark.parametrize(
    "subject",
    [
        f"spec.{REGION}.{PROJECT}.nothing.{new_id()}",
        f"spec.{REGION}.{PROJECT}.volume",
        f"spec.{REGION}.{PROJECT}.volume.{new_id()}.more",
        "spec.x",
    ],
)
async def test_a_spec_on_a_subject_that_names_no_resource_is_answered_by_one_service(
    nats_url: str, person: Client, subject: str
) -> None:
    """No owner's consumer matches it; the service for strays puts it aside, body included."""
    from dataclasses import replace

    from roadstead.assembly import Service

    from ..reconcile.toy import KIND

    service = Service("identity", kinds=(replace(KIND, name="identity", service="identity"),), follows=())
    rig = Rig(nats_url, service=service)
    await rig.start()
    try:
        await person.publish(subject, b"a body")
        [(where, headers, body)] = await eventually(lambda: dead_letters(person, "identity"))
        assert where == "dlq.identity.unknown._.unknown.unknown"
        assert headers["Roadstead-Reason"] == "BAD_SUBJECT"
        assert body == b"a body"
    finally:
        await rig.stop()


@pytest.mark.parametrize(
    "subject", [f"spec.not-a-uuid.{PROJECT}.volume.{new_id()}", f"spec.{REGION}.{PROJECT}.volume.web-1"]
)
async def test_a_subject_with_a_bad_id_is_answered_by_the_owner(
    rig: Rig, person: Client, subject: str
) -> None:
    await person.jetstream().publish(subject, spec_body())
    [(where, headers, _)] = await eventually(lambda: dead_letters(person))
    assert where == "dlq.volumes.unknown._.unknown.unknown"
    assert headers["Roadstead-Reason"] == "BAD_SUBJECT"


@pytest.mark.parametrize(
    "subject", [f"spec.{REGION}.{PROJECT}.volume.web-1", f"spec.{REGION}.{PROJECT}.nothing.{new_id()}"]
)
async def test_a_bad_subject_is_one_dead_letter_whoever_listens(
    rig: Rig, nats_url: str, person: Client, subject: str
) -> None:
    from dataclasses import replace

    from roadstead.assembly import Service

    from ..reconcile.toy import KIND

    strays = Rig(
        nats_url, service=Service("identity", (replace(KIND, name="identity", service="identity"),), ())
    )
    await strays.start()
    try:
        await person.jetstream().publish(subject, spec_body())

        async def all_letters() -> list[object]:
            return [*await dead_letters(person, "identity"), *await dead_letters(person)]

        await eventually(all_letters)
        await asyncio.sleep(0.5)
        assert len(await all_letters()) == 1
    finally:
        await strays.stop()


async def test_a_kind_that_is_not_served_yet_is_answered_by_its_owner(nats_url: str, person: Client) -> None:
    from dataclasses import replace

    from roadstead.assembly import Service

    from ..reconcile.toy import KIND

    rig = Rig(nats_url, service=Service("compute", (replace(KIND, name="server", service="compute"),), ()))
    await rig.start()
    try:
        await person.jetstream().publish(subject_of(new_id(), kind="sshcertificateauthority"), spec_body())
        [(_, headers, _)] = await eventually(lambda: dead_letters(person, "compute"))
        assert headers["Roadstead-Reason"] == "UNKNOWN_KIND"
    finally:
        await rig.stop()


async def test_the_same_spec_again_changes_nothing(rig: Rig, person: Client) -> None:
    ident = new_id()
    js = person.jetstream()
    first = await js.publish(subject_of(ident), spec_body("red"), headers={"Nats-Msg-Id": "one"})
    again = await js.publish(subject_of(ident), spec_body("red"), headers={"Nats-Msg-Id": "one"})
    assert (again.duplicate, again.seq) == (True, first.seq)
    last = await js.publish(subject_of(ident), spec_body("red"))

    async def handled() -> bool:
        row = await rig.row(ident)
        return row is not None and row.sequence == last.seq

    await eventually(handled)
    row = await rig.row(ident)
    assert (row.generation, row.work.wake_seq) == (1, 1)
    assert len(await messages_of(person, "STATUS", subject_of(ident, head="status"))) == 1


async def test_an_older_message_delivered_late_changes_nothing(rig: Rig, person: Client) -> None:
    """Delivered again after its answer was lost, for example, when a newer one was handled already."""
    ident = new_id()
    js = person.jetstream()
    await js.publish(subject_of(ident), spec_body("red"))
    await js.publish(subject_of(ident), spec_body("blue"))

    async def handled() -> bool:
        return await rig.colour(ident) == "blue"

    await eventually(handled)
    before = await rig.row(ident)
    result = await rig.assembly.handlers.spec(subject_of(ident), spec_body("red"), (1, 1), {})
    assert getattr(result, "what", None) == "older"
    assert await rig.row(ident) == before


async def test_edits_of_one_subject_are_handled_in_order(rig: Rig, person: Client) -> None:
    ident = new_id()
    js = person.jetstream()
    for number in range(60):
        await js.publish(subject_of(ident), spec_body(f"colour-{number}"))

    async def handled() -> bool:
        return await rig.colour(ident) == "colour-59"

    await eventually(handled)
    assert (await rig.row(ident)).generation == 60  # none was skipped as older


async def test_a_burst_of_many_subjects_is_stored_whole(rig: Rig, person: Client) -> None:
    idents = [new_id() for _ in range(500)]
    for ident in idents:
        await person.publish(subject_of(ident), spec_body("red"))

    async def handled() -> bool:
        return all([await rig.row(ident) is not None for ident in idents])

    await eventually(handled)
    info = await eventually(lambda: _settled(person), what="all are acknowledged")
    assert info.ack_floor.stream_seq == 500


async def _settled(person: Client) -> Any:
    info = await person.jetstream().consumer_info("SPEC", "volumes-spec")
    return info if info.num_ack_pending == 0 and info.num_pending == 0 else None


async def test_two_replicas_share_the_messages_and_store_each_once(
    nats_url: str, rig: Rig, person: Client
) -> None:
    other = Rig(nats_url, store=rig.store.reopened())
    await other.start()
    try:
        idents = [new_id() for _ in range(200)]
        await asyncio.gather(*(person.jetstream().publish(subject_of(i), spec_body("red")) for i in idents))
        await eventually(lambda: _settled(person))
        rows = [await rig.row(i) for i in idents]
        assert {row.generation for row in rows} == {1}
        counts = [
            r.bus.meters.value(
                "roadstead_messages_total", subject="spec.<region>.<project>.volume.<id>", outcome="done"
            )
            for r in (rig, other)
        ]
        assert sum(counts) == 200
        assert min(counts) > 0
    finally:
        await other.stop()


async def test_an_observation_without_its_fields_is_put_aside(rig: Rig, person: Client) -> None:
    js = person.jetstream()
    await js.publish(subject_of(new_id(), head="observed"), b'{"present": true}')
    await js.publish(subject_of(new_id(), head="observed"), b"[")
    letters = await eventually(lambda: _at_least(person, 2))
    assert {headers["Roadstead-Reason"] for _, headers, _ in letters} == {"BAD_ENVELOPE", "UNREADABLE"}


async def _at_least(person: Client, count: int) -> Any:
    letters = await dead_letters(person)
    return letters if len(letters) >= count else None


async def test_the_trace_of_a_publisher_reaches_row_and_status(rig: Rig, person: Client) -> None:
    ident, trace = new_id(), "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    await person.jetstream().publish(subject_of(ident), spec_body(), headers=headers)
    row = await eventually(lambda: rig.row(ident))
    assert trace in row.work.cause["traceparent"]
    js = person.jetstream()

    async def status() -> Any:
        try:
            return await js.get_msg("STATUS", subject=subject_of(ident, head="status"))
        except NotFoundError:
            return None

    message = await eventually(status)
    assert trace in message.headers["traceparent"]


async def test_an_id_in_two_projects_is_the_first_message_s(rig: Rig, person: Client) -> None:
    """GIVEN pairs of specs of one id in two projects, and a store that takes any time WHEN they are handled
    THEN each id belongs to the message that stands first in the stream, and every loser has its one dead letter."""
    chance = random.Random(74)

    async def late(operation: str, after: bool) -> None:
        if operation == "change" and not after:
            await asyncio.sleep(chance.random() * 0.05)

    rig.store.edge = late
    js = person.jetstream()
    idents = [new_id() for _ in range(10)]
    for ident in idents:
        await js.publish(subject_of(ident), spec_body("green"))
        await js.publish(
            subject_of(ident).replace(PROJECT, "project-b"), spec_body("red", projectId="project-b")
        )

    async def settled() -> bool:
        return len(await dead_letters(person)) >= len(idents)

    await eventually(settled, what="a dead letter for every loser")
    for ident in idents:
        row = await rig.row(ident)
        assert (row.key.project, row.spec["colour"], row.gone_at) == (PROJECT, "green", None)
    letters = await dead_letters(person)
    assert sorted(subject for subject, *_ in letters) == sorted(
        f"dlq.volumes.{REGION}.project-b.volume.{ident}" for ident in idents
    )
    assert {headers["Roadstead-Reason"] for _, headers, _ in letters} == {"ID_TAKEN"}
