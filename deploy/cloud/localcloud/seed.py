"""First content: who may log in, the catalogue, and something of everything a region offers.

Each part can be repeated: what is there by name is left alone.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from localcloud.rest import Scope, wait_for
from localcloud.settings import Settings

# user of the service -> (type in the catalogue, path)
CATALOGUE = {
    "placement": ("placement", ""),
    "glance": ("image", ""),
    "neutron": ("network", ""),
    "nova": ("compute", "/v2.1"),
    "cinder": ("block-storage", "/v3"),
    "octavia": ("load-balancer", ""),
}
BAREMETAL = {"ironic": ("baremetal", "")}
ROLES = (
    "service", "load-balancer_member", "load-balancer_observer", "load-balancer_admin", "load-balancer_quota_admin",
)  # fmt: skip
# name -> (CPUs, MiB, GB)
FLAVORS = {"small": (1, 512, 10), "medium": (2, 4096, 20), "large": (8, 16384, 40)}
VOLUME_TYPES = ("standard", "fast")
# One MiB that no disk format recognises, so Glance takes it as raw.
DISK = b"Roadstead" * 116509


def operating_system(distro: str, version: str, codename: str) -> dict[str, str]:
    """Properties that the image filter of a region asks for, and those an imported image has."""
    return {
        "architecture": "x86_64",
        "unikorn:os:kernel": "linux",
        "unikorn:os:family": "debian",
        "unikorn:os:distro": distro,
        "unikorn:os:version": version,
        "unikorn:os:codename": codename,
        "unikorn:virtualization": "virtualized",
        "hw_disk_bus": "scsi",
        "hw_scsi_model": "virtio-scsi",
        "hw_firmware_type": "uefi",
        "hw_machine_type": "q35",
    }


IMAGES: Mapping[str, Mapping[str, str]] = {
    "debian-12": operating_system("debian", "12", "bookworm"),
    "ubuntu-24.04": operating_system("ubuntu", "24.04", "noble"),
    "no-properties": {},
    "deactivated": operating_system("debian", "11", "bullseye"),
}


def identity(settings: Settings, admin: Scope) -> None:
    """Roles, service users, the catalogue, and the domain "managed" with a manager and a member."""
    roles = {role["name"]: role["id"] for role in admin.get("identity", "/roles")["roles"]}
    for name in ROLES:
        if name not in roles:
            roles[name] = admin.must("POST", "identity", "/roles", {"role": {"name": name}})["role"]["id"]
    service_users(settings, admin, {**CATALOGUE, **BAREMETAL})
    endpoints(settings, admin, CATALOGUE)
    admin.must(
        "PUT",
        "identity",
        f"/projects/{admin.project_id}/users/{admin.user_id}/roles/{roles['load-balancer_admin']}",
    )
    domain = _keep(admin, "domain", {"name": "managed"})
    manager = _keep(admin, "user", {"name": "manager", "domain_id": domain, "password": settings.password})
    admin.must("PUT", "identity", f"/domains/{domain}/users/{manager}/roles/{roles['manager']}")
    demo = _keep(admin, "project", {"name": "demo", "domain_id": domain})
    member = _keep(admin, "user", {"name": "member", "domain_id": domain, "password": settings.password})
    for role in ("member", "load-balancer_member"):
        admin.must("PUT", "identity", f"/projects/{demo}/users/{member}/roles/{roles[role]}")


def service_users(settings: Settings, admin: Scope, services: Mapping[str, tuple[str, str]]) -> None:
    """A user for each service, with the roles service and admin in the project service."""
    roles = {role["name"]: role["id"] for role in admin.get("identity", "/roles")["roles"]}
    project = _keep(admin, "project", {"name": "service", "domain_id": "default"})
    for name in services:
        user = _keep(admin, "user", {"name": name, "domain_id": "default", "password": settings.password})
        for role in ("service", "admin"):
            admin.must("PUT", "identity", f"/projects/{project}/users/{user}/roles/{roles[role]}")


def endpoints(settings: Settings, admin: Scope, services: Mapping[str, tuple[str, str]]) -> None:
    """A catalogue entry with its three interfaces for each service."""
    have = {service["type"] for service in admin.get("identity", "/services")["services"]}
    for name, (kind, path) in services.items():
        if kind in have:
            continue
        made = admin.must("POST", "identity", "/services", {"service": {"name": name, "type": kind}})
        for interface in ("public", "internal", "admin"):
            endpoint = {
                "service_id": made["service"]["id"],
                "interface": interface,
                "region_id": settings.region,
                "url": settings.url(name) + path,
            }
            admin.must("POST", "identity", "/endpoints", {"endpoint": endpoint})


def content(admin: Scope) -> None:
    """Flavors, volume types, an external network and images."""
    parts: list[Callable[[Scope], None]] = [_flavors, _volume_types, _external_network, _images]
    with ThreadPoolExecutor(len(parts)) as pool:
        for part in [pool.submit(part, admin) for part in parts]:
            part.result()


def wait_until_alive(admin: Scope, hosts: int = 1) -> None:
    """Wait for every service and agent that reports itself, and for `hosts` hypervisors in Placement."""
    wanted = {"nova-compute", "nova-scheduler", "nova-conductor", "cinder-volume", "cinder-scheduler"}

    def alive() -> bool:
        reports = (
            admin.get("compute", "/os-services")["services"]
            + admin.get("block-storage", "/os-services")["services"]
        )
        agents = admin.get("network", "/v2.0/agents")["agents"]
        return (
            wanted <= {report["binary"] for report in reports if report["state"] == "up"}
            and any(agent["alive"] for agent in agents)
            and len(admin.get("placement", "/resource_providers")["resource_providers"]) >= hosts
        )

    wait_for(alive, "services to report themselves up; see `cloud status --check` and the logs", limit=120.0)


def _keep(admin: Scope, kind: str, wanted: Mapping[str, str]) -> str:
    """Id of the domain, project or user of that name and domain, made when it is not there."""
    query = f"name={wanted['name']}" + (f"&domain_id={wanted['domain_id']}" if "domain_id" in wanted else "")
    found: list[dict[str, Any]] = admin.get("identity", f"/{kind}s?{query}")[f"{kind}s"]
    if found:
        return str(found[0]["id"])
    return str(admin.must("POST", "identity", f"/{kind}s", {kind: dict(wanted)})[kind]["id"])


def _flavors(admin: Scope) -> None:
    have = {flavor["name"] for flavor in admin.get("compute", "/flavors")["flavors"]}
    for name, (cpus, memory, disk) in FLAVORS.items():
        if name not in have:
            flavor = {"name": name, "vcpus": cpus, "ram": memory, "disk": disk}
            admin.must("POST", "compute", "/flavors", {"flavor": flavor})


def _volume_types(admin: Scope) -> None:
    have = {kind["name"] for kind in admin.get("block-storage", "/types")["volume_types"]}
    for name in VOLUME_TYPES:
        if name not in have:
            kind = {"name": name, "extra_specs": {"volume_backend_name": "pretended"}}
            admin.must("POST", "block-storage", "/types", {"volume_type": kind})


def _external_network(admin: Scope) -> None:
    found = admin.get("network", "/v2.0/networks?name=external")["networks"]
    if found:
        network = found[0]
    else:
        wanted = {
            "name": "external",
            "router:external": True,
            "provider:network_type": "flat",
            "provider:physical_network": "external",
        }
        network = admin.must("POST", "network", "/v2.0/networks", {"network": wanted})["network"]
    if not network["subnets"]:
        subnet = {
            "name": "external",
            "network_id": network["id"],
            "ip_version": 4,
            "cidr": "203.0.113.0/24",
            "gateway_ip": "203.0.113.1",
            "enable_dhcp": False,
            "allocation_pools": [{"start": "203.0.113.10", "end": "203.0.113.250"}],
        }
        admin.must("POST", "network", "/v2.0/subnets", {"subnet": subnet})


def _images(admin: Scope) -> None:
    for name, properties in IMAGES.items():
        if admin.get("image", f"/v2/images?name={name}")["images"]:
            continue
        wanted = {
            "name": name,
            "disk_format": "raw",
            "container_format": "bare",
            "visibility": "public",
            "min_disk": 1,
            **properties,
        }
        image = admin.must("POST", "image", "/v2/images", wanted)["id"]
        admin.must("PUT", "image", f"/v2/images/{image}/file", raw=DISK)
        if name == "deactivated":
            admin.must("POST", "image", f"/v2/images/{image}/actions/deactivate")
