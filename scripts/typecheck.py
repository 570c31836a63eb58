#!/usr/bin/env python3
"""Runs mypy over the product, then over the tests.

Several runs, because the members' test folders all bear the same name: as seen from its member, `tests/test_decide.py`
of one service is the same module as that of the next. The second run therefore names every file from the repository's
root and finds the product as installed packages; its settings are those of pyproject.toml without `mypy_path`. Tests of a
member whose folder cannot be part of a module's name (`octavia-api`) are a run of their own, seen from that member.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(".run/cache")


def settings_with_bases(pyproject: str, bases: list[str]) -> str:
    """Return pyproject's text with another search path of mypy; ValueError when it has none to take out."""
    path = f"mypy_path = {bases}\n" if bases else ""
    text, found = re.subn(r"^mypy_path = \[.*?\]\n", path, pyproject, count=1, flags=re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError("pyproject.toml has no mypy_path list; adapt scripts/typecheck.py")
    return text


def has_source(folder: Path) -> bool:
    """True when the folder holds a Python file at any depth."""
    return next(folder.rglob("*.py"), None) is not None


def product_folders(root: Path) -> list[Path]:
    """Folders with product code, relative to the root."""
    candidates = [
        root / "libs/common/roadstead",
        *sorted(root.glob("services/*/roadstead_*")),
        root / "deploy/cloud",
    ]
    found = [folder.relative_to(root) for folder in candidates if folder.is_dir() and has_source(folder)]
    return found + [path.relative_to(root) for path in sorted(root.glob("scripts/*.py"))]


def test_folders(root: Path) -> list[Path]:
    """Folders with tests, relative to the root."""
    patterns = ("libs/*/tests", "services/*/tests", "scripts/tests", "tests")
    folders = [folder for pattern in patterns for folder in sorted(root.glob(pattern))]
    return [folder.relative_to(root) for folder in folders if folder.is_dir() and has_source(folder)]


def mypy(arguments: list[str | Path]) -> int:
    """Run mypy of this interpreter's environment in the root; return its exit status."""
    command = [sys.executable, "-m", "mypy", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=900).returncode


def nameable(folder: Path) -> bool:
    """True when each part of the path can be part of a module's name."""
    return all(part.isidentifier() for part in folder.parts)


def tests_of(folders: list[Path], bases: list[str]) -> int:
    """Check these folders with that search path; mypy's exit status."""
    name = bases[0].replace("/", "-") if bases else "all"
    config = ROOT / CACHE / f"mypy-tests/{name}/pyproject.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(settings_with_bases((ROOT / "pyproject.toml").read_text(), bases))
    return mypy(["--config-file", config, "--cache-dir", CACHE / f"mypy-tests/{name}/cache", *folders])


def main() -> int:
    """Check all sets; exit status 0 only when each is clean."""
    status = mypy([*product_folders(ROOT)])
    folders = test_folders(ROOT)
    named = [folder for folder in folders if nameable(folder)]
    if named:
        status = tests_of(named, []) or status
    for folder in folders:
        if not nameable(folder):
            status = tests_of([folder], [str(folder.parent)]) or status
    return status


if __name__ == "__main__":
    sys.exit(main())
