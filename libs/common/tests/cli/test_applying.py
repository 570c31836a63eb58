"""Several documents at once: what became of each, and waiting that outlives a service's restart."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pytest

from roadstead.cli.applying import Applying, NotApplied, apply_documents
from roadstead.cli.client import connected
from roadstead.cli.commands.read import Goal, _until
from roadstead.cli.deleting import delete_one
from roadstead.cli.documents import parse
from roadstead.cli.failures import NoAnswer, UserError
from roadstead.cli.main import run
from roadstead.cli.patience import Patience
from roadstead.testing.servers import NatsServer

from .stand_ins import CONTEXT, REGION, Owner, held

NETWORK = "71b9f21c-972a-508c-8e8f-024510765378"
FILE = """
kind: network
metadata: {name: good}
spec: {prefix: 10.0.0.0/24}
---
kind: network
metadata: {name: bad}
spec: {prefix: 10.0.1.0/30}
---
kind: securitygroup
metadata: {name: behind, networkId: bad}
spec: {rules: []}
---
kind: volume
metadata: {name: alone}
spec: {networkID: good, size: 1, volumeClassID: fast}
---
kind: volume
metadata: {name: also-behind}
spec: {networkID: bad, size: 1, volumeClassID: fast}
"""


async def test_what_depends_on_a_refused_document_is_left_out_and_the_others_go_on() -> None:
    client = Owner(refuses={"bad": "the prefix is too long"})
    with pytest.raises(NotApplied) as caught:
        await apply_documents(client, parse(FILE, "f.yaml"), Applying(quiet=True))
    assert client.applied == ["good", "alone"]
    assert {x.name: x.result for x in caught.value.done} == {
        "good": "accepted",
        "bad": "refused",
        "behind": "skipped",
        "alone": "accepted",
        "also-behind": "skipped",
    }
    text = str(caught.value)
    assert "f.yaml, document 2: network bad: the prefix is too long (INVALID)" in text
    assert "left out, because they need it: securitygroup behind, volume also-behind (2 of 5 applied)" in text
    reasons = {x.name: x.message for x in caught.value.done}
    assert reasons["behind"] == "it needs network bad"


async def test_what_waits_is_said_with_what_was_refused() -> None:
    client = Owner(refuses={"bad": "no"})
    with pytest.raises(NotApplied) as caught:
        await apply_documents(client, parse(FILE, "f.yaml"), Applying(wait=True, timeout=5, quiet=True))
    assert {x.name for x in caught.value.done if x.result == "accepted"} == {"good", "alone"}


async def test_a_failed_one_is_said_with_those_that_are_still_on_their_way() -> None:
    client = Owner()
    client.states = {"good": ("error", "BROKEN"), "other": ("provisioning", "WAITING")}
    text = "kind: network\nmetadata: {name: good}\n---\nkind: network\nmetadata: {name: other}\n"
    with pytest.raises(NotApplied) as caught:
        await apply_documents(client, parse(text, "f"), Applying(wait=True, timeout=5, quiet=True))
    assert "network good: BROKEN" in str(caught.value)
    assert str(caught.value).endswith("still on their way: network other")


async def test_what_is_late_is_named_once() -> None:
    client = Owner()
    client.states = {"good": ("provisioning", "WAITING")}
    with pytest.raises(NotApplied) as caught:
        await apply_documents(
            client,
            parse("kind: network\nmetadata: {name: good}", "f"),
            Applying(wait=True, timeout=0.3, quiet=True),
        )
    assert str(caught.value).startswith("time is over, not yet provisioned: network good")
    assert "still on their way" not in str(caught.value)


def test_programs_get_every_document_and_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f.yaml").write_text(FILE)
    owner = Owner(refuses={"bad": "no"})

    class Connected:
        async def __aenter__(self) -> Owner:
            return owner

        async def __aexit__(self, *_: object) -> None: ...

    monkeypatch.setattr("roadstead.cli.commands.apply.connected", Connected)
    assert run(["apply", "-f", str(tmp_path / "f.yaml"), "-o", "json"]) == 1
    out = capsys.readouterr()
    told = json.loads(out.out)
    assert [(x["name"], x["result"]) for x in told] == [
        ("good", "accepted"),
        ("bad", "refused"),
        ("behind", "skipped"),
        ("alone", "accepted"),
        ("also-behind", "skipped"),
    ]
    assert told[1]["message"] == "no (INVALID)"
    assert len(out.err.splitlines()) == 1


async def test_a_word_that_names_nothing_keeps_everything_from_being_sent() -> None:
    client = Owner()
    text = FILE + "---\nkind: securitygroup\nmetadata: {name: lost, networkId: nowhere}\nspec: {}\n"
    with pytest.raises(UserError, match=r"no network named nowhere.*; nothing was sent$"):
        await apply_documents(client, parse(text, "f.yaml"), Applying(quiet=True))
    assert client.applied == []


# ---------------------------------------------------------------- a service that is away for a while


@pytest.mark.parametrize(("kind", "verb"), [("network", "apply"), ("network", "list"), ("network", "get")])
async def test_apply_and_wait_outlives_a_restart(
    kind: str, verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadstead.cli.following.ASK_EVERY", 0.1)
    monkeypatch.setattr("roadstead.cli.patience.PAUSE", 0.02)
    client = Owner(away={(kind, verb): 3})
    documents = parse("kind: network\nmetadata: {name: good}\nspec: {}", "f")
    done = await apply_documents(client, documents, Applying(wait=True, timeout=5, quiet=True))
    assert [x.result for x in done] == ["accepted"]
    assert capsys.readouterr().err.splitlines()[0] == (
        "note: the network service does not answer; waiting goes on"
    )


async def test_without_waiting_a_service_that_is_away_is_said_at_once() -> None:
    client = Owner(away={("network", "apply"): 3})
    documents = parse("kind: network\nmetadata: {name: good}\nspec: {}", "f")
    with pytest.raises(NotApplied, match="does not answer"):
        await apply_documents(client, documents, Applying(quiet=True))
    assert client.away["network", "apply"] == 2


async def test_waiting_for_one_outlives_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roadstead.cli.following.ASK_EVERY", 0.05)
    document = held("network", NETWORK, "good", generation=1)
    client = Owner()
    client.held["network"] = [document]
    client.patience = Patience(asyncio.get_running_loop().time() + 5)

    async def restart() -> None:
        await asyncio.sleep(0.1)
        client.away["network", "get"] = 3
        await asyncio.sleep(0.3)
        document["status"] = {"provisioningStatus": "provisioned", "observedGeneration": 1}
        document["resourceVersion"] = 2

    task = asyncio.create_task(restart())
    await _until(client, "network", "good", Goal.PROVISIONED, 5)
    await task
    assert client.away["network", "get"] == 0


async def test_waiting_ends_when_its_time_is_over_though_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roadstead.cli.following.ASK_EVERY", 0.05)
    client = Owner(away={("network", "get"): 10**6})
    client.held["network"] = [held("network", NETWORK, "good", generation=1)]
    client.patience = Patience(asyncio.get_running_loop().time() + 0.4)
    with pytest.raises(UserError, match=r"network good is not provisioned after 0\.4 s"):
        await _until(client, "network", "good", Goal.PROVISIONED, 0.4)


async def test_deleting_and_waiting_outlives_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roadstead.cli.following.ASK_EVERY", 0.05)
    monkeypatch.setattr("roadstead.cli.patience.PAUSE", 0.02)
    client = Owner(away={("network", "delete"): 2, ("network", "get"): 2, ("network", "list"): 2})
    client.held["network"] = [held("network", NETWORK, "good", generation=1)]
    gone = await delete_one(client, "network", "good", cascade=False, wait=True, timeout=5)
    assert gone == [NETWORK]


async def test_a_refused_row_without_a_name_is_shown_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    client = Owner()
    client.held["network"] = [
        {"kind": "network", "metadata": {"id": NETWORK, "regionId": REGION, "projectId": "demo"}}
    ]
    await delete_one(client, "network", NETWORK, cascade=False, wait=True, timeout=5)
    out = capsys.readouterr().out
    assert "None" not in out
    assert f"network {NETWORK} deleted" in out


async def test_a_broker_that_restarts_is_come_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (tmp_path.parent, tmp_path):
        place.chmod(0o711)
    server = NatsServer(tmp_path / "nats")
    server.start()
    try:
        async with connected(replace(CONTEXT, nats_url=server.url)) as client:
            client.stay()
            seen: list[dict[str, Any]] = []

            async def note(_subject: str, document: dict[str, Any]) -> None:
                seen.append(document)

            await client.follow("status.>", note)
            await asyncio.to_thread(server.restart)
            other = await nats.connect(server.url)
            try:
                for _ in range(100):
                    await other.publish("status.x", b'{"a": 1}')
                    await asyncio.sleep(0.1)
                    if seen:
                        break
            finally:
                await other.close()
            assert seen[0] == {"a": 1}
            with pytest.raises(NoAnswer):
                await client.ask("api.x", {}, who="volumes", timeout=0.5)
    finally:
        server.stop()
