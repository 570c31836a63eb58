"""What is made of a STATUS document: words, columns, the chain of `why`."""

from datetime import UTC, datetime
from typing import Any

import pytest

from roadstead.cli.commands.read import _everything, refuse_unknown_region
from roadstead.cli.describing import chain_lines, description, history_lines
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.output import table_lines
from roadstead.cli.reading import columns, find, has_failed, is_provisioned, message_of, span_text, status_of
from roadstead.reconcile.past import told_in_order
from roadstead.store.api import HistoryEntry

from .stand_ins import REGION, Answers, held


def document(status: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    base = held("server", "f5e2664a-8633-52e2-b00e-255dcca2ca9c", "web", generation=2)
    return {**base, "status": status or {}, **more}


READY = {
    "provisioningStatus": "provisioned",
    "observedGeneration": 2,
    "conditions": [
        {"type": "Available", "status": "True", "reason": "Provisioned", "message": ""},
        {"type": "Active", "status": "True", "reason": "Running", "message": "the server is running"},
    ],
    "privateIP": "10.0.0.4",
}


def test_provisioned_is_only_what_realizes_the_newest_generation() -> None:
    assert is_provisioned(document(READY))
    assert not is_provisioned(document({**READY, "observedGeneration": 1}))
    assert not is_provisioned(document({**READY, "provisioningStatus": "error"}))


def test_deleting_and_gone_are_told_before_anything_else() -> None:
    going = document(READY)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert status_of(going) == "deprovisioning"
    assert status_of({**going, "gone": "2026-01-01T00:00:09Z"}) == "deleted"
    assert status_of(document()) == "unknown"


def test_a_refusal_is_what_a_person_reads_first() -> None:
    refused = document(
        {
            **READY,
            "conditions": [
                {"type": "Accepted", "status": "False", "reason": "Refused", "message": "no CIDR"}
            ],
        }
    )
    assert message_of(refused) == "refused: no CIDR"
    assert has_failed(refused)
    waiting = document(
        {"code": "WAITING", "conditions": [{"type": "Available", "message": "for the network"}]}
    )
    assert message_of(waiting) == "WAITING: for the network"
    assert not has_failed(waiting)


def test_the_table_of_servers_has_power_and_addresses() -> None:
    head, rows = columns("server", [document(READY)])
    assert head == ["NAME", "ID", "STATUS", "POWER", "PRIVATE IP", "PUBLIC IP", "SINCE", "MESSAGE"]
    assert rows[0][2:6] == ["provisioned", "Running", "10.0.0.4", None]


def test_columns_are_padded_and_the_last_is_as_it_is() -> None:
    lines = table_lines(("A", "B"), [("long", None), ("x", "two\nlines"), (True, {"k": 1})])
    assert lines == [["A   ", "B"], ["long", "-"], ["x   ", "two lines"], ["yes ", '{"k": 1}']]


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172800, "2d")]
)
def test_spans_are_short(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


CHAIN = {
    "chain": [
        {
            "at": "2026-01-01T00:00:00.000Z",
            "rule": "6.1-9",
            "verb": "create server",
            "why": "a complete list shows none",
            "count": 1,
            "cause": {"subject": "spec.r.p.server.i", "sequence": 7},
            "writes": [
                {
                    "service": "compute",
                    "method": "POST",
                    "path": "/servers",
                    "outcome": "ok",
                    "openstackRequestId": "req-1",
                    "destructive": False,
                }
            ],
        },
        {
            "at": "2026-01-01T00:00:09+00:00",
            "rule": "R3",
            "verb": None,
            "why": "",
            "count": 4,
            "cause": {},
            "writes": [],
        },
    ],
    "pending": [
        {"service": "compute", "verb": "volume.attach", "at": "2026-01-01T00:00:10.000Z", "answered": False}
    ],
}


def test_why_names_event_rule_request_and_its_id_in_this_order() -> None:
    text = "\n".join(line.plain for line in chain_lines(CHAIN))
    places = [
        text.index(part)
        for part in ("6.1-9", "spec.r.p.server.i (sequence 7)", "compute POST /servers  ok", "req-1")
    ]
    assert places == sorted(places)
    assert "nothing to do" in text
    assert "(4 times)" in text
    assert "no answer seen: compute volume.attach" in text


def test_history_shows_times_in_one_spelling() -> None:
    entries = [
        {
            "kind": "acted",
            "at": "2026-01-01T00:00:09+00:00",
            "service": "compute",
            "verb": "x",
            "outcome": "unknown",
        }
    ]
    (line,) = history_lines(entries)
    assert line.plain.startswith("2026-01-01T00:00:09.000Z  compute  x  unknown")


def test_a_description_has_conditions_consumers_and_decisions() -> None:
    text = description(
        document(READY, consumers=["servers.x/1"], paused=True),
        [{"kind": "decided", "at": "t", "rule": "R1", "why": "because"}],
    ).plain
    for part in ("server web", "Running", "servers.x/1", "paused", "R1", "because"):
        assert part in text


async def test_one_is_found_by_id_or_name_and_never_guessed() -> None:
    ident = "f5e2664a-8633-52e2-b00e-255dcca2ca9c"
    client = Answers(
        {
            "server": [
                held("server", ident, "web"),
                held("server", ident[:-1] + "d", "twin"),
                held("server", ident[:-1] + "e", "twin"),
            ]
        }
    )
    assert (await find(client, "server", "web"))["metadata"]["id"] == ident
    assert (await find(client, "server", ident.upper()))["metadata"]["name"] == "web"
    with pytest.raises(UserError, match="there is no server named we here"):
        await find(client, "server", "we")
    with pytest.raises(UserError, match="2 resources of kind server are named twin"):
        await find(client, "server", "twin")
    with pytest.raises(Refused):
        await find(client, "server", REGION)


NETWORK, OTHER = "71b9f21c-972a-508c-8e8f-024510765378", "81b9f21c-972a-508c-8e8f-024510765378"


async def test_everything_is_of_the_chosen_region_and_may_be_asked_by_name() -> None:
    client = Answers(
        {
            "region": [held("region", REGION, "here"), held("region", OTHER, "there")],
            "network": [held("network", NETWORK, "web")],
            "server": [held("server", OTHER, "web"), held("server", NETWORK, "db")],
        }
    )
    found = await _everything(client, "", {}, False)
    assert [d["metadata"]["name"] for d in found["region"]] == ["here"]
    found = await _everything(client, "web", {}, False)
    assert {k: [d["metadata"]["id"] for d in v] for k, v in found.items() if v} == {
        "network": [NETWORK],
        "server": [OTHER],
    }
    with pytest.raises(UserError, match="nothing here is named nobody"):
        await _everything(client, "nobody", {}, False)


async def test_an_empty_list_of_a_region_that_is_not_there_is_an_error() -> None:
    await refuse_unknown_region(Answers({"region": [held("region", REGION, "here")]}))
    with pytest.raises(UserError, match=f"there is no region {REGION}"):
        await refuse_unknown_region(Answers({"region": [held("region", OTHER, "there")]}))


def test_history_is_told_in_the_order_of_the_times_that_it_shows() -> None:
    stored = datetime(2026, 1, 1, 12, 0, 9, tzinfo=UTC)
    told = told_in_order(
        [
            HistoryEntry("decided", stored, {"rule": "R1"}),
            HistoryEntry("acted", stored, {"at": "2026-01-01T12:00:04+00:00", "verb": "later"}),
            HistoryEntry("acted", stored, {"at": "2026-01-01T12:00:01+00:00", "verb": "first"}),
        ]
    )
    assert [entry.get("verb") or entry["rule"] for entry in told] == ["first", "later", "R1"]
    assert [entry["at"][:19] for entry in told] == [f"2026-01-01T12:00:0{s}" for s in (1, 4, 9)]
