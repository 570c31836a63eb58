"""A row from its STATUS message, and the messages from a row: what `roadstead rebuild` stands on (architecture.md section 5).

A STATUS message carries the accepted spec and all that a lost database would need.  What it does not carry is only ever a memory of
the last minutes: intents without an answer, the time of the last write, the last decision.  So a rebuilt row counts as just written,
and falls due no sooner than the settling time, in which every request that was under way has shown itself or is void.

Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roadstead.clock import parse_time
from roadstead.events import dump
from roadstead.reconcile.accepting import group_of
from roadstead.reconcile.rules import published
from roadstead.store.api import Change, Row, Work
from roadstead.subjects import NO_PROJECT, Key, parse_key

ADDED = ("id", "generation", "incarnation", "creationTime", "deletionTimestamp")
CAUSE = {"reason": "rebuilt"}


class NotAStatus(ValueError):
    """A message that no row can be made from; the text says what it lacks."""


def row_of(
    document: Mapping[str, Any],
    now: datetime,
    due_at: datetime,
    record: str | None = None,
    record_version: int = 0,
) -> Row:
    """The row that published this STATUS document.  record: the kind's private state as it was sealed on CREDENTIAL.

    NotAStatus when it is no such document.
    """
    try:
        metadata = dict(document["metadata"])
        spec = dict(document["spec"])
        position, born = document["specPosition"], document.get("bornPosition") or document["specPosition"]
        key = _key(document, metadata)
        gone = _moment(document.get("gone"))
        paused = document.get("paused")
        status = dict(document["status"])
        row = Row(
            key=key,
            identity=key.id,
            metadata={k: v for k, v in metadata.items() if k not in ADDED},
            spec=spec,
            generation=int(metadata["generation"]),
            incarnation=int(metadata["incarnation"]),
            epoch=int(position["epoch"]),
            sequence=int(position["sequence"]),
            born_epoch=int(born["epoch"]),
            born_sequence=int(born["sequence"]),
            deleting="deletionTimestamp" in metadata,
            cascade=document.get("cascade") is True,
            deletion_timestamp=_moment(metadata.get("deletionTimestamp")),
            gone_at=gone,
            refusal=tuple(dict(problem) for problem in status.get("refusal", ())),
            observed_at=now,
            status=status,
            resource_version=int(document["resourceVersion"]),
            consumers=tuple(str(consumer) for consumer in document["consumers"]),
            references={str(k): int(v) for k, v in document["references"].items()},
            record=None if gone is not None else record,
            record_version=record_version,
            written_at=now,
            ever_provisioned=document.get("everProvisioned") is True,
            paused=bool(paused),
            paused_until=_moment(paused) if isinstance(paused, str) else None,
            created_at=_moment(metadata.get("creationTime")) or now,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NotAStatus(f"the message lacks or misspells {error}") from None
    except ValueError as error:
        raise NotAStatus(str(error)) from None
    work = Work() if gone is not None or row.generation == 0 else Work(due_at=due_at, cause=CAUSE)
    return Row(**{**row.__dict__, "identity": group_of(key, row.metadata, spec), "work": work})


def _key(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Key:
    project = str(metadata.get("projectId") or NO_PROJECT)
    return parse_key(f"status.{metadata['regionId']}.{project}.{document['kind']}.{metadata['id']}")


def _moment(text: Any) -> datetime | None:
    return parse_time(str(text)) if text is not None else None


@dataclass(frozen=True)
class Wish:
    """What SPEC should hold on one subject about a row: messages in order, each with the position at which it was accepted."""

    key: Key
    messages: tuple[tuple[tuple[int, int], bytes], ...]


def wish_of(row: Row) -> Wish | None:
    """The accepted spec, or the deletion and what is to follow; None for a tombstone and for what was never accepted.

    What follows may be another project's, whose message came first: then it alone is wished for, on its own subject.  The life that
    ends for it was refused and is no wish of anybody.
    """
    if row.gone_at is not None or row.generation == 0:
        return None
    at, follows = (row.epoch, row.sequence), row.next_spec
    if not row.deleting:
        return Wish(row.key, ((at, _body(row.metadata, row.spec)),))
    then: tuple[tuple[tuple[int, int], bytes], ...] = ()
    if follows is not None:
        epoch, sequence = follows["position"]
        then = (((int(epoch), int(sequence)), _body(follows["metadata"], follows["spec"])),)
        if "key" in follows:
            return Wish(Key(*follows["key"].split(".")), then)
    going = dump({"delete": True, **({"cascade": True} if row.cascade else {})})
    return Wish(row.key, ((at, going), *then))


def _body(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> bytes:
    return dump({"metadata": dict(metadata), "spec": dict(spec)})


def credential_body(row: Row) -> bytes | None:
    """The row's CREDENTIAL message, sealed as it is; None where it has no record."""
    if row.record is None or row.gone_at is not None:
        return None
    return dump({"version": row.record_version, "incarnation": row.incarnation, "sealed": row.record})


def republish(row: Row | None, _now: datetime) -> Change:
    """The row's STATUS once more, as a newer version, so that readers who know the last one take it too."""
    if row is None:
        return Change(result=False)
    fresh, message = published(row)
    return Change(fresh, [message], result=True)


def restore(row: Row | None, _now: datetime, *, made: Row) -> Change:
    """Insert the rebuilt row; what is there already stays."""
    return Change(result=False) if row is not None else Change(made, result=True)
