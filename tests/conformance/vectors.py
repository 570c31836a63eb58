"""The driver agent's vectors: status, statistics and get messages, replayed and judged like exchanges."""

import collections
from pathlib import Path
from typing import Any

from . import recordings
from .departures_seam import explain

Counter = collections.Counter[str]


def replay(file: Path, target: tuple[str, str]) -> tuple[Counter, Counter, list[dict[str, Any]]]:
    """Counts by verdict; how often each departure was needed; what nothing explains.

    target: (address of the API, address of the adapter).
    """
    conflib, replayer, seam = (recordings.module(name) for name in ("conflib", "replay", "seam"))

    counts: Counter = collections.Counter()
    departures: Counter = collections.Counter()
    different: list[dict[str, Any]] = []
    http = None
    for header, vector in conflib.read_file(str(file)):
        counts["vectors"] += 1
        http = http or replayer.HttpTarget(*target, header["primary_keys"])
        state = conflib.state_apply(header["base"], vector["pre"], header["primary_keys"])
        known = conflib.Known(state, vector["message"], vector.get("world") or {})
        try:
            got = seam.run_vector(http, vector, state)
        except replayer.Unsupported:
            counts["unsupported"] += 1
            continue
        free = vector.get("free_text")
        expected = seam.canonical(vector["expected"], known, free)
        actual = seam.canonical(got, known, free)
        if conflib.unordered(expected) == conflib.unordered(actual):
            counts["identical"] += 1
            continue
        line = {"message": vector["message"], "expected": expected, "actual": actual}
        used = explain(line, lambda a, b: conflib.unordered(a) == conflib.unordered(b))
        if used is None:
            counts["different"] += 1
            different.append({"vector": vector["vector"], **line})
        else:
            counts["explained"] += 1
            departures.update(used)
    if http is not None:
        http.close()
    return counts, departures, different
