"""Orders to fail or to be slow, left where any client can leave them: `lab:boot=fail`, `lab:rebuild=slow:3,fail:1`.

The reference cloud's pretended hypervisor and storage obey the same ones, so a scenario gives one order and has the same
failure on both.  The first place that has the key counts: a server's metadata, its image's properties, its flavor's extra
specs; a volume's metadata, its type's extra specs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "lab:"
LONGEST_PAUSE = 600.0


@dataclass(frozen=True)
class Obeyed:
    """seconds: the pause before the end; reason: why it has to fail, None when it does not."""

    seconds: float = 0.0
    reason: str | None = None


@dataclass
class Orders:
    """Counts per thing and key how often it was made to fail."""

    failures: Counter[tuple[str, str]] = field(default_factory=Counter)

    def obey(self, thing: str, verbs: Iterable[str], places: Iterable[Mapping[str, Any]]) -> Obeyed:
        """What the first order for one of the verbs means for this attempt."""
        keys = [f"{PREFIX}{verb}" for verb in verbs]
        for place in places:
            for key in keys:
                if key in place:
                    return self._carry_out(thing, key, str(place[key]))
        return Obeyed()

    def _carry_out(self, thing: str, key: str, text: str) -> Obeyed:
        try:
            pause, fails, times = parse(text)
        except ValueError as error:
            return Obeyed(reason=f"{key}: {error}")
        if not fails:
            return Obeyed(pause)
        self.failures[thing, key] += 1
        if times is not None and self.failures[thing, key] > times:
            return Obeyed(pause)
        return Obeyed(pause, f"told to fail by {key}={text}")


def parse(text: str) -> tuple[float, bool, int | None]:
    """(pause, fails, how often; None: always) of `fail`, `fail:TIMES`, `slow:SECONDS` or several joined by commas."""
    pause, fails, times = 0.0, False, None
    for word in text.split(","):
        verb, _, amount = word.strip().partition(":")
        if verb == "fail" and (not amount or amount.isdigit()):
            fails, times = True, int(amount) if amount else None
        elif verb == "slow" and math.isfinite(float(amount)):
            pause = min(max(float(amount), 0.0), LONGEST_PAUSE)
        else:
            raise ValueError(f"{text!r} is not fail, fail:TIMES or slow:SECONDS")
    return pause, fails, times
