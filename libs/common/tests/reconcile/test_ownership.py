"""One id in two projects: the first message of the stream has it, in whatever order the two are handled (events.md section 1)."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roadstead.events import Refusal, read_spec
from roadstead.reconcile import rules
from roadstead.reconcile.accepting import Ingested, IngestResult
from roadstead.reconcile.decision import Done
from roadstead.reconcile.finish import Finished, Timing, finish
from roadstead.reconcile.ingest import ingest
from roadstead.reconcile.rebuild import wish_of
from roadstead.store.api import Change, Lease, Row
from roadstead.subjects import Key, spec_subject, status_subject

from .test_finish import NOW, write
from .toy import IDENT, KEY, KIND, REGION

OTHER = Key(REGION, "project-b", "volume", IDENT)
FIRST, LATER = (1, 74), (1, 75)


def spec(key: Key, colour: str = "red") -> bytes:
    metadata = {"name": "tin", "organizationId": "org", "projectId": key.project}
    return json.dumps({"metadata": metadata, "spec": {"colour": colour}}).encode()


def meets(row: Row | None, key: Key, position: tuple[int, int], raw: bytes | None = None) -> Change:
    message = read_spec(raw if raw is not None else spec(key))
    assert not isinstance(message, Refusal)
    cause = {"subject": spec_subject(key), "sequence": position[1]}
    return ingest(row, NOW, kind=KIND, key=key, message=message, position=position, cause=cause)


def row_after(change: Change) -> Row:
    assert change.row is not None
    return change.row


def letters(*changes: Change) -> list[tuple[str, str, str]]:
    """(subject, reason, sequence) of the dead letters that were written with the rows."""
    return [
        (o.subject, o.headers["Roadstead-Reason"], o.headers["Roadstead-Sequence"])
        for change in changes
        for o in change.outgoing
        if o.subject.startswith("dlq.")
    ]


def test_the_first_message_has_the_id_when_it_is_handled_first() -> None:
    row = row_after(meets(None, KEY, FIRST))
    change = meets(row, OTHER, LATER)
    result: IngestResult = change.result
    assert (result.what, result.problems[0].code) == (Ingested.REFUSED, "ID_TAKEN")
    assert change.row is None
    assert not change.outgoing


def test_the_first_message_has_the_id_when_the_later_one_is_handled_first() -> None:
    """The later one is told as a refused one is; its STATUS says that it is gone, and a pass over it finds its lease lost."""
    early = row_after(meets(None, OTHER, LATER))
    until = NOW + timedelta(seconds=20)
    early = replace(early, work=replace(early.work, lease_owner="me", lease_until=until, lease_epoch=1))
    lease = Lease(OTHER, "me", 1, until, early.work.wake_seq, NOW)
    change = meets(early, KEY, FIRST)
    row = row_after(change)
    assert change.result.what is Ingested.ACCEPTED
    assert (row.key, row.generation > early.generation, row.deleting, row.gone_at) == (KEY, True, False, None)
    assert (row.epoch, row.sequence) == FIRST
    assert row.metadata["projectId"] == "project-a"
    assert row.work.due_at == NOW
    assert not rules.holds(row, lease)
    assert letters(change) == [(f"dlq.volumes.{OTHER}", "ID_TAKEN", "75")]
    told = [
        json.loads(o.payload) for o in change.outgoing if o.subject == status_subject(OTHER) and o.payload
    ]
    assert [("gone" in t, t["metadata"]["projectId"]) for t in told] == [(True, "project-b")]
    versions = [
        json.loads(o.payload)["resourceVersion"] for o in change.outgoing if o.subject.startswith("status.") and o.payload
    ]  # fmt: skip
    assert versions == sorted(set(versions))
    assert versions[0] > early.resource_version
    again = meets(row, OTHER, LATER)
    assert again.result.what is Ingested.REFUSED, "delivered once more, it is refused as ever"
    assert again.row is None


@pytest.mark.parametrize("trace", ["references", "written_at", "ever_provisioned", "record", "intents"])
def test_what_the_later_one_may_have_built_goes_before_the_first_begins(trace: str) -> None:
    traces: dict[str, Any] = {
        "references": {"network/x": -1},
        "written_at": NOW,
        "ever_provisioned": True,
        "record": "sealed",
        "intents": (write(answered=False, outcome="unknown"),),
    }
    early = replace(row_after(meets(None, OTHER, LATER)), **{trace: traces[trace]})
    change = meets(early, KEY, FIRST)
    going = row_after(change)
    assert change.result.what is Ingested.NEXT_LIFE
    assert (going.key, going.deleting, going.cascade) == (OTHER, True, False)
    assert letters(change) == [(f"dlq.volumes.{OTHER}", "ID_TAKEN", "75")]
    assert meets(going, OTHER, (1, 80)).result.problems[0].code == "ID_TAKEN", "it is not theirs any more"
    edited = row_after(meets(going, KEY, (1, 81), spec(KEY, "blue")))
    born = end(edited)
    assert (born.key, born.spec["colour"], born.deleting) == (KEY, "blue", False)
    assert (born.epoch, born.sequence) == (1, 81)


def test_a_cascade_of_the_new_owner_does_not_reach_what_hangs_on_the_old_one() -> None:
    early = replace(row_after(meets(None, OTHER, LATER)), ever_provisioned=True)
    going = row_after(meets(early, KEY, FIRST))
    assert not row_after(meets(going, KEY, (1, 82), b'{"delete": true, "cascade": true}')).cascade
    gone = row_after(meets(early, OTHER, (1, 82), b'{"delete": true, "cascade": true}'))
    assert gone.cascade, "its owner's own does"


def test_an_owner_who_withdraws_before_its_life_began_leaves_the_id_free_of_both() -> None:
    early = replace(row_after(meets(None, OTHER, LATER)), ever_provisioned=True)
    going = row_after(meets(early, KEY, FIRST))
    withdrawn = row_after(meets(going, KEY, (1, 82), b'{"delete": true}'))
    assert end(withdrawn).gone_at == NOW


def test_what_a_rebuild_publishes_of_a_takeover_is_taken_again() -> None:
    early = replace(row_after(meets(None, OTHER, LATER)), ever_provisioned=True)
    going = row_after(meets(early, KEY, FIRST))
    wish = wish_of(going)
    assert wish is not None
    assert (wish.key, [position for position, _ in wish.messages]) == (KEY, [FIRST])
    again = meets(going, KEY, (2, 1), wish.messages[0][1])
    assert again.result.what is Ingested.NEXT_LIFE
    born = end(row_after(again))
    assert (born.key, born.epoch, born.sequence, born.deleting) == (KEY, 2, 1, False)


def end(row: Row) -> Row:
    """The deletion is proved."""
    until = NOW + timedelta(seconds=20)
    held = replace(row, work=replace(row.work, lease_owner="me", lease_until=until, lease_epoch=7))
    lease = Lease(held.key, "me", 7, until, held.work.wake_seq, NOW)
    change = finish(held, NOW, kind=KIND, end=Finished(lease, held.generation, Done(), Timing(10, 10, 300)))
    return row_after(change)


def test_a_first_message_that_is_refused_itself_takes_nothing() -> None:
    early = row_after(meets(None, OTHER, LATER))
    change = meets(early, KEY, FIRST, spec(KEY, "invisible"))
    assert change.result.what is Ingested.REFUSED
    assert change.result.problems[0].code != "ID_TAKEN"
    assert change.row is None


def test_a_refused_spec_holds_no_id() -> None:
    refused = row_after(meets(None, OTHER, FIRST, spec(OTHER, "invisible")))
    assert refused.generation == 0
    change = meets(refused, KEY, LATER)
    row = row_after(change)
    assert (change.result.what, row.key) == (Ingested.ACCEPTED, KEY)
    assert letters(change) == []


def test_nobody_deletes_what_is_another_s() -> None:
    row = row_after(meets(None, OTHER, LATER))
    for position in (FIRST, (1, 76)):
        change = meets(row, KEY, position, b'{"delete": true}')
        assert change.result.problems[0].code == "ID_TAKEN"
        assert change.row is None
