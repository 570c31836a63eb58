"""Settings: from the environment to options, and what cannot be is told with its remedy."""

import dataclasses
from pathlib import Path

import pytest

from roadstead.settings import BadSettings, table
from roadstead_octavia.options import Options
from roadstead_octavia.settings import PREFIX, OctaviaSettings, load_octavia_settings


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [n for n in os.environ if n.startswith(PREFIX)]:
        monkeypatch.delenv(name)


def test_without_any_setting_the_options_are_the_defaults() -> None:
    assert load_octavia_settings().options() == Options()


def test_every_option_has_a_setting_and_every_setting_a_description() -> None:
    names = {field.name for field in dataclasses.fields(Options)} - {"default_quotas"}
    assert names <= set(OctaviaSettings.model_fields)
    rows = table(OctaviaSettings)
    assert all(row["description"].endswith((".", ":")) for row in rows), rows
    assert all(row["variable"].startswith(PREFIX) for row in rows)


def test_lists_providers_and_quotas_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RESERVED_IPS": "192.0.2.1, 192.0.2.2",
        "ENABLED_PROVIDER_DRIVERS": "ovn:Virtual networks.,noop:Nothing",
        "DEFAULT_POOL_QUOTA": "7",
        "PAGINATION_MAX_LIMIT": "-1",
        "VALID_VIP_NETWORKS": "a,b",
        "URL_PREFIX": "load-balancer/",
    }.items():
        monkeypatch.setenv(PREFIX + name, value)
    settings = load_octavia_settings()
    options = settings.options()
    assert options.reserved_ips == ("192.0.2.1", "192.0.2.2")
    assert options.enabled_provider_drivers == {"ovn": "Virtual networks.", "noop": "Nothing"}
    assert (options.default_quotas["pool"], options.default_quotas["listener"]) == (7, -1)
    assert options.pagination_max_limit is None
    assert options.valid_vip_networks == ("a", "b")
    assert settings.url_prefix == "/load-balancer"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"bind_port": 70000}, "BIND_PORT: "),
        ({"auth_strategy": "magic"}, "AUTH_STRATEGY: "),
        ({"default_pool_quota": -2}, "DEFAULT_POOL_QUOTA: "),
        ({"enabled_provider_drivers": " :x"}, "give NAME:DESCRIPTION"),
        ({"enabled_provider_drivers": "a b:c,noop:x"}, "names of letters, digits, _ and -"),
        ({"auth_url": "not a uri"}, "AUTH_URL: give an address"),
        ({"api_base_uri": "host/v2"}, "API_BASE_URI: give an address"),
        ({"default_provider_driver": "amphora"}, "is not among ROADSTEAD_OCTAVIA_ENABLED_PROVIDER_DRIVERS"),
        ({"minimum_tls_version": "TLSv1.3"}, "TLSv1.2 is below ROADSTEAD_OCTAVIA_MINIMUM_TLS_VERSION"),
        ({"default_pool_tls_versions": "TLSv9"}, "TLSv9 is none of"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_the_variable(given: dict[str, object], text: str) -> None:
    with pytest.raises(BadSettings) as caught:
        load_octavia_settings(**given)
    assert text in str(caught.value)
    assert PREFIX in str(caught.value)


def test_the_identity_service_and_its_password_are_asked_for_when_they_are_missing(tmp_path: Path) -> None:
    settings = load_octavia_settings()
    with pytest.raises(BadSettings, match="ROADSTEAD_OCTAVIA_AUTH_URL"):
        settings.identity_url()
    with pytest.raises(BadSettings, match="ROADSTEAD_OCTAVIA_PASSWORD"):
        settings.service_password()
    with pytest.raises(BadSettings, match="cannot be read"):
        load_octavia_settings(password_file=tmp_path / "none").service_password()
    (tmp_path / "secret").write_text("pw\n")
    assert load_octavia_settings(password_file=tmp_path / "secret").service_password() == "pw"
    for given in ("http://keystone:5000", "http://keystone:5000/", "http://keystone:5000/v3/"):
        assert load_octavia_settings(auth_url=given).identity_url() == "http://keystone:5000/v3"
