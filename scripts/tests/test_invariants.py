"""The report of requirements: names in, verdict out."""

from pathlib import Path

import pytest
from scripts import invariants
from scripts.invariants import Requirement

LIST = """
[owed.a]
INV-002 = "two"
REF-001 = "one"
[left.b]
issue = "depth"
reason = "later"
INV-001 = "first"
"""


def test_the_list_of_the_tree_is_complete() -> None:
    listed = invariants.read_requirements((invariants.ROOT / "tests/invariants.toml").read_text())
    expected = {f"INV-{n:03}" for n in range(1, 315)} | {f"REF-{n:03}" for n in range(1, 68)}
    assert listed.keys() == expected


def test_sections_say_what_is_owed() -> None:
    assert invariants.read_requirements(LIST) == {
        "INV-001": Requirement("INV-001", "first", "depth: later"),
        "INV-002": Requirement("INV-002", "two", None),
        "REF-001": Requirement("REF-001", "one", None),
    }


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        ('[owed.a]\nINV-1 = "x"', "INV-1: expected"),
        ('[owed.a]\nINV-001 = ""', "INV-001: expected"),
        ('[owed.a]\nINV-001 = "x"\n[owed.b]\nINV-001 = "y"', "INV-001 stands twice"),
        ('[left.a]\nissue = "depth"\nINV-001 = "x"', "needs an issue and a reason"),
    ],
)
def test_a_faulty_list_is_refused(faulty: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        invariants.read_requirements(faulty)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_inv_084_is_rebuilt_once", ["INV-084"]),
        ("test_inv_001_inv_002_and_ref_003", ["INV-001", "INV-002", "REF-003"]),
        ("test_inv_117_400_is_a_status", ["INV-117"]),
        ("test_inventory_123", []),
        ("test_inv_0841", []),
        ("test_xref_001", []),
    ],
)
def test_names_bear_ids(name: str, ids: list[str]) -> None:
    assert invariants.ids_in(name) == ids


def test_only_test_functions_are_proofs(tmp_path: Path) -> None:
    folder = tmp_path / "libs/x/tests"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text(
        "def helper_inv_001(): ...\n# def test_inv_002(): ...\n"
        "async def test_inv_003_x(): ...\nclass TestB:\n    def test_ref_004(self): ...\n"
    )
    (folder / "support.py").write_text("def test_inv_005(): ...\n")
    assert invariants.tests_by_id(tmp_path) == {
        "INV-003": ["libs/x/tests/test_a.py::test_inv_003_x"],
        "REF-004": ["libs/x/tests/test_a.py::test_ref_004"],
    }


def test_the_report_fails_on_what_is_owed_and_on_unknown_ids() -> None:
    listed = invariants.read_requirements(LIST)
    complete = {"INV-002": ["t::a"], "REF-001": ["t::b"]}
    lines, good = invariants.report(listed, complete)
    assert good
    assert "2 owed, 2 with a test; 1 left for later" in lines
    assert "         left for depth: later" in lines

    lines, good = invariants.report(listed, {"INV-002": ["t::a"]})
    assert not good
    assert lines[-1] == "owed without a test (1): REF-001"

    lines, good = invariants.report(listed, complete | {"INV-900": ["t::c"]})
    assert not good
    assert "INV-900  UNKNOWN, in t::c" in lines
