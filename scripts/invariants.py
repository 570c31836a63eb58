#!/usr/bin/env python3
"""Says which test proves which numbered requirement, and fails on what is owed and unproved.

The list is tests/invariants.toml. A test proves an id when its function's name holds it: `inv_084` or `ref_007`,
any number of them. Names are read from the syntax tree, so nothing is imported and a commented-out test counts for
nothing. A test that always skips would count; the levels' own report shows skips.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_FOLDERS = ("libs", "services", "tests", "scripts", "deploy")
IN_NAME = re.compile(r"(?<![a-z0-9])(inv|ref)_(\d{3})(?!\d)")
AN_ID = re.compile(r"(INV|REF)-\d{3}")


@dataclass(frozen=True)
class Requirement:
    """One numbered requirement; `waits` is the issue and the reason when no test is owed yet."""

    id: str
    clause: str
    waits: str | None


def read_requirements(text: str) -> dict[str, Requirement]:
    """Parse tests/invariants.toml; ValueError names the entry that is faulty or listed twice."""
    document = tomllib.loads(text)
    found: dict[str, Requirement] = {}
    for kind in ("owed", "left"):
        for section, entries in document.get(kind, {}).items():
            waits = None
            if kind == "left":
                if not entries.get("issue") or not entries.get("reason"):
                    raise ValueError(f"[left.{section}] needs an issue and a reason")
                waits = f"{entries['issue']}: {entries['reason']}"
            for key, clause in entries.items():
                if kind == "left" and key in ("issue", "reason"):
                    continue
                if not AN_ID.fullmatch(key) or not isinstance(clause, str) or not clause:
                    raise ValueError(f'[{kind}.{section}] {key}: expected INV-nnn or REF-nnn = "clause"')
                if key in found:
                    raise ValueError(f"{key} stands twice; the second time in [{kind}.{section}]")
                found[key] = Requirement(key, clause, waits)
    return dict(sorted(found.items()))


def ids_in(name: str) -> list[str]:
    """The ids that a test's name bears: test_inv_001_and_ref_002 -> INV-001, REF-002."""
    return [f"{kind.upper()}-{number}" for kind, number in IN_NAME.findall(name)]


def test_names(source: str) -> Iterator[str]:
    """Names of the test functions and methods of a module, in order, those in classes too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def tests_by_id(root: Path) -> dict[str, list[str]]:
    """Map each id that a test bears to `path::name` of its tests."""
    proofs: dict[str, list[str]] = {}
    for folder in TEST_FOLDERS:
        for path in sorted((root / folder).rglob("test_*.py")):
            for name in test_names(path.read_text()):
                for id_ in ids_in(name):
                    proofs.setdefault(id_, []).append(f"{path.relative_to(root)}::{name}")
    return proofs


def report(
    requirements: Mapping[str, Requirement], proofs: Mapping[str, list[str]]
) -> tuple[list[str], bool]:
    """Return the lines to print and whether all is well: each owed id has a test, no test bears an unknown one."""
    lines: list[str] = []
    unproved = [id_ for id_, item in requirements.items() if item.waits is None and id_ not in proofs]
    unknown = sorted(proofs.keys() - requirements.keys())
    for id_, item in requirements.items():
        lines.append(f"{id_}  {item.clause}")
        lines += [f"         {test}" for test in proofs.get(id_, [])]
        if id_ not in proofs:
            lines.append("         NO TEST" if item.waits is None else f"         left for {item.waits}")
    for id_ in unknown:
        lines.append(f"{id_}  UNKNOWN, in {', '.join(proofs[id_])}")
    owed = sum(item.waits is None for item in requirements.values())
    left = len(requirements) - owed
    lines.append("")
    lines.append(f"{owed} owed, {owed - len(unproved)} with a test; {left} left for later")
    if unproved:
        lines.append(f"owed without a test ({len(unproved)}): {' '.join(unproved)}")
    if unknown:
        lines.append(f"in a test's name but not in tests/invariants.toml: {' '.join(unknown)}")
    return lines, not unproved and not unknown


def main() -> int:
    """Print the report; exit status 1 when something owed has no test or an id is unknown, 2 for a faulty list."""
    try:
        requirements = read_requirements((ROOT / "tests/invariants.toml").read_text())
    except (OSError, ValueError) as problem:
        print(f"invariants: tests/invariants.toml: {problem}", file=sys.stderr)
        return 2
    lines, complete = report(requirements, tests_by_id(ROOT))
    print("\n".join(lines))
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
