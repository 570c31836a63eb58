"""Where this process's time goes while a figure is taken: by package, then by function."""

import cProfile
import pstats
import sysconfig
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = sysconfig.get_paths()["purelib"]
SHOWN = 14


class Profiles:
    """Off: blocks run as they are.  On: figures are slower, by about two, and each block is told apart."""

    def __init__(self, on: bool) -> None:
        self.on = on
        self.texts: list[str] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Profile this thread over the block."""
        if not self.on:
            yield
            return
        profile = cProfile.Profile(time.thread_time)
        profile.enable()
        try:
            yield
        finally:
            profile.disable()
            self.texts.append(f"profile of: {name}\n{shown(profile)}")


def shown(profile: cProfile.Profile) -> str:
    """Shares of the profiled processor time, largest first."""
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # typeshed leaves it out
    total = sum(entry[2] for entry in stats.values()) or 1.0
    packages: dict[str, float] = defaultdict(float)
    for (file, _line, function), entry in stats.items():
        packages[package(file, function)] += entry[2]
    lines = [f"  {seconds / total:5.0%}  {name}" for name, seconds in _largest(packages)]
    own = {
        f"{short(file)}:{line} {function}": (entry[2], entry[3], entry[1])
        for (file, line, function), entry in stats.items()
        if "/roadstead" in file
    }
    lines.append("  of our functions, with what they call (share, calls):")
    ranked = sorted(own.items(), key=lambda item: -item[1][1])[: SHOWN * 2]
    lines += [
        f"  {whole / total:5.0%} {self_ / total:5.0%} {calls:8}  {name}"
        for name, (self_, whole, calls) in ranked
    ]
    lines.append("  of all functions, by themselves (share, calls):")
    alone = sorted(stats.items(), key=lambda item: -item[1][2])[: SHOWN * 2]
    lines += [
        f"  {entry[2] / total:5.1%} {entry[1]:8}  {short(file)}:{line} {function}"
        for (file, line, function), entry in alone
    ]
    return "\n".join(lines)


def _largest(packages: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(packages.items(), key=lambda item: -item[1])[:SHOWN]


def package(file: str, function: str) -> str:
    """What a function belongs to: one of our packages, a library, the standard library, or a built-in by its owner."""
    if file == "~":
        return f"built-in {function.split(' of ')[-1].strip(chr(39) + '<>') if ' of ' in function else function.strip('<>')}"
    if file.startswith(LIBRARY):
        return Path(file).relative_to(LIBRARY).parts[0]
    if file.startswith(str(ROOT)):
        return ".".join(Path(short(file)).with_suffix("").parts[:2])
    return "standard library"


def short(file: str) -> str:
    """The path inside its distribution."""
    parts = Path(file).parts
    starts = [i for i, part in enumerate(parts) if part.startswith("roadstead") or part == "tests"]
    return "/".join(parts[starts[-1] :]) if starts else file
