"""What counts as a good run of the original's tests, and the statuses of the provider that they run against."""

from pathlib import Path

import pytest

from .provider import measured
from .verdict import judge, read_skips

SKIPS = """
- {tests: 'Amphora', says: only run with amphora, reason: there are none}
- {tests: 'Zone', says: zone, reason: there is one}
"""
PASSED = '<testcase classname="a.Pool" name="test_show"/>'
AMPHORA = '<testcase classname="a.Amphora" name="test_list"><skipped>Tests only run with amphora here</skipped></testcase>'
ZONE = '<testcase classname="a.Zone" name="test_list"><skipped message="no zone"/></testcase>'
STRANGE = '<testcase classname="a.Pool" name="test_list"><skipped>no reason</skipped></testcase>'
FAILED = '<testcase classname="a.Pool" name="test_list"><failure>Traceback\n1 != 2\n</failure></testcase>'
BROKEN = '<testcase classname="a.Pool" name="setUpClass"><error message="refused"/></testcase>'


@pytest.mark.parametrize(
    ("cases", "good", "counts"),
    [
        ((PASSED, AMPHORA, ZONE), True, (1, 2, 0, 0, 0)),
        ((PASSED, AMPHORA, ZONE, STRANGE), False, (1, 2, 0, 1, 0)),
        ((PASSED, AMPHORA, ZONE, FAILED), False, (1, 2, 1, 0, 0)),
        ((PASSED, AMPHORA, ZONE, BROKEN), False, (1, 2, 1, 0, 0)),
        ((PASSED, AMPHORA), False, (1, 1, 0, 0, 1)),
        ((AMPHORA, ZONE), False, (0, 2, 0, 0, 0)),
    ],
)
def test_a_run_is_good_when_all_passed_or_is_skipped_for_a_listed_reason(
    tmp_path: Path, cases: tuple[str, ...], good: bool, counts: tuple[int, ...]
) -> None:
    report, skips = tmp_path / "report.xml", tmp_path / "skips.yaml"
    report.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
    skips.write_text(SKIPS)
    verdict = judge(report, read_skips(skips), whole=True)
    assert verdict.is_good is good
    found = (
        verdict.passed,
        verdict.skipped,
        len(verdict.failures),
        len(verdict.unexplained),
        len(verdict.needless),
    )
    assert found == counts


def test_a_line_that_is_not_needed_counts_only_when_all_tests_ran(tmp_path: Path) -> None:
    report, skips = tmp_path / "report.xml", tmp_path / "skips.yaml"
    report.write_text(f"<testsuite>{PASSED}{AMPHORA}</testsuite>")
    skips.write_text(SKIPS)
    assert judge(report, read_skips(skips), whole=False).is_good
    skips.write_text("- {tests: x, says: y, reason: ' '}")
    with pytest.raises(ValueError, match="reason"):
        read_skips(skips)


def test_the_listed_reasons_can_be_read() -> None:
    assert all(one.reason for one in read_skips())


def test_what_is_measured_is_what_the_reference_provider_would_see() -> None:
    tree = {
        "loadbalancer_id": "lb",
        "loadbalancer": {
            "admin_state_up": True,
            "listeners": [
                {"listener_id": "l", "admin_state_up": True, "default_pool_id": "p"},
                {
                    "listener_id": "off",
                    "admin_state_up": False,
                    "l7policies": [
                        {
                            "l7policy_id": "y",
                            "admin_state_up": True,
                            "redirect_pool_id": "r",
                            "rules": [{"l7rule_id": "u", "admin_state_up": False}],
                        }
                    ],
                },
                {"listener_id": "goes", "admin_state_up": True},
            ],
            "pools": [
                {
                    "pool_id": "p",
                    "admin_state_up": True,
                    "healthmonitor": {"healthmonitor_id": "h", "admin_state_up": True},
                },
                {
                    "pool_id": "r",
                    "admin_state_up": True,
                    "members": [
                        {"member_id": "m", "admin_state_up": True},
                        {"member_id": "out", "admin_state_up": False},
                    ],
                },
                {"pool_id": "idle", "admin_state_up": True},
            ],
        },
        "statuses": {
            "loadbalancers": {"lb": ["ACTIVE", "ONLINE"]},
            "listeners": {"goes": ["PENDING_DELETE", "ONLINE"], "l": ["ACTIVE", "OFFLINE"]},
            "pools": {"idle": ["ACTIVE", "ONLINE"]},
        },
    }
    found = {
        kind: {one["id"]: one["operating_status"] for one in rows} for kind, rows in measured(tree).items()
    }
    assert found == {
        "listeners": {"l": "ONLINE", "off": "OFFLINE"},
        "l7policies": {"y": "ONLINE"},
        "l7rules": {"u": "OFFLINE"},
        "pools": {"p": "ONLINE", "r": "ONLINE", "idle": "OFFLINE"},
        "healthmonitors": {"h": "ONLINE"},
        "members": {"m": "NO_MONITOR", "out": "OFFLINE"},
    }
