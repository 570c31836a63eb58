"""A kind small enough to see through: a thing with a colour, which the cloud holds as a paint tin."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from roadstead.reconcile.decision import Code, Decision, do, done, park, retry, wait
from roadstead.reconcile.kind import Kind, Metadata, Need, Problem, Resource
from roadstead.subjects import Key

REGION = "11111111-1111-4111-8111-111111111111"
PROJECT = "project-a"
IDENT = "22222222-2222-4222-8222-222222222222"
KEY = Key(REGION, PROJECT, "volume", IDENT)


class ToySpec(BaseModel):
    model_config = ConfigDict(extra="allow")
    colour: str
    shape: str = "round"
    pause: bool = False


class ToyStatus(BaseModel):
    model_config = ConfigDict(extra="allow")
    tin: str | None = None
    errored: bool = False


class ToyRule(StrEnum):
    ABSENT = "T1"
    BROKEN = "T2"
    MOVING = "T3"
    SETTLED = "T4"
    GONE = "T5"
    UNWANTED = "T6"


class ToyVerb(StrEnum):
    CREATE = "create"
    DELETE = "delete"


@dataclass(frozen=True)
class Seen:
    tin: str | None = None


def decide(resource: Resource[ToySpec, ToyStatus], seen: Seen, now: datetime) -> Decision:
    match resource.deleting, seen.tin:
        case True, None:
            return done(ToyRule.GONE)
        case True, _:
            return do(ToyRule.UNWANTED, ToyVerb.DELETE)
        case False, None:
            return do(ToyRule.ABSENT, ToyVerb.CREATE)
        case False, "broken":
            return park(ToyRule.BROKEN, Code.VOLUME_ERRORED, "the tin is broken", terminal=True)
        case False, "moving":
            return wait(ToyRule.MOVING, Code.BUSY, "the paint dries")
        case False, "odd":
            return retry(ToyRule.MOVING, Code.CONSISTENCY, "two tins")
        case _:
            return done(ToyRule.SETTLED, tin=seen.tin)


async def observe(_p: Any) -> Seen:
    return Seen()


def validate(
    spec: ToySpec, _metadata: Metadata, stored: Resource[ToySpec, ToyStatus] | None, _key: Key
) -> list[Problem]:
    problems = []
    if spec.colour == "invisible":
        problems.append(Problem("COLOUR", "spec.colour", "no such colour"))
    if stored is not None and stored.spec.shape != spec.shape:
        problems.append(Problem("SHAPE_IMMUTABLE", "spec.shape", "the shape cannot be changed"))
    return problems


def needs(_resource: Resource[ToySpec, ToyStatus]) -> tuple[Need, ...]:
    return ()


KIND: Kind[ToySpec, ToyStatus, Seen] = Kind(
    name="volume",
    service="volumes",
    spec=ToySpec,
    status=ToyStatus,
    observe=observe,
    decide=decide,
    act={},
    rules=ToyRule,
    validate=validate,
    needs=needs,
    project=lambda _r, facts, _now: {"errored": facts.get("errored", False)},
    wakes=lambda before, after: before.get("errored") != after.get("errored"),
    creating=frozenset({ToyVerb.CREATE}),
    destructive=frozenset({ToyVerb.DELETE}),
)
