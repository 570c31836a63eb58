"""Requests: one replica of the service answers, whatever was asked, and a slow one holds back no other."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from roadstead.assembly import Assembly, Service
from roadstead.bus.failures import PublishFailed
from roadstead.store.api import StoreUnavailable

from ..reconcile.toy import KIND
from .conftest import PROJECT, REGION, Rig, eventually, messages_of, new_id, spec_body, subject_of

pytestmark = pytest.mark.integration


def api(verb: str, kind: str = "volume") -> str:
    return f"api.{REGION}.{PROJECT}.{kind}.{verb}"


async def ask(person: Client, subject: str, body: Any = None) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    found: dict[str, Any] = json.loads((await person.request(subject, raw, timeout=5)).data)
    return found


async def test_a_request_is_answered_with_what_is_stored(rig: Rig, person: Client) -> None:
    ident = new_id()
    await person.jetstream().publish(subject_of(ident), spec_body("red"))
    await eventually(lambda: rig.row(ident))
    reply = await ask(person, api("get"), {"id": ident})
    assert reply["spec"]["colour"] == "red"
    assert [i["metadata"]["id"] for i in (await ask(person, api("list")))["items"]] == [ident]
    assert "id" not in await ask(person, api("get"), {"id": new_id()})


@pytest.mark.parametrize(
    ("subject", "body", "code"),
    [
        (api("get"), b"{", "NOT_JSON"),
        (api("get"), b"[]", "NOT_AN_OBJECT"),
        (api("get"), b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "TOO_DEEP"),
        (api("get"), b'{"id": "\\u0000"}', "NUL"),
        (api("get"), b'{"id": "a", "id": "b"}', "DUPLICATE_FIELD"),
        (api("apply"), b'{"metadata": {"name": "a\\u001bb"}, "spec": {}}', "CONTROL_CHARACTER"),
        (api("get"), b"", "ID_MISSING"),
        (api("get"), b'{"id": 7}', "ID_MISSING"),
        (api("no-such-verb"), b"{}", "UNKNOWN_REQUEST"),
        (api("apply"), b'{"spec": 7}', "BAD_ENVELOPE"),
        (api("list"), b'{"limit": 100000}', "BAD_LIMIT"),
        ("rpc.volumes.no-such-verb", b"{}", "UNKNOWN_REQUEST"),
        ("rpc.volumes.reference.add", b"{}", "BAD_REQUEST"),
    ],
)
async def test_a_malformed_request_is_answered_with_its_reason(
    rig: Rig, person: Client, subject: str, body: bytes, code: str
) -> None:
    reply = await ask(person, subject, body)
    assert reply["error"]["code"] == code
    assert reply["error"]["message"]


async def test_a_request_that_is_a_list_is_told_to_be_an_object(rig: Rig, person: Client) -> None:
    reply = await ask(person, api("get"), b"[]")
    assert reply["error"]["message"] == "the request must be a JSON object"


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (StoreUnavailable("dsn with password"), "UNAVAILABLE", 503),
        (PublishFailed("x"), "UNAVAILABLE", 503),
        (RuntimeError("secret detail"), "INTERNAL", 500),
    ],
)
async def test_a_fault_inside_is_an_error_reply_without_its_text(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, status: int
) -> None:
    async def get(kind: str, ident: str) -> Any:
        raise error

    monkeypatch.setattr(rig.store, "get", get)
    reply = await ask(person, api("get"), {"id": new_id()})
    assert (reply["error"]["code"], reply["error"]["status"]) == (code, status)
    assert str(error) not in reply["error"]["message"] or str(error) == "x"
    monkeypatch.undo()
    assert (await ask(person, api("get"), {"id": new_id()}))["error"]["code"] == "NOT_FOUND"


async def test_one_of_several_replicas_answers(nats_url: str, rig: Rig, person: Client) -> None:
    other = Rig(nats_url, store=rig.store.reopened())
    await other.start()
    try:
        for _ in range(40):
            assert "items" in await ask(person, api("list"))
        label = {"subject": "api.<region>.<project>.volume.list", "outcome": "ok"}
        counts = [r.bus.meters.value("roadstead_requests_total", **label) for r in (rig, other)]
        assert sum(counts) == 40
        assert min(counts) > 0
    finally:
        await other.stop()


async def test_a_slow_request_holds_back_no_other(
    rig: Rig, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, real, release = new_id(), rig.store.get, asyncio.Event()

    async def get(kind: str, ident: str) -> Any:
        if ident == slow:
            await release.wait()
        return await real(kind, ident)

    monkeypatch.setattr(rig.store, "get", get)
    waiting = asyncio.create_task(ask(person, api("get"), {"id": slow}))
    await asyncio.sleep(0.05)
    for _ in range(20):
        assert "error" in await ask(person, api("get"), {"id": new_id()})
    assert not waiting.done()
    release.set()
    assert "error" in await waiting


async def test_an_accepted_edit_is_in_stream_and_database_before_the_reply(rig: Rig, person: Client) -> None:
    region = {
        "kind": "region",
        "metadata": {"id": REGION, "name": "r", "regionId": REGION, "generation": 1, "incarnation": 1},
        "spec": {},
        "resourceVersion": 1,
        "status": {},
    }
    await rig.assembly.handlers.status(f"status.{REGION}._.region.{REGION}", json.dumps(region).encode())
    ident = new_id()
    reply = await ask(person, api("apply"), json.loads(spec_body("red", id=ident)))
    assert (reply["id"], reply["generation"]) == (ident, 1)
    assert await rig.colour(ident) == "red"
    [message] = await messages_of(person, "SPEC", subject_of(ident))
    assert message["spec"] == {"colour": "red"}


async def test_two_hundred_consumers_at_once_are_a_few_messages_of_status(rig: Rig, person: Client) -> None:
    ident, consumers = new_id(), 200
    await person.jetstream().publish(subject_of(ident), spec_body("red"))
    await eventually(lambda: rig.row(ident))
    heard: list[dict[str, Any]] = []

    async def hear(message: Msg) -> None:
        heard.append(json.loads(message.data))

    await person.subscribe(subject_of(ident, head="status"), cb=hear)
    await person.flush()
    telling = asyncio.create_task(rig.assembly.telling.run())
    asked = {"kind": "volume", "id": ident, "region": REGION}
    names = [f"servers.region.unikorn-cloud.org/{number:04d}" for number in range(consumers)]
    replies = await asyncio.gather(
        *(ask(person, "rpc.volumes.reference.add", {**asked, "consumer": name}) for name in names)
    )
    assert all(reply["ok"] for reply in replies)
    await eventually(lambda: [d for d in heard if d["consumers"] == names], what="all consumers are told")
    assert len(heard) <= 4
    telling.cancel()


async def test_inventories_and_verbs_that_a_service_adds_are_answered(nats_url: str, person: Client) -> None:
    def setup(assembly: Assembly) -> None:
        async def classes(region: str, project: str, _payload: Mapping[str, Any]) -> dict[str, Any]:
            return {"items": [f"{region}/{project}"]}

        async def claim(_payload: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"ok": True}

        assembly.api.more["volumeclass", "list"] = classes
        assembly.handlers.more["claim"] = claim

    rig = Rig(nats_url, service=Service("volumes", (KIND,), (), setup))
    await rig.start()
    try:
        assert await ask(person, f"api.{REGION}._.volumeclass.list") == {"items": [f"{REGION}/_"]}
        assert await ask(person, "rpc.volumes.claim") == {"ok": True}
    finally:
        await rig.stop()


async def test_words_of_strangers_become_no_metric(rig: Rig, person: Client) -> None:
    for word in ("a", "b", "c"):
        await ask(person, api(word))
    value = rig.bus.meters.value(
        "roadstead_requests_total", subject="api.<region>.<project>.other", outcome="404"
    )
    assert value == 3
