"""The catalogue: names that exist, an order that can be carried out, configuration that is filled in."""

import shutil
from pathlib import Path

import pytest
import yaml

from localcloud import configuration, settings
from localcloud.console import CloudError
from localcloud.lifecycle import environment
from localcloud.services import GROUPS, Service, catalogue, with_needs


@pytest.fixture
def loaded(tmp_path: Path) -> settings.Settings:
    return settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path)})


@pytest.fixture
def written(loaded: settings.Settings) -> settings.Settings:
    """Settings whose configuration has been written; Nova's own file stands in for an installed one."""
    paste = loaded.venv / "etc/nova/api-paste.ini"
    paste.parent.mkdir(parents=True)
    paste.write_text("[composite:osapi_compute]\n")
    configuration.write(loaded)
    return loaded


def test_every_name_in_the_catalogue_and_the_groups_exists(loaded: settings.Settings) -> None:
    services = catalogue(loaded)
    named = {n for s in services.values() for n in (*s.needs, *s.after)} | {
        n for g in GROUPS.values() for n in g
    }
    assert named <= set(services)


def test_what_a_service_comes_after_is_always_started_with_it(loaded: settings.Settings) -> None:
    services = catalogue(loaded)
    for service in services.values():
        together = {s.name for s in with_needs([service.name], services)}
        assert set(service.after) <= together, service.name


def test_the_order_of_starting_has_no_circle(loaded: settings.Settings) -> None:
    pending, ready = dict(catalogue(loaded)), set[str]()
    while pending:
        startable = [s for s in pending.values() if ready.issuperset(s.after)]
        assert startable, f"nobody of {sorted(pending)} may start"
        for service in startable:
            ready.add(service.name)
            del pending[service.name]


def test_no_names_mean_all_but_optional_services(loaded: settings.Settings) -> None:
    services = catalogue(loaded)
    started = {s.name for s in with_needs([], services)}
    assert started == {s.name for s in services.values() if not s.optional}
    assert "ironic" not in started


def test_identity_alone_is_small(loaded: settings.Settings) -> None:
    started = [s.name for s in with_needs(["identity"], catalogue(loaded))]
    assert started == ["mariadb", "memcached", "keystone"]


def test_an_unknown_service_is_refused_with_the_known_names() -> None:
    known = {"only": Service("only", ("true",), None)}
    with pytest.raises(CloudError, match="no service or group is called nowa; services: only"):
        with_needs(["nowa"], known)


def test_every_placeholder_is_filled(written: settings.Settings) -> None:
    files = [path for path in written.etc.rglob("*") if path.is_file()]
    assert len(files) > 30
    assert [path.name for path in files if "{{" in path.read_text()] == []


def test_an_unknown_placeholder_is_an_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        configuration.fill("x = {{nobody}}", {})


def test_compute_services_know_no_database(written: settings.Settings) -> None:
    assert "connection = mysql" in (written.etc / "nova/nova-conductor.conf").read_text()
    for name in ("nova-compute", "nova-compute-2", "nova-compute-baremetal"):
        assert "connection = mysql" not in (written.etc / f"nova/{name}.conf").read_text()


def test_policies_are_written_by_choice(written: settings.Settings, tmp_path: Path) -> None:
    nova = written.etc / "nova/policy.yaml"
    assert "os_compute_api:os-quota-sets:update" in yaml.safe_load(nova.read_text())
    stock = settings.load({"ROADSTEAD_CLOUD_HOME": str(tmp_path), "ROADSTEAD_CLOUD_POLICY": "stock"})
    configuration.write(stock)
    assert yaml.safe_load(nova.read_text()) == {}


def test_every_policy_file_is_a_mapping_of_rules_and_belongs_to_a_service() -> None:
    files = sorted(configuration.POLICY_FILES.glob("*.yaml"))
    assert {path.stem for path in files} <= set(configuration.POLICED)
    assert len(files) == 7
    for path in files:
        rules = yaml.safe_load(path.read_text())
        assert rules, path.name
        assert all(isinstance(check, str) for check in rules.values()), path.name


def test_services_see_no_credentials_of_whoever_starts_them(
    loaded: settings.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_PASSWORD", "mine")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    given = environment(loaded)
    assert "OS_PASSWORD" not in given
    assert given["PYTHONPATH"] == str(loaded.drivers)


def test_clouds_yaml_has_the_four_logins(written: settings.Settings) -> None:
    clouds = yaml.safe_load(written.clouds_yaml.read_text())["clouds"]
    assert set(clouds) == {f"roadstead-{who}" for who in ("admin", "system", "manager", "member")}
    assert clouds["roadstead-admin"]["auth"]["auth_url"] == f"{written.url('keystone')}/v3"


def test_running_writes_nothing_beside_the_sources(written: settings.Settings) -> None:
    copied = {path.name for path in written.drivers.glob("*.py")}
    assert copied == {path.name for path in (settings.SOURCE / "drivers").glob("*.py")}
    shutil.rmtree(written.drivers)  # a copy: the sources stay
    assert (settings.SOURCE / "drivers/orders.py").exists()
