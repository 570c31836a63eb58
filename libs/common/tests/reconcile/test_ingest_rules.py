"""What a spec message makes of a row (architecture.md sections 3.2, 3.10, 3.11), on the pure rule alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.events import Refusal, read_spec
from roadstead.reconcile import ingest as rules
from roadstead.reconcile.accepting import Ingested, IngestResult
from roadstead.reconcile.status import conditions_of
from roadstead.store.api import Row
from roadstead.subjects import Key

from .toy import IDENT, KEY, KIND, PROJECT, REGION

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def spec(colour: str = "red", *, key: Key = KEY, **parts: Any) -> bytes:
    import json

    metadata = {"name": "tin", "organizationId": "org", "projectId": key.project, **parts.pop("metadata", {})}
    return json.dumps({"metadata": metadata, "spec": {"colour": colour, **parts}}).encode()


def ingest(
    row: Row | None, raw: bytes, sequence: int, *, epoch: int = 1, key: Key = KEY
) -> tuple[Row | None, IngestResult]:
    message = read_spec(raw)
    assert not isinstance(message, Refusal), message
    cause = {"subject": f"spec.{key}", "sequence": sequence}
    change = rules.ingest(
        row, NOW, kind=KIND, key=key, message=message, position=(epoch, sequence), cause=cause
    )
    return (change.row if change.row is not None else row), change.result


DELETE = b'{"delete": true}'


def test_first_spec_makes_generation_one_due_now() -> None:
    row, result = ingest(None, spec(), 5)
    assert row is not None
    assert (result.what, row.generation, row.incarnation) == (Ingested.ACCEPTED, 1, 1)
    assert row.work.due_at == NOW
    assert conditions_of(row.status)["Accepted"]["status"] == "True"
    assert conditions_of(row.status)["Available"]["reason"] == "Provisioning"


def test_the_same_body_again_changes_no_generation_and_wakes_nobody() -> None:
    row, _ = ingest(None, spec(), 5)
    assert row is not None
    again, result = ingest(row, spec(), 6)
    assert again is not None
    assert result.what is Ingested.UNCHANGED
    assert (again.generation, again.work.wake_seq, again.resource_version) == (
        1,
        row.work.wake_seq,
        row.resource_version,
    )
    assert again.sequence == 6


def test_an_edit_raises_the_generation_once() -> None:
    row, _ = ingest(None, spec("red"), 5)
    row, result = ingest(row, spec("blue"), 6)
    assert row is not None
    assert (result.generation, row.spec["colour"]) == (2, "blue")


@pytest.mark.parametrize("position", [(1, 5), (1, 4), (0, 99)])
def test_an_older_or_repeated_event_is_dropped(position: tuple[int, int]) -> None:
    row, _ = ingest(None, spec("red"), 5)
    after, result = ingest(row, spec("blue"), position[1], epoch=position[0])
    assert result.what is Ingested.OLDER
    assert after is row


def test_a_lower_sequence_of_a_later_stream_life_is_newer() -> None:
    row, _ = ingest(None, spec("red"), 500)
    row, result = ingest(row, spec("blue"), 3, epoch=2)
    assert result.what is Ingested.ACCEPTED
    assert row is not None
    assert (row.epoch, row.sequence) == (2, 3)


def test_a_refused_edit_leaves_the_accepted_spec_in_force() -> None:
    row, _ = ingest(None, spec("red"), 5)
    row, result = ingest(row, spec("invisible", shape="square"), 6)
    assert row is not None
    assert [p.code for p in result.problems] == ["COLOUR", "SHAPE_IMMUTABLE"]
    assert (row.spec["colour"], row.generation, row.sequence) == ("red", 1, 5)
    accepted = conditions_of(row.status)["Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "Refused")
    assert "no such colour" in accepted["message"]
    assert "the shape cannot be changed" in accepted["message"]


def test_a_good_edit_after_a_refused_one_clears_the_refusal() -> None:
    row, _ = ingest(None, spec("red"), 5)
    row, _ = ingest(row, spec("invisible"), 6)
    row, result = ingest(row, spec("green"), 7)
    assert row is not None
    assert result.what is Ingested.ACCEPTED
    assert conditions_of(row.status)["Accepted"]["status"] == "True"
    assert "refusal" not in row.status


def test_a_refused_first_spec_is_shown_and_realizes_nothing() -> None:
    row, result = ingest(None, spec("invisible"), 5)
    assert row is not None
    assert result.what is Ingested.REFUSED
    assert (row.generation, row.work.due_at) == (0, None)
    row, result = ingest(row, spec("red"), 6)
    assert row is not None
    assert (result.what, row.generation) == (Ingested.ACCEPTED, 1)


def test_another_project_cannot_take_or_touch_an_id() -> None:
    row, _ = ingest(None, spec("red"), 5)
    foreign = Key(REGION, "project-b", "volume", IDENT)
    after, result = ingest(row, spec("blue", key=foreign), 6, key=foreign)
    assert (result.what, result.problems[0].code) == (Ingested.REFUSED, "ID_TAKEN")
    assert after is row


def test_a_project_that_differs_from_the_subject_is_refused() -> None:
    _, result = ingest(None, spec(metadata={"projectId": "project-b"}), 5)
    assert (result.what, result.problems[0].code) == (Ingested.REFUSED, "PROJECT_MISMATCH")


def test_unknown_and_misspelt_fields_are_kept_and_named() -> None:
    row, result = ingest(None, spec(colur="blue", metadata={"nmae": "x"}), 5)
    assert row is not None
    assert result.what is Ingested.ACCEPTED
    text = conditions_of(row.status)["Accepted"]["message"]
    assert "spec.colur" in text
    assert "metadata.nmae" in text
    assert row.spec["colur"] == "blue"


def test_a_delete_for_what_never_was_is_remembered() -> None:
    row, result = ingest(None, DELETE, 7)
    assert row is not None
    assert (result.what, row.gone_at) == (Ingested.ABSENT, NOW)
    row, result = ingest(row, spec(), 6)
    assert result.what is Ingested.OLDER


def test_oc_38_events_out_of_order_end_the_same_in_every_order() -> None:
    import itertools

    events = {5: spec("red"), 6: spec("blue"), 7: DELETE}
    for order in itertools.permutations(events):
        row: Row | None = None
        generations = []
        for sequence in (*order, 5):
            row, _ = ingest(row, events[sequence], sequence)
            assert row is not None
            generations.append(row.generation)
        assert row is not None
        assert generations == sorted(generations)
        assert row.deleting or row.gone_at is not None
        assert row.sequence == 7


def test_an_edit_while_deleting_waits_for_the_next_life() -> None:
    row, _ = ingest(None, spec("red"), 5)
    row, _ = ingest(row, DELETE, 6)
    row, result = ingest(row, spec("blue"), 7)
    assert row is not None
    assert result.what is Ingested.NEXT_LIFE
    assert row.deleting
    assert row.spec["colour"] == "red"
    assert row.next_spec is not None


def test_the_same_id_after_a_delete_is_the_next_incarnation() -> None:
    row, _ = ingest(None, DELETE, 6)
    row, result = ingest(row, spec("blue"), 7)
    assert row is not None
    assert (result.what, row.incarnation) == (Ingested.ACCEPTED, 1)
    assert row.gone_at is None
    assert row.work.due_at == NOW


def test_ref_004_pause_is_a_field_of_the_spec_that_ingest_keeps() -> None:
    row, _ = ingest(None, spec(pause=True), 5)
    assert row is not None
    assert row.spec["pause"] is True


BAD: dict[str, bytes] = {
    "NOT_JSON": b"{not json",
    "NOT_AN_OBJECT": b"[1, 2]",
    "BAD_ENVELOPE": b'{"metadata": [], "spec": {}}',
    "TOO_LARGE": b'{"metadata": {"name": "' + b"x" * 300_000 + b'"}, "spec": {}}',
    "TOO_DEEP": b'{"spec": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "NUL": b'{"metadata": {"name": "a\\u0000b"}, "spec": {}}',
}


@pytest.mark.parametrize("code", list(BAD))
def test_bad_bytes_are_refused_with_their_reason(code: str) -> None:
    refusal = read_spec(BAD[code])
    assert isinstance(refusal, Refusal)
    assert refusal.code == code
    assert refusal.message


@given(st.binary(max_size=400))
def test_no_bytes_raise(raw: bytes) -> None:
    read_spec(raw)


@given(
    st.dictionaries(
        st.sampled_from(["metadata", "spec", "delete", "cascade", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
            ),
        ),
    )
)
def test_no_object_raises_and_nothing_but_a_good_one_is_accepted(body: dict[str, Any]) -> None:
    from roadstead.events import dump

    try:
        raw = dump(body)
    except TypeError:  # an integer beyond 64 bits is no JSON of ours
        return
    message = read_spec(raw)
    if isinstance(message, Refusal):
        return
    change = rules.ingest(None, NOW, kind=KIND, key=KEY, message=message, position=(1, 1), cause={})
    assert isinstance(change.result, IngestResult)
    if change.result.what is Ingested.ACCEPTED:
        assert message.metadata["organizationId"]
        assert message.spec["colour"]


def test_the_project_of_a_spec_is_the_subjects() -> None:
    row, _ = ingest(None, spec(metadata={"projectId": PROJECT}), 5)
    assert row is not None
    assert row.metadata["projectId"] == PROJECT


def test_a_delete_that_arrives_after_the_spec_that_followed_it_still_ends_the_old_life() -> None:
    import itertools

    events = {5: spec("red"), 6: DELETE, 7: spec("blue")}
    for order in itertools.permutations(events):
        row: Row | None = None
        for sequence in (*order, 6, 5):
            row, _ = ingest(row, events[sequence], sequence)
        assert row is not None
        wished = row.next_spec["spec"] if row.next_spec is not None else row.spec
        assert wished["colour"] == "blue", order
        assert row.deleting == (order[0] == 5), order


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b'{"spec": {}, "spec": {"colour": "red"}}', "spec"),
        (b'{"metadata": {"name": "a", "name": "b"}, "spec": {}}', "metadata.name"),
        (b'{"spec": {"list": [{}, {"x": {"y": 1, "y": 1}}]}}', "spec.list[1].x.y"),
        (b'{"spec": {"caf\\u00e9": 1, "caf\xc3\xa9": 2}}', "spec.caf\u00e9"),
    ],
)
def test_a_field_that_stands_twice_is_refused_by_its_path(raw: bytes, field: str) -> None:
    refusal = read_spec(raw)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == ("DUPLICATE_FIELD", field)
    assert refusal.message == f"{field} stands twice in the message; which one counts?"


@pytest.mark.parametrize(
    "text", ["a\x1b[31mb", "two\nlines", "tab\there", "\x7f", "next\u0085line", "line\u2028break"]
)
@pytest.mark.parametrize(
    ("path", "make"),
    [
        ("metadata.name", lambda text: {"metadata": {"name": text}, "spec": {}}),
        ("metadata.organizationId", lambda text: {"metadata": {"organizationId": text}, "spec": {}}),
        ("spec.listeners[1].pool.name", lambda text: {"spec": {"listeners": [{}, {"pool": {"name": text}}]}}),
    ],
)
def test_control_characters_in_names_are_refused_by_their_path(path: str, make: Any, text: str) -> None:
    import json

    refusal = read_spec(json.dumps(make(text)).encode())
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == ("CONTROL_CHARACTER", path)


def test_names_of_all_languages_and_texts_of_many_lines_are_fine() -> None:
    import json

    body = {
        "metadata": {"name": "Bücher 書庫 👩‍💻", "description": "one\ntwo"},
        "spec": {"userData": "#!/bin/sh\n"},
    }
    assert not isinstance(read_spec(json.dumps(body).encode()), Refusal)


def test_a_list_is_told_to_be_an_object_and_nothing_about_fields() -> None:
    refusal = read_spec(b"[]")
    assert isinstance(refusal, Refusal)
    assert refusal.message == "the message must be a JSON object"


def test_the_words_of_a_rule_stand_without_those_of_the_library_that_ran_it() -> None:
    from pydantic import BaseModel, ValidationError, field_validator

    class Tin(BaseModel):
        size: int

        @field_validator("size")
        @classmethod
        def _fits(cls, value: int) -> int:
            raise ValueError("must fit the shelf")

    with pytest.raises(ValidationError) as caught:
        Tin(size=3)
    assert [p.message for p in rules.problems_of(caught.value, "spec")] == ["spec.size: must fit the shelf"]
