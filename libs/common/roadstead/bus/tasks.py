"""Ending tasks for certain."""

import asyncio
from collections.abc import Iterable
from typing import Any

ASK_AGAIN = 0.2


async def end_all(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel the tasks and return when all have ended; what they raise is dropped.

    A cancellation is asked for until it is heeded: up to Python 3.11 `asyncio.wait_for`, which the broker's client uses for every
    answer, forgets one that comes in the same moment as what it waits for.
    """
    given = list(tasks)
    left = {task for task in given if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=ASK_AGAIN)
    for task in given:
        if not task.cancelled():
            task.exception()  # read, so that nobody complains that it never was
