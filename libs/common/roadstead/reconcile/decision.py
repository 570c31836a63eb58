"""What a pass decides and how it ends: values, never behaviour.

`decide` returns a Decision; a verb's action returns a Step.  The loop alone turns outcomes into due times and
conditions, so that a kind cannot invent a way of waiting of its own (behaviour.md section 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """Machine-readable causes in `status.code` (resources.md section 0.2, errors.md section 6)."""

    NONE = ""
    IN_USE = "IN_USE"
    WAITING = "WAITING"  # a dependency is not ready
    SETTLING = "SETTLING"  # a create was asked and its answer never seen
    BUSY = "BUSY"  # the cloud is working on it
    CONSISTENCY = "CONSISTENCY"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    KEY = "KEY"
    ALLOCATION = "ALLOCATION"  # none left: of our VLAN ids, or of what the cloud gives out
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    FORBIDDEN = "FORBIDDEN"
    REFUSED = "REFUSED"  # a 4xx that says the request itself is wrong
    THROTTLED = "THROTTLED"
    UNAVAILABLE = "UNAVAILABLE"
    UNKNOWN = "UNKNOWN"  # no answer, or one that proves nothing
    WRONG_CLOUD = "WRONG_CLOUD"
    MASS_DISAPPEARANCE = "MASS_DISAPPEARANCE"
    VOLUME_ERRORED = "VOLUME_ERRORED"
    REBUILD_CONVERGED_ERROR = "REBUILD_CONVERGED_ERROR"
    REBUILD_IMAGE_NOT_FOUND = "REBUILD_IMAGE_NOT_FOUND"
    IMAGE_UNVERIFIABLE = "IMAGE_UNVERIFIABLE"
    IMAGE_MISSING = "IMAGE_MISSING"
    CREATE_EXHAUSTED = "CREATE_EXHAUSTED"
    CREATE_RETRYING = "CREATE_RETRYING"
    NOT_OFFERED = "NOT_OFFERED"  # an inventory rule failed: flavor, image or class
    FLAVOR_GONE = "FLAVOR_GONE"
    FLAVOR_PINNED = "FLAVOR_PINNED"
    IMAGE_NOT_FOUND = "IMAGE_NOT_FOUND"
    IMAGE_NOT_READY = "IMAGE_NOT_READY"
    IMAGE_ARCH = "IMAGE_ARCH"
    IMAGE_DISK = "IMAGE_DISK"
    IMAGE_VIRT = "IMAGE_VIRT"
    IMAGE_VIRT_UNKNOWN = "IMAGE_VIRT_UNKNOWN"
    GROUP_NETWORK = "GROUP_NETWORK"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True)
class Done:
    """Nothing to do: Available=True/Provisioned, or for a deletion: absence is proved."""


@dataclass(frozen=True)
class Yield:
    """Not ready; due again in 10 s, or after `after` seconds (unscaled).  A dependency's event may come first."""

    code: Code = Code.WAITING
    message: str = ""
    after: float | None = None


@dataclass(frozen=True)
class Park:
    """Errored with nothing due.  `terminal`: only a delete or an operator helps, else a spec edit does.

    Never leaves a delete pass: there the loop turns it into a Retry (behaviour.md section 1).
    """

    code: Code
    message: str
    terminal: bool = False


@dataclass(frozen=True)
class Retry:
    """Errored, and due again in 10 s; what is refused again with the same words later each time, to 5 minutes.

    `after` (seconds, unscaled) comes from Retry-After and wins.  steady: the pause never grows on the provision path, as for the
    codes of STEADY_CODES.
    """

    code: Code
    message: str
    after: float | None = None
    steady: bool = False


STEADY_CODES = frozenset({Code.UNAVAILABLE, Code.UNKNOWN, Code.INTERNAL})
"""Errors that say nothing about the request: asked again after the fixed pause, without back-off (REF-005)."""

Outcome = Done | Yield | Park | Retry


@dataclass(frozen=True)
class Decision:
    """The one thing to do next: either a verb or an outcome, by which rule, and what status to stamp.

    `rule` is an enum member that bears the id of behaviour.md.  `status` holds changes of top-level status
    fields (wire spelling), written with the outcome of this pass whatever comes after; None clears a field.
    `events` are codes of CREATE_RETRYING kind for the history.
    """

    rule: StrEnum
    verb: StrEnum | None = None
    outcome: Outcome | None = None
    why: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.verb is None) == (self.outcome is None):
            raise ValueError("a decision is either a verb or an outcome")


def do(rule: StrEnum, verb: StrEnum, why: str = "", **status: Any) -> Decision:
    """Perform `verb` now."""
    return Decision(rule, verb=verb, why=why, status=status)


def done(rule: StrEnum, why: str = "", **status: Any) -> Decision:
    """The spec is realized (or, deleting, the object is proved absent)."""
    return Decision(rule, outcome=Done(), why=why, status=status)


def wait(
    rule: StrEnum, code: Code = Code.BUSY, message: str = "", after: float | None = None, **status: Any
) -> Decision:
    """Yield: look again in 10 s, or when a dependency moves."""
    return Decision(rule, outcome=Yield(code, message, after), why=message, status=status)


def park(rule: StrEnum, code: Code, message: str, terminal: bool = False, **status: Any) -> Decision:
    """Stop until a spec edit (or, terminal, until a delete)."""
    return Decision(rule, outcome=Park(code, message, terminal), why=message, status=status)


def retry(rule: StrEnum, code: Code, message: str, after: float | None = None, **status: Any) -> Decision:
    """Errored, and again after the fixed pause."""
    return Decision(rule, outcome=Retry(code, message, after), why=message, status=status)


@dataclass(frozen=True)
class Go:
    """A verb succeeded and the pass goes on: `seen` replaces the observation, `status` is merged into the status.

    A verb that read nothing new returns what it changed in `seen` from the cloud's own answer.
    """

    seen: Any
    status: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stop:
    """A verb ends the pass, with status changes to keep."""

    outcome: Outcome
    status: Mapping[str, Any] = field(default_factory=dict)


Step = Go | Stop
