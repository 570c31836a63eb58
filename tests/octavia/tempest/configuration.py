"""tempest.conf for a service in the reference cloud.

Times are short because the provider answers within milliseconds: what waits for long is wrong.
"""

from configparser import RawConfigParser
from pathlib import Path

from roadstead_octavia.provider.noop.driver import FLAVOR_METADATA, ZONE_METADATA

PROVIDER = "plain"


def write(
    path: Path, *, auth_url: str, password: str, region: str, external_network: str, providers: str
) -> None:
    """providers: as ROADSTEAD_OCTAVIA_ENABLED_PROVIDER_DRIVERS has them."""
    sections: dict[str, dict[str, object]] = {
        "DEFAULT": {"log_file": "tempest.log", "use_stderr": False},
        "oslo_concurrency": {"lock_path": path.parent / "lock"},
        "auth": {
            "use_dynamic_credentials": True,
            "create_isolated_networks": False,
            "admin_username": "admin",
            "admin_password": password,
            "admin_project_name": "admin",
            "admin_domain_name": "Default",
            "admin_user_domain_name": "Default",
            "admin_project_domain_name": "Default",
            "default_credentials_domain_name": "Default",
            "tempest_roles": "member",
        },
        "identity": {"uri_v3": auth_url, "region": region, "auth_version": "v3"},
        "identity-feature-enabled": {"api_v2": False, "api_v2_admin": False},
        "network": {"public_network_id": external_network, "project_networks_reachable": False},
        "service_available": {
            "load_balancer": True,
            "neutron": True,
            "nova": True,
            "glance": True,
            "cinder": False,
            "swift": False,
        },
        "enforce_scope": {"octavia": True},
        "load_balancer": {
            "provider": PROVIDER,
            "region": region,
            "enabled_provider_drivers": providers,
            "expected_flavor_capability": _pairs(FLAVOR_METADATA),
            "expected_availability_zone_capability": _pairs({"compute_zone": ZONE_METADATA["compute_zone"]}),
            "RBAC_test_type": "keystone_default_roles",
            "build_interval": 0.2,
            "build_timeout": 60,
            "check_interval": 0.2,
            "check_timeout": 60,
            "lb_build_interval": 0.2,
            "lb_build_timeout": 60,
            "octavia_svc_username": "octavia",
            "availability_zone": "nova",
            "availability_zone2": "second",
            "availability_zone3": "third",
            "log_user_roles": False,
        },
        "loadbalancer-feature-enabled": {"not_implemented_is_error": True},
    }
    # Its own way of values is that of its library: no interpolation, names in upper case stay.
    parser = RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # the documented way to keep case
    for section, values in sections.items():
        if section != "DEFAULT":
            parser.add_section(section)
        for name, value in values.items():
            parser.set(section, name, str(value))
    with path.open("w") as stream:
        parser.write(stream)


def _pairs(capabilities: dict[str, str]) -> str:
    return ",".join(f"{name}:{text}" for name, text in capabilities.items())
