"""Everything about the simulated cloud that a test may turn.

Durations are seconds on the cloud's clock. A switch names the behaviour that is on when
it is true; the defaults are what current real services do.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from .policy import REGION_OVERRIDES

NAME_FILTERS = ("real", "fuzzy")
"""`real`: Nova by regular expression, the others exact but case-insensitive.
`fuzzy`: every list with a name filter matches by prefix or regular expression."""


@dataclass
class Durations:
    """How long each asynchronous change takes, in seconds."""

    server_schedule: float = 0.2
    server_network: float = 0.3
    server_spawn: float = 1.0
    rebuild_start: float = 0.3
    rebuild_block_device: float = 0.3
    rebuild_spawn: float = 1.0
    server_reboot: float = 1.0
    server_stop: float = 1.0
    server_start: float = 0.5
    server_delete: float = 1.0
    server_resize: float = 1.0
    server_snapshot: float = 1.0
    volume_create: float = 1.0
    volume_delete: float = 1.0
    volume_attach: float = 0.5
    volume_detach: float = 0.5
    volume_extend: float = 0.5
    image_import: float = 1.0
    port_up: float = 0.3
    lb_build: float = 1.0
    lb_children: float = 0.5
    lb_update: float = 0.5
    lb_delete: float = 1.0

    def scale(self, factor: float) -> None:
        """Multiply every duration; 0 makes every change take effect at the next call."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) * factor)


@dataclass
class PageSizes:
    """Rows of a page when the caller names no limit, and the most a limit may ask for."""

    compute: int = 1000
    network: int = 0  # 0: no page unless the caller names a limit
    image: int = 25
    image_max: int = 1000
    volume: int = 1000
    load_balancer: int = 1000


NOVA_QUOTAS = {
    "instances": 10, "cores": 20, "ram": 51200, "key_pairs": 100, "metadata_items": 128,
    "server_groups": 10, "server_group_members": 10,
}  # fmt: skip
NEUTRON_QUOTAS = {
    "network": 100, "subnet": 100, "port": 500, "router": 10, "floatingip": 50, "security_group": 10,
    "security_group_rule": 100, "subnetpool": -1, "rbac_policy": 10, "trunk": -1,
}  # fmt: skip
CINDER_QUOTAS = {
    "volumes": 10, "snapshots": 10, "gigabytes": 1000, "backups": 10, "backup_gigabytes": 1000,
    "per_volume_gigabytes": -1, "groups": 10,
}  # fmt: skip
OCTAVIA_QUOTAS = {
    "load_balancer": -1, "listener": -1, "pool": -1, "member": -1, "health_monitor": -1,
    "l7policy": -1, "l7rule": -1,
}  # fmt: skip


@dataclass
class SimSettings:
    """The simulated cloud's settings; every field may be changed while it runs."""

    admin_password: str = "admin"
    region_name: str = "RegionOne"
    base_url: str = "http://cloud.invalid"
    # Addresses in the catalog, by service type, of services that are not the simulator's own.
    endpoints: dict[str, str] = field(default_factory=dict)
    token_lifetime: float = 3600.0
    durations: Durations = field(default_factory=Durations)
    pages: PageSizes = field(default_factory=PageSizes)
    # Which rules of the stock policies are widened; see policy.py.
    policy_overrides: set[str] = field(default_factory=lambda: set(REGION_OVERRIDES))
    name_filter: str = "real"
    list_shows_fault: bool = True
    stale_fault: bool = False
    hide_task_state: bool = False
    hide_launched_at: bool = False
    password_change_kills_same_second: bool = True
    # A token of a deleted user or project stays good in every service except Keystone.
    tokens_outlive_owner: bool = True
    lb_active_before_children: bool = True
    lb_providers: tuple[str, ...] = ("ovn", "amphora")
    lb_default_provider: str = "ovn"
    refused_lb_leaves_vip_port: bool = True
    # Whether Neutron has the extension of QoS policies.
    qos_policies: bool = True
    console_types: tuple[str, ...] = ("novnc",)
    compute_hosts: tuple[str, ...] = ("compute-1", "compute-2")
    physical_networks: tuple[str, ...] = ("physnet1", "physnet2", "external")
    # Glance refuses import sources on loopback or link-local addresses and ports other than 80, 443.
    image_import_filter: bool = True
    compute_max: str = "2.104"
    volume_max: str = "3.71"
    log_limit: int = 200_000
    quota_compute: dict[str, int] = field(default_factory=lambda: dict(NOVA_QUOTAS))
    quota_network: dict[str, int] = field(default_factory=lambda: dict(NEUTRON_QUOTAS))
    quota_volume: dict[str, int] = field(default_factory=lambda: dict(CINDER_QUOTAS))
    quota_load_balancer: dict[str, int] = field(default_factory=lambda: dict(OCTAVIA_QUOTAS))

    def change(self, values: dict[str, Any]) -> None:
        """Set fields by name; nested groups take an object. Raises ValueError for an unknown name.

        `policy` is accepted as a short form: "region" or "stock".
        """
        for name, value in values.items():
            if name == "policy":
                if value not in ("region", "stock"):
                    raise ValueError(f"policy {value!r} is unknown; use region or stock")
                self.policy_overrides = set(REGION_OVERRIDES) if value == "region" else set()
                continue
            current = getattr(self, name, None)
            if name.startswith("_") or name not in self.__dataclass_fields__:
                raise ValueError(f"setting {name!r} is unknown; read /admin/settings for the names")
            if isinstance(current, (Durations, PageSizes)):
                _change_group(name, current, value)
            elif isinstance(current, (set, tuple)):
                if not isinstance(value, (list, tuple, set, frozenset)):
                    raise ValueError(f"setting {name!r} takes a list")
                setattr(self, name, type(current)(value))
            elif isinstance(current, dict):
                current.update(value)
            elif isinstance(current, bool) != isinstance(value, bool) or (
                isinstance(current, str) != isinstance(value, str)
            ):
                raise ValueError(f"setting {name!r} must be a {type(current).__name__}")
            elif name == "name_filter" and value not in NAME_FILTERS:
                raise ValueError(f"name_filter must be one of {', '.join(NAME_FILTERS)}")
            else:
                setattr(self, name, value)


def _change_group(name: str, group: Durations | PageSizes, value: Any) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"setting {name!r} takes an object of numbers")
    for key, number in value.items():
        if key not in group.__dataclass_fields__ or isinstance(number, bool):
            raise ValueError(f"setting {name}.{key} is unknown or not a number")
        setattr(group, key, number)
