"""Settings: defaults, refusals that name the variable, and what install fixes."""

from pathlib import Path

import pytest

from localcloud import settings
from localcloud.console import CloudError


def test_defaults_stay_in_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "REPOSITORY", tmp_path)
    loaded = settings.load({})
    assert loaded.home == (tmp_path / ".run" / "cloud").resolve()
    assert loaded.policy == "region"
    assert loaded.url("keystone") == "http://127.0.0.1:21000"


def test_every_service_has_a_port_of_its_own(tmp_path: Path) -> None:
    loaded = settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path), "ROADSTEAD_CLOUD_PORT_BASE": "30000"})
    ports = [loaded.port(name) for name in settings.PORT_NAMES]
    assert ports == list(range(30000, 30000 + len(settings.PORT_NAMES)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POLICY", "lax"),
        ("PORT_BASE", "80"),
        ("PORT_BASE", "many"),
        ("PORT_BASE", "65535"),
        ("TOKEN_SECONDS", "0"),
        ("MEMBER_HEALTH", "well"),
        ("DEBUG", "yes"),
        ("PASSWORD", "a'b"),
        ("REGION", "a b"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_variable(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(CloudError, match=f"ROADSTEAD_CLOUD_{name}"):
        settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path), f"ROADSTEAD_CLOUD_{name}": value})


def test_a_home_that_shells_would_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match="ROADSTEAD_CLOUD_HOME"):
        settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path / "my cloud")})


def test_install_fixes_what_ends_up_in_the_databases(tmp_path: Path) -> None:
    home = {"ROADSTEAD_CLOUD_HOME": str(tmp_path)}
    settings.fix(settings.load({**home, "ROADSTEAD_CLOUD_PORT_BASE": "24000"}))
    assert settings.load(home).port_base == 24000
    with pytest.raises(CloudError, match="installed with ROADSTEAD_CLOUD_PORT_BASE=24000"):
        settings.load({**home, "ROADSTEAD_CLOUD_PORT_BASE": "25000"})


def test_a_long_home_keeps_its_sockets_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    loaded = settings.load({"ROADSTEAD_CLOUD_HOME": str(deep)})
    assert len(str(loaded.sockets)) <= settings.LONGEST_SOCKET_DIRECTORY
    other = settings.load({"ROADSTEAD_CLOUD_HOME": str(deep) + "e"})
    assert loaded.sockets != other.sockets
