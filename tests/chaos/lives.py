"""One life for each point: a resource is made (or removed) while its service dies at the point.

Points run side by side, so the deaths of one disturb the others, as they would.  A point that another death kept from being
reached gets another life.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.chaos.points import Arm
from tests.chaos.stack import Stack

ROUNDS = 4
SLOW = 1.5  # seconds that the cloud holds back an answer where the call must be under way


@dataclass(frozen=True)
class Point:
    """service: whose process dies.  slow: method and path of the call that the cloud holds back."""

    where: str
    service: str = "compute"
    slow: tuple[str, str] | None = None


def armed(stack: Stack, name: str, point: Point, match: str, about: str = "body") -> Arm:
    """Arm a point for one resource; `about` says where the slow call bears its id: body or path."""
    if point.slow:
        method, path = point.slow
        where = {"body": match} if about == "body" else {}
        stack.trouble("slow", method=method, path=path if where else f"{path}/{match}", delay=SLOW, **where)
    arm = Arm(name, point.where, match, point.service)
    arm.put(stack.crew.arms)
    return arm


async def all_reached(points: Sequence[Point], life: Callable[[Point], Awaitable[bool]]) -> None:
    """Each point in a life of its own, until each was reached; life returns whether it was."""
    left = tuple(points)
    for _ in range(ROUNDS):
        reached = await asyncio.gather(*(life(point) for point in left))
        left = tuple(point for point, was in zip(left, reached, strict=True) if not was)
        if not left:
            return
    raise AssertionError(f"never reached: {[point.where for point in left]}")
