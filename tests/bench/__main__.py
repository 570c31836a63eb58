"""`python -m tests.bench [PART ...] [-o json] [--profile] [--quick]`: starts what it needs, prints its figures, ends by itself.

Exit status 1 when a figure could not be taken.  An aim that is missed is shown and is no failure: machines differ.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
import warnings

import uvloop

from roadstead.logs import start_logging

from . import claims, latency, loop, raw
from .figures import Figure, as_json, table
from .ground import BenchFailed, ground
from .profiling import Profiles

BOUND = 350.0  # seconds
PARTS = ("raw", "latency", "ingest", "passes", "claims")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.partition("\n")[0])
    made.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    made.add_argument("-o", "--output", choices=("table", "json"), default="table")
    made.add_argument(
        "--profile", action="store_true", help="say where this process's time goes; slows figures down"
    )
    made.add_argument("--quick", action="store_true", help="a fifth of the samples")
    return made


async def measure(parts: list[str], scale: float, profiles: Profiles) -> list[Figure]:
    """The figures of the parts asked for, raw ones first."""
    figures: list[Figure] = []
    async with ground() as g:
        if "raw" in parts:
            figures += await raw.measure(g, scale)
        if "latency" in parts or "passes" in parts:
            samples = max(5, int((100 if "latency" in parts else 15) * scale))
            found = await latency.measure(g, samples)  # also registers the region, which passes need
            figures += found if "latency" in parts else []
        if "passes" in parts:
            figures += await loop.passes(g, scale, profiles)
        if "ingest" in parts:
            figures += await loop.ingest(g, scale, profiles)
        if "claims" in parts:
            with profiles.of("claims"):
                figures += await claims.measure(g, scale)
    return figures


def surroundings(began: tuple[float, ...], seconds: float) -> dict[str, object]:
    """The machine and its load, without which no figure means much."""
    return {
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load_before": [round(x, 2) for x in began],
        "load_after": [round(x, 2) for x in os.getloadavg()],
        "seconds": round(seconds, 1),
    }


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        print(
            f"bench: there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}",
            file=sys.stderr,
        )
        return 2
    warnings.simplefilter("ignore", RuntimeWarning)
    start_logging("bench", "one", level="error")
    profiles = Profiles(options.profile)
    load, began = os.getloadavg(), time.monotonic()
    parts, scale = options.parts or list(PARTS), 0.2 if options.quick else 1.0
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures = runner.run(asyncio.wait_for(measure(parts, scale, profiles), BOUND))
    except BenchFailed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"bench: not done within {BOUND:g} s", file=sys.stderr)
        return 1
    about = surroundings(load, time.monotonic() - began)
    if options.output == "json":
        print(
            json.dumps(
                {"surroundings": about, "figures": as_json(figures), "profiles": profiles.texts}, indent=1
            )
        )
        return 0
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(table(figures))
    for text in profiles.texts:
        print(f"\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
