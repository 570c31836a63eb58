"""What is known of the original, as data that this project does not hold."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from .client import ROOT

SHARED = Path(os.environ.get("ROADSTEAD_SHARED") or ROOT.parent / "shared")
FACTS = SHARED / "octavia-facts"
RECORDINGS = SHARED / "conformance"

needs_facts = pytest.mark.skipif(
    not (FACTS / "routes.yaml").is_file(),
    reason=f"{FACTS} with the facts of the original is missing; set ROADSTEAD_SHARED to the folder above it",
)
needs_recordings = pytest.mark.skipif(
    not (RECORDINGS / "extra_forms.jsonl.gz").is_file(),
    reason=f"{RECORDINGS} with the recorded exchanges is missing; set ROADSTEAD_SHARED to the folder above it",
)


@dataclass(frozen=True)
class Exchange:
    test: str
    kind: str
    request: dict[str, Any]
    world: dict[str, Any]
    response: dict[str, Any]
    loose: dict[str, Any]

    @property
    def body(self) -> Any:
        """What was answered, JSON as plain values."""
        raw = self.response.get("body")
        if raw and "json" in str(self.response["headers"].get("content-type")):
            return json.loads(raw)
        return raw or ""


def facts_of(name: str) -> Any:
    """The content of one file of facts; the loader in C, as the files are long."""
    return yaml.load((FACTS / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader)


def exchanges(name: str) -> Iterator[Exchange]:
    with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as lines:
        next(lines)
        for line in lines:
            test = json.loads(line)
            for step in test["steps"]:
                yield Exchange(
                    test["test"],
                    step.get("kind", ""),
                    step["request"],
                    step["world"],
                    step["expected"]["response"],
                    step.get("loose", {}),
                )
