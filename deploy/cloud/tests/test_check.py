"""The check itself must be able to fail, and the kept state must notice a change."""

from pathlib import Path

import pytest

from localcloud import golden, packages, settings
from localcloud.check import Check
from localcloud.console import CloudError
from localcloud.rest import Answer, request, wait_for
from localcloud.seed import DISK, IMAGES

REQUIRED = ("unikorn:os:kernel", "unikorn:os:family", "unikorn:os:distro", "unikorn:os:version",
            "unikorn:virtualization")  # fmt: skip


def test_an_unexpected_status_counts_as_a_failure() -> None:
    check = Check()
    assert check.expect("refused", Answer(403, {}, {"a": 1}, ""), 403) == {"a": 1}
    assert not check.expect("allowed", Answer(201, {}, {"a": 1}, ""), 403)
    assert (check.total, check.bad) == (2, 1)


def test_a_state_that_is_not_reached_counts_as_a_failure() -> None:
    check = Check()
    assert not check.becomes("server", lambda: "ERROR", "ACTIVE")
    assert check.becomes("volume", lambda: "error", "error", broken="")
    assert (check.total, check.bad) == (2, 1)


def test_what_cannot_be_cleaned_counts_and_the_rest_is_still_cleaned() -> None:
    check, gone = Check(), []

    def refuse() -> None:
        raise CloudError("no")

    check.later("first made", lambda: gone.append("first made"))
    check.later("stuck", refuse)
    check.later("last made", lambda: gone.append("last made"))
    check.clean()
    assert gone == ["last made", "first made"]
    assert check.bad == 1


def test_waiting_ends() -> None:
    with pytest.raises(CloudError, match="in vain: the moon"):
        wait_for(lambda: False, "the moon", limit=0.05, every=0.01)


def test_a_cloud_that_is_down_is_told_with_a_remedy() -> None:
    with pytest.raises(CloudError, match="is the cloud up"):
        request("GET", "http://127.0.0.1:1/")


def test_seeded_images_pass_the_filter_or_fail_it_on_purpose() -> None:
    good = [name for name, properties in IMAGES.items() if all(properties.get(key) for key in REQUIRED)]
    assert good == ["debian-12", "ubuntu-24.04", "deactivated"]
    assert IMAGES["no-properties"] == {}
    assert not DISK[:512].endswith(b"\x55\xaa")  # Glance would look for a partition table


def test_every_requirement_is_pinned_with_a_hash_and_no_address() -> None:
    text = packages.REQUIREMENTS.read_text()
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(pins) > 150
    assert all("==" in pin for pin in pins)
    assert text.count("--hash=sha256:") >= len(pins)
    assert "://" not in text


def test_a_kept_state_is_usable_only_for_what_made_it(tmp_path: Path) -> None:
    loaded = settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path)})
    (loaded.data / "mysql").mkdir(parents=True)
    (loaded.data / "mysql/table").write_text("seeded")
    assert not golden.usable(loaded)
    golden.keep(loaded)
    assert golden.usable(loaded)
    (loaded.data / "mysql/table").write_text("changed by a test")
    golden.restore(loaded)
    assert (loaded.data / "mysql/table").read_text() == "seeded"
    other = settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path), "ROADSTEAD_CLOUD_REGION": "Other"})
    assert not golden.usable(other)
