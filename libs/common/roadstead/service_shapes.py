"""The shapes of messages and requests, for the document only: what is really read and written is in `events.py` and `status.py`."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from roadstead.reconcile.kind import Kind, Metadata


class Shape(BaseModel):
    """Unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class StatusMetadata(Metadata):
    """Envelope metadata as the owner publishes it."""

    id: str
    generation: int
    incarnation: int
    deletionTimestamp: str | None = None


class Position(Shape):
    """Where in SPEC the accepted spec stands."""

    epoch: int
    sequence: int


class Condition(Shape):
    """One axis of how a resource stands."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str


class Observed(Shape):
    """Facts as the monitor read them; further fields are the facts."""

    present: bool
    readStartedAt: str
    sweep: str = ""
    knownResourceVersion: int = 0


class Cause(Shape):
    """The message that woke the row."""

    subject: str | None = None
    sequence: int | None = None


class Decided(Shape):
    """A decision whose rule, verb, generation or reason is new."""

    generation: int
    rule: str
    verb: str | None
    why: str
    count: int
    cause: Cause
    decisionId: str


class Acted(Shape):
    """One write to the cloud."""

    decisionId: str
    verb: str
    destructive: bool
    service: str
    method: str
    path: str
    openstackRequestId: str | None
    outcome: str


class Credential(Shape):
    """Sealed: only services with the key read it."""

    version: int
    sealed: str


class DeadLetter(Shape):
    """The body of the refused message as it came; the reasons are in the headers `Roadstead-…`."""


class Request(Shape):
    """A request; which fields it needs is the verb's."""

    id: str | None = None
    metadata: Metadata | None = None
    spec: dict[str, Any] | None = None
    cascade: bool | None = None
    limit: int | None = None
    marker: str | None = None
    consumer: str | None = None
    until: str | None = Field(default=None, description="RFC 3339")
    at: str | None = Field(default=None, description="RFC 3339")


class ServiceRequest(Shape):
    """A request of another service."""

    kind: str | None = None
    id: str | None = None
    region: str | None = None
    consumer: str | None = None


def spec_shape(kind: Kind[Any, Any, Any]) -> type[BaseModel]:
    """The spec envelope of a kind."""
    wanted: Any = kind.spec | None
    made: type[BaseModel] = create_model(
        f"{_word(kind)}SpecMessage",
        __base__=Shape,
        __doc__=f"What is wanted of a {kind.name}; `delete` removes it.",
        metadata=(Metadata, Metadata()),
        spec=(wanted, None),
        delete=(bool, False),
        cascade=(bool, False),
    )
    return made


def status_shape(kind: Kind[Any, Any, Any]) -> type[BaseModel]:
    """The status envelope of a kind."""
    status = create_model(
        f"{_word(kind)}Status",
        __base__=kind.status,
        observedGeneration=(int | None, None),
        provisioningStatus=(str | None, None),
        code=(str | None, None),
        conditions=(list[Condition], []),
    )
    made: type[BaseModel] = create_model(
        f"{_word(kind)}StatusMessage",
        __base__=Shape,
        __doc__=f"The accepted spec of a {kind.name} and how it stands.",
        kind=(str, kind.name),
        metadata=(StatusMetadata, ...),
        spec=(kind.spec, ...),
        specPosition=(Position, ...),
        resourceVersion=(int, ...),
        status=(status, ...),
        consumers=(list[str], []),
    )
    return made


def _word(kind: Kind[Any, Any, Any]) -> str:
    return kind.name.capitalize()
