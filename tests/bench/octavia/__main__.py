"""`python -m tests.bench.octavia [--quick] [--ours] [--profile DIR] [-o json]`: both services, one after the other at each request.

The original and ours run all the time, each with a PostgreSQL of its own; only one of them is asked at a time.  Without
--fsync neither database waits for the disk, which on a shared machine would be all that is measured of a create.  A gate that is
missed is shown and is no failure: machines differ.  Where the original cannot be installed ours is measured alone, and it says so.
"""

import argparse
import json
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.figures import Processors
from tests.bench.ground import BenchFailed
from tests.bench.octavia import wanted
from tests.bench.octavia.load import BadAnswer, Slice, load, taken
from tests.bench.octavia.original import NotHere, Original
from tests.bench.octavia.ours import Ours
from tests.bench.octavia.report import Row, Side, as_json, table
from tests.bench.octavia.wanted import Request

BALANCERS = 1000
MEMBERS = 1000
BATCH = f"batch of {MEMBERS} members"
ROUNDS = 4
CLIENTS = (1, 4)
Service = Original | Ours


@dataclass(frozen=True)
class Go:
    """One slice with the processor seconds it took."""

    slice: Slice
    api: float
    others: float


def together(goes: Sequence[Go]) -> Side:
    everything = taken([go.slice for go in goes])
    api, others = sum(go.api for go in goes), sum(go.others for go in goes)
    return Side(everything, api * 1000 / everything.count, others * 1000 / everything.count)


