"""Who holds a volume: at most one server (resources.md section 6).

Compare-and-set on the volume's own row, so that of two servers one gets it.  A claim keeps a deletion waiting; letting go of it
makes that deletion due.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from roadstead.reconcile.rules import published, wake
from roadstead.store.api import Change, Row

KIND = "Server"


@dataclass(frozen=True)
class Claim:
    """A server by its id."""

    id: str

    @classmethod
    def read(cls, value: Any) -> "Claim | None":
        """From `{"kind": "Server", "id": UUID}`; None for anything else."""
        if (
            not isinstance(value, Mapping)
            or value.get("kind") != KIND
            or not isinstance(value.get("id"), str)
        ):
            return None
        try:
            return cls(str(UUID(value["id"])))
        except ValueError:
            return None

    @property
    def document(self) -> dict[str, str]:
        return {"kind": KIND, "id": self.id}


class Claiming(StrEnum):
    """What became of a request."""

    HELD = "held"
    RELEASED = "released"
    UNKNOWN = "unknown"
    DELETING = "deleting"
    HELD_BY_OTHER = "held by another"


def holder(row: Row) -> Claim | None:
    """Who claims it now."""
    return Claim.read(row.status.get("claimRef"))


def take(row: Row | None, _now: datetime, claimant: Claim) -> Change:
    """Hold it, unless another does or it is going; asking for what one holds changes nothing, also while it is going."""
    if row is None or row.generation == 0 or row.gone_at is not None:
        return Change(result=Claiming.UNKNOWN)
    held = holder(row)
    if held == claimant:
        return Change(result=Claiming.HELD)
    if row.deleting:
        return Change(result=Claiming.DELETING)
    if held is not None:
        return Change(result=Claiming.HELD_BY_OTHER)
    taken, out = published(_with_claim(row, claimant))
    return Change(taken, [out], result=Claiming.HELD)


def release(row: Row | None, now: datetime, claimant: Claim) -> Change:
    """Let go of it; what is not held is as good as released, what another holds stays held."""
    if row is None or row.generation == 0 or row.gone_at is not None:
        return Change(result=Claiming.RELEASED)
    held = holder(row)
    if held is None:
        return Change(result=Claiming.RELEASED)
    if held != claimant:
        return Change(result=Claiming.HELD_BY_OTHER)
    left = _with_claim(row, None)
    if left.deleting:
        left = wake(left, now, {"reason": "claim released"})
    left, out = published(left)
    return Change(left, [out], result=Claiming.RELEASED)


def _with_claim(row: Row, claimant: Claim | None) -> Row:
    status = {k: v for k, v in row.status.items() if k != "claimRef"}
    if claimant is not None:
        status["claimRef"] = claimant.document
    return replace(row, status=status)
