"""`python -m tests.bench.ovn [--quick] [--only database|path]`: the worker's figures, beside the original's where there are any.

A gate that is missed is shown and is no failure: machines differ.  Where the original cannot be installed ours is measured alone, and it
says so.  --quick takes fewer samples, and 1000 load balancers where the gate names 10 000.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from roadstead.store.migrate import migrate
from roadstead.testing.private_ovn import OvnProblem, PrivateOvn
from roadstead.testing.servers import PostgresServer
from roadstead_ovn.store.postgres import SCHEMA
from tests.ovn.original.process import NotHere, Original

from .database_work import CIDR, NETWORK, SUBNET, DatabaseWork, Figure, folder
from .whole_path import WholePath

PACE = 10.0
PATH_P99 = (50.0, 20.0)  # milliseconds: gate, aim
PATH_GROWTH = (1.5, 1.2)
HEAD = f"{'':44} {'original ms':>12} {'ours ms':>9} {'ratio':>8}  {'gate':>6} {'aim':>6}"


def line(name: str, figure: Figure, gate: float, aim: float) -> str:
    """Medians, and how many times faster ours is."""
    ours = statistics.median(figure.ours) * 1000
    if not figure.original:
        return f"{name:44} {'-':>12} {ours:9.2f} {'':>8}  {gate:5.0f}x {aim:5.0f}x"
    original = statistics.median(figure.original) * 1000
    ratio = original / ours
    verdict = "aim" if ratio >= aim else "gate" if ratio >= gate else "MISSED" if gate else ""
    wanted = f"{gate:5.0f}x {aim:5.0f}x  {verdict}" if gate else ""
    return f"{name:44} {original:12.2f} {ours:9.2f} {ratio:7.1f}x  {wanted}"


async def database(place: Path, quick: bool) -> None:
    """Side by side on one database, in turn."""
    with PrivateOvn(northd=False) as ovn:
        original: Original | None = Original(
            place / "original", ovn.northbound, ovn.southbound,
            network={"network": NETWORK, "subnet": SUBNET, "cidr": CIDR},
        )  # fmt: skip
        work = DatabaseWork(ovn, original)
        await work.start()
        try:
            assert original is not None
            original.start()
        except NotHere as reason:
            print(f"ours alone: {reason}", file=sys.stderr)
            original = work.original = None
        print(HEAD, flush=True)
        try:
            members = 200 if quick else 1000
            figure = await work.batch(members)
            print(line(f"batch of {members} new members", figure, 100, 1000))
            print(f"{'':4}transactions of ours: {figure.transactions}", flush=True)
            for there in (0, 100, 1000):
                await work.grow(there)
                figure = await work.creations(8 if quick else 30)
                name = f"create of a load balancer at {there} others"
                print(line(name, figure, *((20, 40) if there == 1000 else (0, 0))), flush=True)
        finally:
            if original is not None:
                original.stop()
            await work.stop()


@contextmanager
def running(postgres: PostgresServer) -> Iterator[None]:
    postgres.start()
    try:
        yield
    finally:
        postgres.kill()


async def path(place: Path, quick: bool) -> None:
    """API, bus, worker, database; fsync on everywhere."""
    postgres = PostgresServer(place / "postgres", durable=True, die_with_parent=True)
    with running(postgres), PrivateOvn(members=1, northd=False) as ovn:
        url = postgres.create_database("bench_ovn")
        await migrate(url, ["octavia", SCHEMA])
        whole = WholePath(place / "stack", postgres, "bench_ovn", ovn)
        await asyncio.to_thread(whole.start)
        try:
            await whole.grow(40)  # caches and connections are made
            p99s = []
            for there in (40, 1000 if quick else 10_000):
                start = time.monotonic()
                await whole.grow(there)
                if there > 40:
                    print(f"{'':4}grown to {there} in {time.monotonic() - start:.0f} s", flush=True)
                taken = sorted(await whole.paced(PACE, 10 if quick else 30))
                p50, p99 = (taken[int(len(taken) * share)] * 1000 for share in (0.5, 0.99))
                p99s.append(p99)
                gate, aim = PATH_P99
                verdict = "aim" if p99 <= aim else "gate" if p99 <= gate else "MISSED"
                name = f"create accepted to ACTIVE at {there} others"
                print(
                    f"{name:44} p50 {p50:6.1f} ms, p99 {p99:6.1f} ms  gate {gate:.0f}, aim {aim:.0f}  {verdict}",
                    flush=True,
                )
            growth = p99s[1] / p99s[0]
            gate, aim = PATH_GROWTH
            verdict = "aim" if growth <= aim else "gate" if growth <= gate else "MISSED"
            print(f"{'growth of the p99':44} {growth:.2f}x  gate {gate}x, aim {aim}x  {verdict}")
        finally:
            await asyncio.to_thread(whole.stop)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench-ovn", description="Speed of the OVN worker.")
    parser.add_argument("--quick", action="store_true", help="fewer samples, smaller numbers")
    parser.add_argument("--only", choices=("database", "path"), help="one of the two parts")
    given = parser.parse_args(arguments)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
    try:
        with folder() as place:
            place.chmod(0o711)
            if given.only != "path":
                asyncio.run(database(place, given.quick))
            if given.only != "database":
                asyncio.run(path(place, given.quick))
    except OvnProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