class Bench:
    """original: None where it is not here.  share: of the samples.  only: what a row's name must hold."""

    def __init__(self, original: Original | None, ours: Ours, share: float, only: str = "") -> None:
        self.only = only
        self.services: list[Service] = [ours] if original is None else [original, ours]
        self.original, self.ours = original, ours
        self.share = share
        self.rows: list[Row] = []

    def run(self) -> None:
        trees = {service: self._tree(service) for service in self.services}
        for clients in CLIENTS:
            count = (BALANCERS // 4 if clients == 1 else BALANCERS * 3 // 4) if self.share == 1 else 100
            self.both("create", clients, (count, count), lambda s, n: wanted.create(n), 3, 5, 201)
        empty = {service: self._one(service, wanted.create(0)) for service in self.services}
        if self.only in f"list of {BALANCERS}":
            self._fill()
        for clients in CLIENTS:
            self.both(
                "show, 10 listeners, 10 pools", clients, (200, 2000), lambda s, n: wanted.show(trees[s]), 5, 8
            )
            self.both("show, empty", clients, (200, 2000), lambda s, n: wanted.show(empty[s]), 5, 8)
            self.both(f"list of {BALANCERS}", clients, (12, 120), lambda s, n: wanted.list_all(), 10, 20)
            self.both("status tree", clients, (40, 400), lambda s, n: wanted.status(trees[s]), 10, 20)
            self.both(
                "create of a whole tree", clients, (8, 60), lambda s, n: wanted.create_tree(n), 10, 20, 201
            )
        if self.only in BATCH:
            self._batches()

    def both(
        self,
        name: str,
        clients: int,
        counts: tuple[int, int],
        make: Callable[[Service, int], Request],
        gate: float,
        aim: float,
        status: int = 200,
    ) -> None:
        """Measure it at each service.  counts: requests to the original and to ours, which needs more of them to last."""
        if self.only not in name:
            return
        goes: dict[Service, list[Go]] = {service: [] for service in self.services}
        for _ in range(ROUNDS):  # in turn, so that what else the machine does meanwhile meets both
            for service in self.services:
                count = max(clients, int(counts[service is self.ours] * self.share / ROUNDS))
                requests = [make(service, number) for number in range(count)]
                goes[service].append(self.go(service, requests, clients, status))
        sides = [together(goes[service]) for service in self.services]
        self.add(Row(name, clients, sides[0] if self.original else None, sides[-1], gate, aim))

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(".", end="", file=sys.stderr, flush=True)

    def go(self, service: Service, requests: Sequence[Request], clients: int, status: int) -> Go:
        """What follows a request (the provider's report) is part of its price."""
        names = {
            f"{what} {number}": (what, pid)
            for what, pids in service.pids.items()
            for number, pid in enumerate(pids)
        }
        processors = Processors({name: pid for name, (_, pid) in names.items()})
        before = processors.spent()
        slice_ = load(service.ports, requests, clients, status)
        if isinstance(service, Ours):
            service.settle()
        after = processors.spent()
        spent = {"api": 0.0, "others": 0.0}
        for name, (what, _) in names.items():
            spent[what] += after[name] - before[name]
        return Go(slice_, spent["api"], spent["others"])

    # ------------------------------------------------------------ what requests need

    def _answer(self, service: Service, request: Request, status: int) -> bytes:
        return load(service.ports[:1], [request], 1, status).bodies[0]

    def _one(self, service: Service, request: Request) -> str:
        return str(json.loads(self._answer(service, request, 201))["loadbalancer"]["id"])

    def _tree(self, service: Service) -> str:
        """A whole tree; each worker and replica has then done one of everything."""
        identifier = self._one(service, wanted.create_tree(0))
        if isinstance(service, Ours):
            service.settle()
        warm = [wanted.show(identifier), wanted.status(identifier), wanted.list_all()] * 4
        for request in warm:
            load(service.ports, [request] * len(service.ports), len(service.ports), 200)
        return identifier

    def _fill(self) -> None:
        """As many load balancers as a list shows at most."""
        for service in self.services:
            there = len(json.loads(self._answer(service, wanted.list_all(), 200))["loadbalancers"])
            missing = [wanted.create(n) for n in range(BALANCERS - there)]
            if missing:
                load(service.ports, missing, 4, 201)
            if isinstance(service, Ours):
                service.settle()

    def _batches(self) -> None:
        """Members put into an empty pool, one batch after the other, each into a pool of its own."""
        sides = []
        for service in self.services:
            pools = [
                json.loads(self._answer(service, wanted.create_with_pool(n), 201))["loadbalancer"]["pools"][
                    0
                ]["id"]
                for n in range(2 if service is self.original else 10)
            ]
            if isinstance(service, Ours):
                service.settle()
            else:
                service.activate()
            requests = [wanted.batch(pool, MEMBERS) for pool in pools]
            sides.append(together([self.go(service, requests, 1, 202)]))
        row = Row(BATCH, 1, sides[0] if self.original else None, sides[-1], 100, 1000)
        self.add(row)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.bench.octavia", description=__doc__.partition("\n")[0]
    )
    made.add_argument("-o", "--output", choices=("table", "json"), default="table")
    made.add_argument("--ours", action="store_true", help="without the original")
    made.add_argument("--fsync", action="store_true", help="both databases wait for the disk at each commit")
    made.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds this text")
    made.add_argument("--quick", action="store_true", help="a tenth of the samples")
    made.add_argument(
        "--profile", action="store_true", help="also say where the API's time goes; slows ours down"
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    began, loads = time.monotonic(), os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="roadstead-bench-octavia-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL may run as another user
        (folder / "original").mkdir(mode=0o711)
        (folder / "ours").mkdir(mode=0o711)
        original = None if options.ours else Original(folder / "original", fsync=options.fsync)
        ours = Ours(folder / "ours", fsync=options.fsync, profile=options.profile)
        try:
            if original is not None:
                try:
                    original.start()
                except NotHere as reason:
                    print(f"bench: ours alone: {reason}", file=sys.stderr)
                    original.stop()
                    original = None
            ours.start()
            bench = Bench(original, ours, 0.1 if options.quick else 1.0, options.only)
            bench.run()
            print(file=sys.stderr)
            _show(options.output, bench.rows, loads, time.monotonic() - began)
        except (BenchFailed, BadAnswer, OSError) as failure:
            print(f"\nbench: {failure}", file=sys.stderr)
            return 1
        finally:
            ours.stop()
            if original is not None:
                original.stop()
        for file in sorted((folder / "ours").glob("profile-*")):
            print(f"\n{file.name}")
            pstats.Stats(str(file)).sort_stats("tottime").print_stats(45)
    return 0


def _show(form: str, rows: Sequence[Row], loads: tuple[float, float, float], seconds: float) -> None:
    about = {
        "processors": os.cpu_count(),
        "load_before": round(loads[0], 2),
        "load_after": round(os.getloadavg()[0], 2),
        "seconds": round(seconds),
    }
    if form == "json":
        print(json.dumps({"surroundings": about, "rows": as_json(rows)}, indent=1))
        return
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(
        "cpu ms: processor time of the API's processes a request; behind: of database, broker and provider.  The original does not\n"
        "report that work is done, ours does within these figures.  The gate of a batch is for all of it down to OVN (the original:\n"
        "90.7 s); here both are without OVN."
    )
    print(table(rows))


if __name__ == "__main__":
    sys.exit(main())
