"""One life for each point: a resource is made (or removed) while its service dies at the point.

Points run side by side, so the deaths of one disturb the others, as they would.  A point that another death kept from being
reached gets another life.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.chaos.points import Arm
from tests.chaos.stack import Stack

SOAK = os.environ.get("ROADSTEAD_SOAK") == "1"
ROUNDS = 4
SLOW = 1.5  # seconds that the cloud holds back an answer where the call must be under way


@dataclass(frozen=True)
class Point:
    """service: whose process dies.  slow: method and path of the call that the cloud holds back.

    soak: left to the long runs, because another point is much like it.
    """

    where: str
    service: str = "compute"
    slow: tuple[str, str] | None = None
    soak: bool = False


def armed(stack: Stack, name: str, point: Point, match: str) -> Arm:
    """Arm a point for one resource, whose id stands in the body of the slow call."""
    if point.slow:
        method, path = point.slow
        stack.trouble("slow", method=method, path=path, body=match, delay=SLOW)
    arm = Arm(name, point.where, match, point.service)
    arm.put(stack.crew.arms)
    return arm


async def all_reached(points: Sequence[Point], life: Callable[[Point], Awaitable[bool]]) -> None:
    """Each point in a life of its own, until each was reached; life returns whether it was."""
    left = tuple(point for point in points if SOAK or not point.soak)
    for _ in range(ROUNDS):
        reached = await asyncio.gather(*(life(point) for point in left))
        left = tuple(point for point, was in zip(left, reached, strict=True) if not was)
        if not left:
            return
    raise AssertionError(f"never reached: {[point.where for point in left]}")
