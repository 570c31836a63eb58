"""A small region in the simulated Neutron, mirrored into a private OVN, with machines on its ports.

    outside --- router --- front 10.50.1.0/24, fd50:1::/64
                       \\-- back  10.50.2.0/24, fd50:2::/64

`outside` is the simulator's external network.  A project owns all of it.
"""

from dataclasses import dataclass
from typing import Any

from roadstead.testing.cloudsim import Caller, Cloud
from roadstead.testing.ovn_mirror import OvnMirror
from roadstead.testing.ovn_mirror.rows import Shape
from roadstead.testing.private_ovn import PrivateOvn

from .machines import Address, Machine, Machines


@dataclass(frozen=True)
class Place:
    """A network of the region with its subnets; subnet6 is empty where there is none."""

    network: str
    subnet: str
    subnet6: str = ""


class Region:
    """`cloud` belongs to the caller, and so does `ovn`; `close` takes away machines and mirror."""

    def __init__(
        self, cloud: Cloud, ovn: PrivateOvn, project_id: str | None = None, *, distributed: bool = False
    ) -> None:
        self.cloud = cloud
        self.ovn = ovn
        self.admin = Caller.admin(cloud)
        self.project = project_id or str(self.admin.project_id)
        self.mirror = OvnMirror(ovn.northbound, Shape(ovn.chassis, distributed))
        self.mirror.follow(cloud)
        self.machines = Machines(ovn)
        outside = self._get("networks?router:external=true", "networks")[0]
        self.outside = Place(outside["id"], outside["subnets"][0])
        self.front = self._place("front", 1)
        self.back = self._place("back", 2)
        gateway = {"network_id": self.outside.network}
        self.router = self.make("router", name="way", external_gateway_info=gateway)["id"]
        for place in (self.front, self.back):
            for subnet in (place.subnet, place.subnet6):
                self.join(subnet)

    def close(self) -> None:
        self.machines.clean()
        self.mirror.leave()

    # ------------------------------------------------------------ Neutron

    def make(self, kind: str, **values: Any) -> dict[str, Any]:
        """An object of Neutron, owned by the project."""
        body = {kind: {"project_id": self.project, **values}}
        found: dict[str, Any] = self.admin.call("network", "POST", f"/v2.0/{kind}s", body)[kind]
        return found

    def change(self, kind: str, object_id: str, **values: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.call(
            "network", "PUT", f"/v2.0/{kind}s/{object_id}", {kind: values}
        )[kind]
        return found

    def drop(self, kind: str, object_id: str) -> None:
        self.admin.call("network", "DELETE", f"/v2.0/{kind}s/{object_id}")

    def ports(self, **filters: str) -> list[dict[str, Any]]:
        """Those with these values."""
        return [p for p in self._get("ports", "ports") if all(p.get(k) == v for k, v in filters.items())]

    def join(self, subnet_id: str, router_id: str | None = None) -> None:
        """Give the router an interface in the subnet."""
        path = f"/v2.0/routers/{router_id or self.router}/add_router_interface"
        self.admin.call("network", "PUT", path, {"subnet_id": subnet_id})

    def part(self, subnet_id: str, router_id: str | None = None) -> None:
        """Take the router's interface in the subnet away."""
        path = f"/v2.0/routers/{router_id or self.router}/remove_router_interface"
        self.admin.call("network", "PUT", path, {"subnet_id": subnet_id})

    def floating_ip(self, port_id: str | None = None) -> dict[str, Any]:
        """A new address of the outside, which leads to the port if one is given."""
        values = {"port_id": port_id} if port_id else {}
        return self.make("floatingip", floating_network_id=self.outside.network, **values)

    def _get(self, path: str, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.admin.call("network", "GET", f"/v2.0/{path}")[key]
        return found

    def _place(self, name: str, number: int) -> Place:
        network = self.make("network", name=name)["id"]
        subnets = [
            self.make(
                "subnet", network_id=network, name=f"{name}-{version}", ip_version=version, cidr=cidr,
                enable_dhcp=False,
            )["id"]
            for version, cidr in ((4, f"10.50.{number}.0/24"), (6, f"fd50:{number}::/64"))
        ]  # fmt: skip
        return Place(network, *subnets)

    # ------------------------------------------------------------ machines

    def machine(self, name: str, place: Place, *, v6: bool = True) -> Machine:
        """A port on that network and a machine behind it, with an address of each of its subnets."""
        subnets = [s for s in (place.subnet, place.subnet6 if v6 else "") if s]
        port = self.make(
            "port", name=name, network_id=place.network, device_owner="compute:nova", device_id=f"server-{name}",
            fixed_ips=[{"subnet_id": subnet} for subnet in subnets],
        )  # fmt: skip
        addresses = []
        for item in port["fixed_ips"]:
            subnet = self.cloud.neutron.state.subnets.get(item["subnet_id"])
            assert subnet is not None
            length = int(subnet["cidr"].partition("/")[2])
            addresses.append(Address(item["ip_address"], length, subnet["gateway_ip"] or ""))
        return self.machines.add(name, port["id"], port["mac_address"], addresses)
