"""The whole way: a region's services, the Octavia API, the OVN worker, and an OVN of its own that has the simulated cloud's networks."""

from pathlib import Path as Folder
from typing import Any

from roadstead.subjects import Key
from roadstead.testing.cloudsim import Caller
from roadstead.testing.ovn_mirror import OvnMirror
from roadstead.testing.ovn_mirror.rows import Shape
from roadstead.testing.private_ovn import PrivateOvn
from roadstead_ovn.store.postgres import SCHEMA
from tests.balancing.path import Path
from tests.octavia.ground import START
from tests.octavia.people import SERVICE_PASSWORD
from tests.ovn.machines import Address, Machine, Machines
from tests.ovn.stack import READY_SUBJECT, Worker


class WholePath(Path):
    """`ovn` belongs to the caller."""

    schemas = ("octavia", SCHEMA)

    def __init__(self, ovn: PrivateOvn, *, pace: float = 0.1, trace: Folder | None = None) -> None:
        super().__init__(pace=pace, trace=trace)
        self.ovn = ovn
        self.machines = Machines(ovn)

    def enter_cloud(self) -> None:
        super().enter_cloud()
        self.admin = Caller.admin(self.cloud)
        self.mirror = OvnMirror(self.ovn.northbound, Shape(self.ovn.chassis, False))
        self.mirror.follow(self.cloud)

    def leave_cloud(self) -> None:
        self.machines.clean()
        if hasattr(self, "mirror"):
            self.mirror.leave()
        super().leave_cloud()

    def provider(self) -> Worker:
        settings = {
            **self._common("ovn-0"),
            "ROADSTEAD_DATABASE_URL": self.postgres.url_of(self.database),
            "ROADSTEAD_OVN_NB_CONNECTION": self.ovn.northbound,
            "ROADSTEAD_OVN_SB_CONNECTION": self.ovn.southbound,
            "ROADSTEAD_OVN_AUTH_URL": self.front.auth_url,
            "ROADSTEAD_OVN_PASSWORD": SERVICE_PASSWORD,
        }
        worker = Worker(self.folder / "ovn-0", "roadstead_ovn", self.nats, READY_SUBJECT, settings)
        worker.start(START)
        return worker

    def machine(self, name: str) -> Machine:
        """A machine on the region's network."""
        found = [n for n in self.cloud.neutron.state.networks if n["name"] == f"network-{self.network.id}"]
        [subnet] = self.cloud.neutron.state.subnets.where("network_id", found[0]["id"])
        port = self._make(
            "port",
            name=name,
            project_id=found[0]["project_id"],
            network_id=found[0]["id"],
            device_owner="compute:nova",
            device_id=f"server-{name}",
            port_security_enabled=False,
        )
        length = int(subnet["cidr"].partition("/")[2])
        address = Address(port["fixed_ips"][0]["ip_address"], length, subnet["gateway_ip"] or "")
        return self.machines.add(name, port["id"], port["mac_address"], [address])

    def _make(self, kind: str, **values: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.call("network", "POST", f"/v2.0/{kind}s", {kind: values})[kind]
        return found

    def rows_of(self, balancer: Key) -> list[dict[str, Any]]:
        """The load balancer's rows in the Northbound database."""
        names = [row["id"] for row in self.named("load_balancer", balancer).values()]
        session = self.ovn.nb()
        try:
            rows = session.select("Load_Balancer", ["name", "vips", "external_ids"])
            return [row for row in rows if row["name"] in names]
        finally:
            session.close()
