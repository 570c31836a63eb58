"""A measured figure, how it is taken, and how it is shown.

Every figure carries who spent processor time meanwhile, so that what bounds it can be read from the same row.
"""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from roadstead.testing.server_process import children

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figure:
    """rate: per second; p50, p99: milliseconds; cpu: share of one processor by who spent it; aim: upper bounds of p50 and p99.

    base: name of the figure that the rate compares to.
    """

    group: str
    name: str
    rate: float | None = None
    p50: float | None = None
    p99: float | None = None
    samples: int = 0
    cpu: Mapping[str, float] = field(default_factory=dict)
    aim: tuple[float, float] | None = None
    base: str | None = None
    note: str = ""

    @property
    def cost(self) -> float | None:
        """Processor milliseconds of this process for one; what is left of the rate when the machine has no load."""
        return self.cpu["bench"] / self.rate * 1000 if self.rate and "bench" in self.cpu else None

    @property
    def reached(self) -> bool | None:
        """Whether the aim was reached; None without one."""
        if self.aim is None or self.p50 is None or self.p99 is None:
            return None
        return self.p50 < self.aim[0] and self.p99 < self.aim[1]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all do not exceed.  ValueError for no values."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Processors:
    """Processor time of this process and of named others with their children."""

    def __init__(self, others: Mapping[str, int]) -> None:
        self._others = dict(others)

    def spent(self) -> dict[str, float]:
        """Seconds so far, by name."""
        found = {name: sum(map(_seconds, [pid, *_tree(pid)])) for name, pid in self._others.items()}
        return {"bench": time.process_time(), **found}

    @contextmanager
    def watch(self) -> Iterator[dict[str, float]]:
        """What the block spends, as shares of one processor; filled in at its end."""
        shares: dict[str, float] = {}
        before, began = self.spent(), time.perf_counter()
        yield shares
        wall = time.perf_counter() - began
        shares.update({name: (s - before[name]) / wall for name, s in self.spent().items()})


def _tree(pid: int) -> list[int]:
    found = children(pid)
    return found + [below for child in found for below in _tree(child)]


def _seconds(pid: int) -> float:
    """User and system time, that of ended children included; 0 when the process is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(f) for f in fields[11:15]) / TICKS


async def hammer(
    count: int, in_flight: int, call: Callable[[int], Awaitable[Any]]
) -> tuple[float, list[float]]:
    """Await call(0..count-1) with so many in flight: calls per second, and each one's seconds."""
    numbers, took = iter(range(count)), []

    async def worker() -> None:
        for number in numbers:
            began = time.perf_counter()
            await call(number)
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return count / (time.perf_counter() - began), took


def of_times(group: str, name: str, seconds: Sequence[float], **more: Any) -> Figure:
    """A figure of latencies."""
    return Figure(
        group,
        name,
        p50=percentile(seconds, 0.5) * 1000,
        p99=percentile(seconds, 0.99) * 1000,
        samples=len(seconds),
        **more,
    )


def table(figures: Sequence[Figure]) -> str:
    """Lines for people, a block per group."""
    by_name = {f.name: f for f in figures}
    width = max((len(f.name) for f in figures), default=4)
    lines: list[str] = []
    for group in dict.fromkeys(f.group for f in figures):
        lines += [
            "",
            f"{group:<{width}}  {'per s':>9} {'p50 ms':>9} {'p99 ms':>9} {'n':>7} {'cpu ms':>7}  processors (of one)  remarks",
        ]
        lines += [_line(f, width, by_name) for f in figures if f.group == group]
    return "\n".join(lines)


def _line(figure: Figure, width: int, by_name: Mapping[str, Figure]) -> str:
    shares = " ".join(f"{name} {share:.2f}" for name, share in figure.cpu.items() if share >= 0.01)
    remarks = [figure.note] if figure.note else []
    if figure.aim is not None:
        verdict = "reached" if figure.reached else "MISSED"
        bounds = " ".join(
            f"{p} < {a:g}" for p, a in zip(("p50", "p99"), figure.aim, strict=True) if math.isfinite(a)
        )
        remarks.append(f"aim {bounds}: {verdict}")
    base = by_name.get(figure.base or "")
    if base is not None and base.rate and figure.rate:
        remarks.append(f"{figure.rate / base.rate:.2f} of: {base.name}")
    cells = [_number(figure.rate, 0), _number(figure.p50, 2), _number(figure.p99, 2)]
    row = f"{figure.name:<{width}}  {cells[0]:>9} {cells[1]:>9} {cells[2]:>9} {figure.samples or '':>7} {_number(figure.cost, 2):>7}  {shares:<20} "
    return f"{row} {'; '.join(remarks)}".rstrip()


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """The same for programs; a bound without limit is null."""
    rows = []
    for figure in figures:
        row = {**asdict(figure), "cost": figure.cost, "reached": figure.reached}
        if figure.aim is not None:
            row["aim"] = [a if math.isfinite(a) else None for a in figure.aim]
        rows.append(row)
    return rows
