"""What was measured on both sides, and how it compares with the gates and aims."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench.octavia.load import Taken


@dataclass(frozen=True)
class Side:
    """One service at one kind of request.  api, others: processor milliseconds a request, of the API's processes and of what stands
    behind them (database, and for ours broker and provider)."""

    taken: Taken
    api: float
    others: float


@dataclass(frozen=True)
class Row:
    """gate, aim: how many times the original's rate ours should be."""

    name: str
    clients: int
    original: Side | None
    ours: Side
    gate: float
    aim: float

    @property
    def ratio(self) -> float | None:
        return None if self.original is None else self.ours.taken.rate / self.original.taken.rate

    @property
    def cpu_ratio(self) -> float | None:
        """How many times less processor time the API's processes need: what load of the machine does not change."""
        return None if self.original is None else self.original.api / max(self.ours.api, 0.001)

    @property
    def verdict(self) -> str:
        """The gate holds for the rate at a lower p95."""
        if self.original is None or self.ratio is None:
            return ""
        if self.ours.taken.p95 >= self.original.taken.p95:
            return "MISSED (p95)"
        return "aim" if self.ratio >= self.aim else "gate" if self.ratio >= self.gate else "MISSED"


def table(rows: Sequence[Row]) -> str:
    head = (
        f"{'':38} {'original':>29}  {'ours':>41}  {'ratio':>6} {'cpu':>6}  {'gate':>4} {'aim':>4}\n"
        f"{'request':30} {'clients':>7} {'per s':>9} {'p95 ms':>9} {'cpu ms':>9}"
        f"  {'per s':>9} {'p50 ms':>9} {'p95 ms':>9} {'cpu ms':>5} {'behind':>6}"
    )
    return "\n".join((head, *(_line(row) for row in rows)))


def _line(row: Row) -> str:
    first, ours = row.original, row.ours
    before = (
        f"{'-':>9} {'-':>9} {'-':>9}"
        if first is None
        else f"{first.taken.rate:>9.2f} {first.taken.p95:>9.1f} {first.api:>9.1f}"
    )
    after = f"{ours.taken.rate:>9.1f} {ours.taken.p50:>9.2f} {ours.taken.p95:>9.2f} {ours.api:>6.2f} {ours.others:>6.2f}"
    ratios = (
        f"{'-':>6} {'-':>6}"
        if row.ratio is None or row.cpu_ratio is None
        else f"{row.ratio:>5.1f}x {row.cpu_ratio:>5.1f}x"
    )
    return f"{row.name:30} {row.clients:>7} {before}  {after}  {ratios}  {row.gate:>3g}x {row.aim:>3g}x  {row.verdict}".rstrip()


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {**asdict(row), "ratio": row.ratio, "cpu_ratio": row.cpu_ratio, "verdict": row.verdict}
        for row in rows
    ]
