"""Failure on demand: orders like `fail` and `slow:5` that a test leaves where a driver can read them."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PREFIX = "lab:"
LONGEST_PAUSE_SECONDS = 600.0


@dataclass(frozen=True)
class Order:
    """Pause first, then fail; `times` bounds how often it fails for one thing, None means always."""

    pause_seconds: float = 0.0
    fails: bool = False
    times: int | None = None


def parse(text: str) -> Order:
    """Read `fail`, `fail:TIMES`, `slow:SECONDS`, or several joined by commas; ValueError for anything else."""
    order = Order()
    for word in text.split(","):
        verb, _, amount = word.strip().partition(":")
        if verb == "fail" and not amount:
            order = Order(order.pause_seconds, True)
        elif verb == "fail" and amount.isdigit():
            order = Order(order.pause_seconds, True, int(amount))
        elif verb == "slow" and math.isfinite(float(amount)):
            order = Order(min(max(float(amount), 0.0), LONGEST_PAUSE_SECONDS), order.fails, order.times)
        else:
            raise ValueError(f"{text!r} is not fail, fail:TIMES or slow:SECONDS")
    return order


class Orders:
    """Obeys orders for the things of one process, and counts how often each was made to fail."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()

    def obey(self, thing: str, verbs: Iterable[str], places: Iterable[Mapping[str, str]]) -> str | None:
        """Pause as told; return why the thing has to fail, or None.  The first place that has one of verbs counts."""
        wanted = [f"{PREFIX}{verb}" for verb in verbs]
        for place in places:
            for key in wanted:
                if key in place:
                    return self._carry_out(thing, key, place[key])
        return None

    def _carry_out(self, thing: str, key: str, text: str) -> str | None:
        try:
            order = parse(text)
        except ValueError as error:
            return f"{key}: {error}"
        time.sleep(order.pause_seconds)
        if not order.fails:
            return None
        self._failures[thing, key] += 1
        if order.times is not None and self._failures[thing, key] > order.times:
            return None
        return f"told to fail by {key}={text}"
