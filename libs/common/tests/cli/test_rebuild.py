"""Either side from the other: the mapping of a STATUS message to a row, and both directions over a memory store."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead import rebuild
from roadstead.bus.epochs import Known, Life, Seen
from roadstead.clock import SystemClock
from roadstead.events import dump
from roadstead.rebuild import Last, known_of, to_bus, to_database
from roadstead.reconcile import rebuild as pure
from roadstead.reconcile.status import status_document
from roadstead.store.api import Change, Query, Row, Work
from roadstead.store.memory import MemoryStore
from roadstead.subjects import Key, credential_subject, spec_subject, status_subject

REGION = "7377fb11-e0f1-53a2-b166-13fba73ab5a5"
NOW = datetime(2026, 5, 4, 3, 2, 1, 500_000, tzinfo=UTC)


def key(kind: str = "network", number: int = 1) -> Key:
    project = "_" if kind == "region" else "demo"
    return Key(REGION, project, kind, f"71b9f21c-972a-508c-8e8f-{number:012d}")


def row(kind: str = "network", number: int = 1, **more: Any) -> Row:
    made = Row(
        key=key(kind, number),
        identity=key(kind, number).id,
        metadata={
            "name": f"{kind}-{number}",
            "organizationId": "acme",
            **({} if kind == "region" else {"projectId": "demo"}),
        },
        spec={"prefix": "10.0.0.0/24"},
        generation=3,
        incarnation=2,
        epoch=1,
        sequence=10 + number,
        born_epoch=1,
        born_sequence=4,
        status={
            "observedGeneration": 3,
            "provisioningStatus": "provisioned",
            "conditions": [],
            "made": {"create": 1},
        },
        resource_version=7,
        consumers=(key("server", 9).reference,),
        references={"identity/x": 3},
        ever_provisioned=True,
        created_at=NOW - timedelta(days=1),
    )
    return replace(made, **more)


# Hypothesis takes bounds without a zone and gives the zone itself.
BOUNDS = (
    datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None),
)
times = st.datetimes(*BOUNDS, timezones=st.just(UTC)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
)
rows = st.builds(
    lambda kind, number, paused, until, deleting, cascade, gone, refusal, more: row(
        kind,
        number,
        paused=paused or until is not None,
        paused_until=until,
        deleting=deleting is not None,
        deletion_timestamp=deleting,
        cascade=cascade and deleting is not None,
        gone_at=gone if deleting is not None else None,
        refusal=refusal,
        **more,
    ),
    st.sampled_from(["region", "identity", "network", "server", "volume", "loadbalancer"]),
    st.integers(1, 99),
    st.booleans(),
    st.none() | times,
    st.none() | times,
    st.booleans(),
    st.none() | times,
    st.just(()),
    st.fixed_dictionaries(
        {},
        optional={
            "born_sequence": st.integers(0, 200),
            "born_epoch": st.integers(1, 3),
            "epoch": st.integers(1, 3),
            "ever_provisioned": st.booleans(),
            "resource_version": st.integers(0, 10**9),
            "references": st.dictionaries(st.text(min_size=1), st.integers(-5, 5), max_size=3),
            "spec": st.dictionaries(
                st.text(min_size=1), st.integers(-(2**53), 2**53) | st.text(), max_size=4
            ),
        },
    ),
)


@given(rows)
def test_a_row_rebuilt_from_its_status_publishes_the_very_same_status(made: Row) -> None:
    document = orjson.loads(dump(status_document(made)))
    again = pure.row_of(document, NOW, NOW)
    assert orjson.loads(dump(status_document(again))) == document
    assert (again.key, again.epoch, again.sequence) == (made.key, made.epoch, made.sequence)
    assert (again.born_epoch, again.born_sequence) == (made.born_epoch, made.born_sequence)
    assert (again.deleting, again.cascade, again.gone_at) == (made.deleting, made.cascade, made.gone_at)
    assert (again.paused, again.paused_until) == (made.paused, made.paused_until)


def test_a_rebuilt_row_counts_as_just_written_and_falls_due_after_the_settling_time() -> None:
    due = NOW + timedelta(seconds=65)
    again = pure.row_of(status_document(row()), NOW, due, record="sealed", record_version=4)
    assert (again.written_at, again.observed_at, again.work.due_at) == (NOW, NOW, due)
    assert (again.record, again.record_version) == ("sealed", 4)


def test_a_tombstone_stays_one_and_nothing_of_it_is_due() -> None:
    gone = row(deleting=True, deletion_timestamp=NOW, gone_at=NOW)
    again = pure.row_of(status_document(gone), NOW, NOW, record="sealed")
    assert again.gone_at == NOW
    assert again.work == Work()
    assert again.record is None


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": None},
        {"spec": 5},
        {"specPosition": {}},
        {"kind": "castle"},
        {"resourceVersion": "x"},
        {"references": []},
        {"gone": "yesterday"},
    ],
)
def test_a_message_that_is_no_status_is_refused_and_never_half_a_row(change: Mapping[str, Any]) -> None:
    with pytest.raises(pure.NotAStatus):
        pure.row_of({**status_document(row()), **change}, NOW, NOW)


# ---------------------------------------------------------------- both directions


class Broker:
    """`Streams` over lists."""

    def __init__(self, created: int = 1_000_000) -> None:
        self.messages: list[tuple[str, str, Last]] = []
        self.created_at = created
        self.sequences: dict[str, int] = {}

    def put(self, subject: str, data: bytes, time: int = 0) -> int:
        stream = {"spec": "SPEC", "status": "STATUS", "credential": "CREDENTIAL"}[subject.split(".")[0]]
        number = self.sequences[stream] = self.sequences.get(stream, 0) + 1
        self.messages.append((stream, subject, Last(subject, number, time or self.created_at + number, data)))
        return number

    def bodies(self, subject: str) -> list[Any]:
        return [orjson.loads(m.data) for _, s, m in self.messages if s == subject]

    async def last(self, stream: str, subject: str) -> Last | None:
        found = [m for s, name, m in self.messages if (s, name) == (stream, subject)]
        return found[-1] if found else None

    async def all_last(self, stream: str, subject: str) -> list[Last]:
        head, kind = subject.split(".")[0], subject.split(".")[3:4]
        found: dict[str, Last] = {}
        for s, name, message in self.messages:
            if (
                s == stream
                and name.startswith(head)
                and (not kind or kind == ["*"] or name.split(".")[3] == kind[0])
            ):
                found.pop(name, None)
                found[name] = message
        return list(found.values())

    async def seen(self, stream: str, sequence: int) -> Seen:
        return Seen(self.created_at, self.sequences.get(stream, 0), None)

    async def compare_and_publish(self, subject: str, body: bytes, expected: int) -> int | None:
        last = await self.last("SPEC" if subject.startswith("spec") else "CREDENTIAL", subject)
        return self.put(subject, body) if (last.sequence if last else 0) == expected else None

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        return 1, self.put(subject, payload)

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        raise AssertionError("a rebuild purges nothing")


async def filled(*made: Row) -> MemoryStore:
    store = MemoryStore(SystemClock())
    for each in made:
        await store.change(each.key, lambda _row, _now, each=each: Change(each))  # type: ignore[misc]  # a default, not a parameter
    return store


async def test_emptied_streams_get_accepted_specs_statuses_and_credentials_back() -> None:
    region, identity = row("region"), row("identity", record="sealed", record_version=2)
    store = await filled(region, identity)
    await store.change_document(
        f"region-credential.{region.key.id}", lambda _d, _n: ({"version": 5, "sealed": "r"}, None)
    )
    broker = Broker()
    counts = await to_bus("identity", store, broker, SystemClock())
    assert (counts.specs, counts.statuses, counts.credentials, counts.kept) == (2, 2, 2, 0)
    assert broker.bodies(spec_subject(identity.key)) == [
        {"metadata": identity.metadata, "spec": identity.spec}
    ]
    (status,) = broker.bodies(status_subject(identity.key))
    assert status["resourceVersion"] == identity.resource_version + 1
    assert broker.bodies(credential_subject(REGION, identity.key.id)) == [
        {"version": 2, "incarnation": 2, "sealed": "sealed"}
    ]
    assert broker.bodies(credential_subject(region.key.id, None)) == [{"version": 5, "sealed": "r"}]


async def test_the_same_again_publishes_no_second_spec_or_credential() -> None:
    store = await filled(row("identity", record="sealed", record_version=2))
    await store.change_document(
        "stream.SPEC", lambda _d, _n: (Known(500, sequence=11, time=900).to_document(), None)
    )
    broker = Broker(created=1_000_000)
    await to_bus("identity", store, broker, SystemClock())
    before = len(broker.messages)
    planned = await to_bus("identity", store, broker, SystemClock(), dry_run=True)
    again = await to_bus("identity", store, broker, SystemClock())
    assert (again.specs, again.statuses, again.credentials, again.kept) == (0, 0, 0, 3)
    assert planned == again
    assert len(broker.messages) == before


async def test_a_status_that_lags_behind_its_row_is_published_again() -> None:
    held = row("network")
    broker = Broker()
    broker.put(status_subject(held.key), dump({**status_document(held), "resourceVersion": 3}))
    counts = await to_bus("network", await filled(held), broker, SystemClock())
    assert counts.statuses == 1
    assert broker.bodies(status_subject(held.key))[-1]["resourceVersion"] == held.resource_version + 1


async def test_an_edit_that_waits_in_the_stream_is_not_overwritten() -> None:
    held = row("network", epoch=1, sequence=1)
    store = await filled(held)
    broker = Broker()
    await store.change_document(
        "stream.SPEC",
        lambda _d, _n: (Known(broker.created_at, sequence=1, time=broker.created_at + 1).to_document(), None),
    )
    broker.put(spec_subject(held.key), b'{"spec": "as accepted"}')
    broker.put(spec_subject(held.key), b'{"spec": "the edit"}')
    counts = await to_bus("network", store, broker, SystemClock())
    assert (counts.specs, counts.kept) == (0, 1)
    assert broker.bodies(spec_subject(held.key))[-1] == {"spec": "the edit"}


async def test_a_stream_that_came_back_older_gets_what_was_accepted_since() -> None:
    held = row("network", epoch=1, sequence=40)
    store = await filled(held)
    broker = Broker()
    await store.change_document(
        "stream.SPEC",
        lambda _d, _n: (
            Known(broker.created_at, sequence=40, time=broker.created_at + 40).to_document(),
            None,
        ),
    )
    broker.put(spec_subject(held.key), b'{"spec": "long ago"}')
    counts = await to_bus("network", store, broker, SystemClock())
    assert counts.specs == 1
    assert broker.bodies(spec_subject(held.key))[-1]["spec"] == held.spec


async def test_a_deletion_under_way_is_published_as_one_with_what_is_to_follow() -> None:
    follows = {"metadata": {"name": "n"}, "spec": {"prefix": "10.9.0.0/24"}, "position": [1, 30], "cause": {}}
    held = row("network", deleting=True, deletion_timestamp=NOW, cascade=True, next_spec=follows)
    broker = Broker()
    await to_bus("network", await filled(held), broker, SystemClock())
    assert broker.bodies(spec_subject(held.key)) == [
        {"delete": True, "cascade": True},
        {"metadata": {"name": "n"}, "spec": {"prefix": "10.9.0.0/24"}},
    ]


async def test_what_follows_a_deletion_is_published_alone_where_the_stream_has_the_deletion() -> None:
    follows = {"metadata": {"name": "n"}, "spec": {"prefix": "10.9.0.0/24"}, "position": [1, 30], "cause": {}}
    held = row("network", deleting=True, deletion_timestamp=NOW, sequence=1, next_spec=follows)
    broker = Broker()
    broker.put(spec_subject(held.key), b'{"delete": true}')
    await to_bus("network", await filled(held), broker, SystemClock())
    assert broker.bodies(spec_subject(held.key)) == [
        {"delete": True},
        {"metadata": {"name": "n"}, "spec": {"prefix": "10.9.0.0/24"}},
    ]


async def test_a_spec_that_waits_for_an_id_another_project_lost_is_published_under_its_own_subject() -> None:
    first = Key(REGION, "theirs", "network", key().id)
    metadata = {"name": "n", "projectId": "theirs"}
    follows = {"metadata": metadata, "spec": {}, "position": [1, 10], "cause": {}, "key": str(first)}
    held = row("network", deleting=True, deletion_timestamp=NOW, next_spec=follows)
    broker = Broker()
    assert (await to_bus("network", await filled(held), broker, SystemClock())).specs == 1
    assert broker.bodies(spec_subject(held.key)) == [], "what was refused is nobody's wish"
    assert broker.bodies(spec_subject(first)) == [{"metadata": metadata, "spec": {}}]


async def test_a_dry_run_counts_and_touches_nothing() -> None:
    store, broker = await filled(row("network")), Broker()
    counts = await to_bus("network", store, broker, SystemClock(), dry_run=True)
    assert (counts.specs, counts.statuses) == (1, 1)
    assert broker.messages == []
    held = await store.get("network", key().id)
    assert held is not None
    assert held.resource_version == 7


async def test_an_emptied_database_gets_rows_documents_and_positions_back() -> None:
    broker = Broker()
    network = row("network", status={**row().status, "openstack": {"vlanID": 77}})
    identity = row("identity")
    for made in (network, identity, row("server")):
        broker.put(status_subject(made.key), dump(status_document(made)))
    broker.put(
        credential_subject(REGION, identity.key.id), dump({"version": 6, "incarnation": 2, "sealed": "s"})
    )
    broker.put(credential_subject(REGION, None), dump({"version": 1, "sealed": "r"}))
    seen: list[Any] = []

    def documents_of(statuses: Any, credentials: Any) -> Mapping[str, Any]:
        seen.append((statuses, credentials))
        return {"named": {"x": 1}}

    store = MemoryStore(SystemClock())
    counts = await to_database("identity", store, broker, documents_of, settling=65)
    assert (counts.rows, counts.credentials, counts.unreadable) == (1, 1, [])
    held = await store.get("identity", identity.key.id)
    assert held is not None
    assert (held.record, held.record_version, held.spec) == ("s", 6, identity.spec)
    assert held.work.due_at is not None
    assert timedelta(seconds=60) < held.work.due_at - datetime.now(UTC) < timedelta(seconds=70)
    assert await store.document("named") == {"x": 1}
    assert [s["kind"] for s in seen[0][0]] == ["identity"]
    assert set(seen[0][1]) == {(REGION, "_region"), (REGION, identity.key.id)}
    known = Known.of_document(await store.document("stream.SPEC") or {})
    assert (known.created, known.epoch, known.reread) == (broker.created_at, 1, 0)
    assert await store.list(Query("server")) == [], "rows of others are not ours to make"


async def test_rows_that_are_there_stay_and_bad_messages_are_named() -> None:
    broker, held = Broker(), row("network", spec={"prefix": "newer"})
    broker.put(status_subject(held.key), dump(status_document(row("network"))))
    broker.put(status_subject(key("network", 2)), b"not json")
    broker.put(status_subject(key("network", 3)), b'{"kind": "network"}')
    store = await filled(held)
    counts = await to_database("network", store, broker, lambda _s, _c: {}, settling=65)
    assert (counts.rows, counts.kept, len(counts.unreadable)) == (0, 1, 2)
    again = await store.get("network", held.key.id)
    assert again is not None
    assert again.spec == {"prefix": "newer"}


@pytest.mark.parametrize("present", [(), (1,), (1, 2, 3)])
async def test_a_dry_run_from_the_bus_counts_what_the_run_then_makes(present: tuple[int, ...]) -> None:
    broker, made = Broker(), [row("identity", number) for number in (1, 2, 3)]
    for each in made:
        broker.put(status_subject(each.key), dump(status_document(each)))
        broker.put(
            credential_subject(REGION, each.key.id), dump({"version": 6, "incarnation": 2, "sealed": "s"})
        )
    store = await filled(*(each for number, each in enumerate(made, 1) if number in present))
    planned = await to_database("identity", store, broker, lambda _s, _c: {}, settling=65, dry_run=True)
    assert len(await store.list(Query("identity"))) == len(present)
    counts = await to_database("identity", store, broker, lambda _s, _c: {}, settling=65)
    missing = 3 - len(present)
    assert (counts.rows, counts.credentials, counts.kept) == (missing, missing, len(present))
    assert planned == counts


async def test_a_credential_of_an_earlier_life_is_not_given_to_this_one() -> None:
    broker, identity = Broker(), row("identity")
    broker.put(status_subject(identity.key), dump(status_document(identity)))
    broker.put(
        credential_subject(REGION, identity.key.id), dump({"version": 3, "incarnation": 1, "sealed": "old"})
    )
    store = MemoryStore(SystemClock())
    await to_database("identity", store, broker, lambda _s, _c: {}, settling=65)
    held = await store.get("identity", identity.key.id)
    assert held is not None
    assert held.record is None


def test_positions_alone_tell_the_newest_epoch_and_where_it_begins() -> None:
    assert known_of([], 5, 9) == Known(5, reread=0)
    assert known_of([(1, 8), (1, 3)], 5, 9) == Known(5, reread=0)
    known = known_of([(1, 80), (3, 12), (3, 20)], 5, 900)
    assert known.lives == (Life(2), Life(3, 11, 900))
    assert known.epoch_of(12, 100) == 3, "at and behind the lowest position of the newest epoch"
    assert known.epoch_of(11, 100) == 2, "below it, and older than the rebuild"
    assert known.epoch_of(5, 901) == 3, "whatever is published from now on is newer than every row"
    assert rebuild.kinds_of("network") == ["network", "securitygroup"]
