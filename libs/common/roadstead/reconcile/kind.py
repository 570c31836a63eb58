"""What the loop asks of a kind: a handful of functions, most of them pure.

Contract of each function (MUST / MAY):

- validate   pure; MUST return every problem at once; decides what ingest and apply refuse. MUST NOT look at inventory.
- needs      pure; which resources this one must hold a reference on before its first cloud write.
- watches    pure; which resources it looks at without a reference; their next STATUS makes it due.
- observe    reads the cloud through the Pass and returns a frozen value; MUST NOT write; a failed read raises (CloudError)
             or, where behaviour.md says so, becomes an explicit Unknown in the value - never an absence.
- decide     pure and total: (resource, seen, now) -> Decision. resource.deleting selects the delete table.
- act        one function a verb, one cloud write a function (reads beside it MAY be made); MUST be safe to repeat; looks first
             where the observation is older than its own pass; returns Go(seen') or Stop(outcome).
- project    pure; monitor facts -> status changes (kinds that are swept).
- wakes      pure; whether a status change by the monitor makes the row due.
- contradicted  pure; whether facts cannot be true of a resource whose status speaks of the newest spec: they make the row due however
             often they were read before.
- judged     pure, from memory: what the Region and the lists of what it offers say of this resource, as JSON; None while that is not
             known. A park with one of `judged_codes` ends when it becomes something else.
- at_apply   pure; rules about inventory (flavor, image, class) and other resources, asked at apply; a first pass parks with the same code.
- admit      pure; metadata that ingest adds, and specs that must be published before (a network's hidden identity).
- on_gone    pure; specs to publish once absence is proved (that identity's delete).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from roadstead.reconcile.decision import Code, Decision, Step
from roadstead.region import RegionSpec
from roadstead.subjects import Key

if TYPE_CHECKING:
    from roadstead.reconcile.passing import Pass
    from roadstead.reconcile.views import Directory

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T", bound=BaseModel)
O = TypeVar("O")  # noqa: E741 - O for observation


@dataclass(frozen=True)
class Problem:
    """One reason why a spec is refused.  `status` is the HTTP-like class of errors.md (400, 403, 404, 409, 422)."""

    code: str
    field: str
    message: str
    status: int = 422


@dataclass(frozen=True)
class Need:
    """A resource that this one refers to.  `provisioned`: provider work waits until the target is Provisioned."""

    kind: str
    id: str
    provisioned: bool = True


class Metadata(BaseModel):
    """Envelope metadata (resources.md section 0).  Unknown keys are kept and named in a warning."""

    model_config = {"extra": "allow"}

    name: str = ""
    description: str | None = None
    tags: list[dict[str, str]] | None = None
    organizationId: str | None = None
    projectId: str | None = None
    identityId: str | None = None
    networkId: str | None = None
    regionId: str | None = None
    annotations: dict[str, str] | None = None


@dataclass(frozen=True)
class Resource(Generic[S, T]):
    """A stored resource as a pass sees it.

    spec is the accepted one, also while deleting (it then only tells what is to be removed).
    status is the kind's own part, parsed; conditions are the loop's, except `Healthy` and `Active` (status["conditions"]
    of those two types MAY be stamped by decisions through status changes `Healthy=...`/`Active=...`, see status.py).
    record is the kind's private state, unsealed (OpenstackIdentity); {} where a kind has none.
    """

    key: Key
    metadata: Metadata
    spec: S
    status: T
    generation: int
    incarnation: int
    deleting: bool
    conditions: Mapping[str, Mapping[str, Any]]
    record: Mapping[str, Any] = field(default_factory=dict)
    consumers: tuple[str, ...] = ()
    ever_provisioned: bool = False
    observed_generation: int | None = None


@dataclass(frozen=True)
class Publication:
    """A spec message that the owner itself sends: `body` is the envelope."""

    key: Key
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Admission:
    """What ingest adds to an accepted spec: metadata keys, and specs to publish before it."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    publish: Sequence[Publication] = ()


Action = Callable[["Pass[Any, Any, Any]"], Awaitable[Step]]


def _no_needs(_resource: Resource[Any, Any]) -> tuple[Need, ...]:
    return ()


def _admit_as_is(_key: Key, _metadata: Metadata, _spec: Any) -> Admission:
    return Admission()


def _nothing_after(_resource: Resource[Any, Any]) -> tuple[Publication, ...]:
    return ()


def _nothing_at_apply(
    _key: Key, _metadata: Metadata, _spec: Any, _stored: Any, _directory: Any, _extras: Mapping[str, Any]
) -> list[Problem]:
    return []


def _never(_before: Mapping[str, Any], _after: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True)
class Kind(Generic[S, T, O]):
    """One kind of resource: its models and its functions.  Adding a kind is making one of these."""

    name: str
    service: str
    spec: type[S]
    status: type[T]
    observe: Callable[["Pass[S, T, O]"], Awaitable[O]]
    decide: Callable[[Resource[S, T], O, datetime], Decision]
    act: Mapping[StrEnum, Action]
    rules: type[StrEnum]
    # (new spec, its metadata, the stored resource or None) -> problems; immutability rules compare with the stored one
    validate: Callable[[S, Metadata, Resource[S, T] | None, Key], list[Problem]]
    needs: Callable[[Resource[S, T]], tuple[Need, ...]] = _no_needs
    # resources that it looks at without a reference (a server's volumes): their next STATUS makes it due
    watches: Callable[[Resource[S, T]], tuple[Need, ...]] = _no_needs
    # (status as a dict, facts, now) -> changes of status fields, like Decision.status
    project: Callable[[Resource[S, T], Mapping[str, Any], datetime], Mapping[str, Any]] | None = None
    wakes: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = _never
    # (status and spec as stored, facts); asked only while the status speaks of the newest spec
    contradicted: Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], bool] = (
        lambda _status, _spec, _facts: False
    )
    admit: Callable[[Key, Metadata, S], Admission] = _admit_as_is
    # inventory rules, asked by `apply` only: (key, metadata, spec, stored, directory, extras) -> problems; a first pass parks with
    # the same codes
    at_apply: Callable[
        [Key, Metadata, S, Resource[S, T] | None, "Directory", Mapping[str, Any]], list[Problem]
    ] = _nothing_at_apply
    # (resource, its Region's accepted spec, extras); parks with these codes lie in what it returns
    judged: Callable[[Resource[S, T], RegionSpec, Mapping[str, Any]], Any] = lambda _r, _region, _extras: None
    judged_codes: frozenset[Code] = frozenset()
    on_gone: Callable[[Resource[S, T]], tuple[Publication, ...]] = _nothing_after
    # verbs whose cloud call makes or destroys something; the loop guards them with intents and a longer lease
    creating: frozenset[StrEnum] = frozenset()
    destructive: frozenset[StrEnum] = frozenset()
    # creating verbs that a resource may rightly perform many times (rules, attachments); all others make the one object again only
    # after a second look
    repeatable: frozenset[StrEnum] = frozenset()
    # verbs that follow from an absence (a claim is let go because nothing is attached): not while a create's fate is open
    concluding: frozenset[StrEnum] = frozenset()
    # True: the kind's private record is published, sealed, on CREDENTIAL whenever it changes
    publishes_record: bool = False
    # the id this (metadata, spec) must have, or None when any UUID will do (server ids are UUIDv5 of network id and name)
    id_of: Callable[[Metadata, S], str | None] = lambda _metadata, _spec: None
    project_scoped: bool = True
    # the most verbs one pass may perform
    max_verbs: int = 24
