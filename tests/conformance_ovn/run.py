"""Plays the recorded scenarios of the original provider on a real Northbound database and counts what came of them.

    python -m tests.conformance_ovn.run [--data FOLDER] [--only TEXT] [--show]

A scenario is identical, explained (by rules that are lines of docs/ovn-departures.md), not staged (with the reason), or different; the exit
status is 0 when none is different. What is identical is also taken over: the original's final rows, written by another hand.
"""

import argparse
import asyncio
import collections
import os
import sys
import time
from pathlib import Path


async def main(only: str, show: bool) -> int:
    from tests.conformance_ovn.play import DIFFERENT, EXPLAINED, IDENTICAL, NOT_STAGED, Verdict, play
    from tests.conformance_ovn.recorded import FOLDER, scenarios
    from tests.conformance_ovn.server import MISSING, is_installed, running
    from tests.conformance_ovn.stage import Stage

    chosen = [s for identifier, s in sorted(scenarios().items()) if only in identifier]
    if not chosen:
        print(f"no recorded scenarios in {FOLDER}: nothing was compared (--data FOLDER names another folder)")
        return 0
    if not is_installed():
        print(MISSING)
        return 2
    begin = time.monotonic()
    verdicts: list[Verdict] = []
    with running() as ovn:
        stage = Stage(ovn)
        await stage.open()
        try:
            for scenario in chosen:
                try:
                    verdict = await play(stage, scenario)
                except (AssertionError, TimeoutError) as error:
                    verdict = Verdict(
                        scenario["id"], DIFFERENT, notes=[f"it does not come to its end: {error}"]
                    )
                verdicts.append(verdict)
        finally:
            await stage.close()
    for verdict in verdicts:
        if verdict.word in (DIFFERENT, NOT_STAGED) or (show and verdict.word == EXPLAINED):
            because = f" by {', '.join(verdict.rules)}" if verdict.rules else ""
            print(f"{verdict.identifier}: {verdict.word}{because}")
            for note in verdict.notes:
                print(f"    {note}")
    rules = collections.Counter(rule for verdict in verdicts for rule in verdict.rules)
    for rule, count in sorted(rules.items()):
        print(f"{count:4} {rule}")
    counts = collections.Counter(verdict.word for verdict in verdicts)
    words = ", ".join(f"{counts[word]} {word}" for word in (IDENTICAL, EXPLAINED, NOT_STAGED, DIFFERENT))
    adopted = sum(verdict.adopted for verdict in verdicts)
    print(f"{len(verdicts)} scenarios: {words}; {adopted} rows of the original taken over unchanged")
    print(f"{time.monotonic() - begin:.0f} s on {ovn_version()}")
    return 1 if counts[DIFFERENT] else 0


def ovn_version() -> str:
    import subprocess

    shown = subprocess.run(
        ["ovn-nbctl", "--version"], capture_output=True, text=True, check=False, timeout=10
    )
    return shown.stdout.partition("\n")[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="folder of *.jsonl and world.json")
    parser.add_argument("--only", default="", help="scenarios whose id holds this")
    parser.add_argument("--show", action="store_true", help="explained scenarios too")
    given = parser.parse_args()
    if given.data:
        os.environ["ROADSTEAD_OVN_GOLDEN"] = str(given.data)
    sys.exit(asyncio.run(main(given.only, given.show)))
