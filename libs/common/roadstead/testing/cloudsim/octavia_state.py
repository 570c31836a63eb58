"""Load balancers and their parts, and how their provisioning status moves.

A part belongs to a load balancer (`_lb`) and, below a pool, to the pool (`_pool`). Every change
locks the load balancer in PENDING_UPDATE until it has settled. A pool that was still being made
when its load balancer was deleted is stranded: nothing moves it any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .ids import plain
from .tables import Row, Table

if TYPE_CHECKING:
    from .cloud import Cloud

ACTIVE, ERROR = "ACTIVE", "ERROR"
CREATING, UPDATING, DELETING = "PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE"
OUTCOMES = {
    "listener": "listener_build",
    "pool": "pool_build",
    "member": "member_build",
    "monitor": "monitor_build",
}


class LoadBalancerState:
    """The rows of Octavia and their transitions on the cloud's clock."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.lbs = Table("project_id", "name", "vip_port_id")
        self.listeners = Table("project_id", "name", "_lb", "default_pool_id")
        self.pools = Table("project_id", "name", "_lb")
        self.members = Table("project_id", "_pool", "_lb")
        self.monitors = Table("project_id", "name", "_pool", "_lb")
        self.quotas: dict[str, dict[str, int]] = {}
        self._tables = {
            "listener": self.listeners, "pool": self.pools, "member": self.members, "monitor": self.monitors,
        }  # fmt: skip

    def parts_of(self, lb_id: str) -> list[Row]:
        """Return every part of a load balancer: listeners, pools, members, monitors."""
        return [row for table in self._tables.values() for row in table.where("_lb", lb_id)]

    def monitor_of(self, pool_id: str) -> Row | None:
        """Return the health monitor of a pool."""
        return next(iter(self.monitors.where("_pool", pool_id)), None)

    def new_row(self, kind: str, project_id: str, lb_id: str, **values: object) -> Row:
        """Store a part in PENDING_CREATE."""
        row: Row = {
            "id": self.cloud.ids.uuid(), "project_id": project_id, "provisioning_status": CREATING,
            "operating_status": "OFFLINE", "created_at": plain(self.cloud.now), "updated_at": None,
            "_lb": lb_id, "_kind": kind, "_stranded": False, **values,
        }  # fmt: skip
        return self._tables[kind].add(row)

    def move(self, row: Row, status: str) -> None:
        """Write the provisioning status; the operating status follows it."""
        row["provisioning_status"] = status
        row["updated_at"] = plain(self.cloud.now)
        if status == ERROR:
            row["operating_status"] = ERROR
        elif status == ACTIVE:
            row["operating_status"] = self._working(row) if row["admin_state_up"] else "OFFLINE"

    # ------------------------------------------------------------ building

    def begin_build(self, lb: Row) -> None:
        """Let a new load balancer and its parts come up, the parts later when so set."""
        lb_id, durations = lb["id"], self.cloud.settings.durations
        self.cloud.later(durations.lb_build, lambda: self._built(lb_id))

    def _built(self, lb_id: str) -> None:
        lb = self.lbs.get(lb_id)
        if lb is None or lb["provisioning_status"] != CREATING:
            return
        if self.cloud.outcome("lb_build", lb["name"]):
            self.move(lb, ERROR)
            for part in self.parts_of(lb_id):
                self.move(part, ERROR)
            return
        parts = [part["id"] for part in self.parts_of(lb_id) if part["provisioning_status"] == CREATING]
        self.move(lb, ACTIVE)
        if self.cloud.settings.lb_active_before_children and parts:
            self.cloud.later(
                self.cloud.settings.durations.lb_children, lambda: self._settle_parts(lb_id, parts)
            )
        else:
            self._settle_parts(lb_id, parts)

    # ------------------------------------------------------------ changing

    def begin_change(self, lb: Row, parts: Iterable[Row] = ()) -> None:
        """Lock the load balancer for a change of itself or of parts, which settle together.

        Parts that are not yet pending are marked PENDING_UPDATE.
        """
        lb_id = lb["id"]
        self.move(lb, UPDATING)
        touched = []
        for part in parts:
            touched.append(part["id"])
            if part["provisioning_status"] not in (CREATING, DELETING):
                self.move(part, UPDATING)
        self.cloud.later(self.cloud.settings.durations.lb_update, lambda: self._changed(lb_id, touched))

    def _changed(self, lb_id: str, parts: list[str]) -> None:
        lb = self.lbs.get(lb_id)
        if lb is None or lb["provisioning_status"] != UPDATING:
            return
        failed = self.cloud.outcome("lb_update", lb["name"]) is not None
        self.move(lb, ERROR if failed else ACTIVE)
        self._settle_parts(lb_id, parts, failed)

    def _settle_parts(self, lb_id: str, parts: list[str], failed: bool = False) -> None:
        """End what is pending on these parts; parts that are gone or stranded are left alone."""
        for part in self.parts_of(lb_id):
            if part["id"] not in parts or part["_stranded"]:
                continue
            status = part["provisioning_status"]
            if failed:
                self.move(part, ERROR)
            elif status == DELETING:
                self.forget(part)
            elif status == CREATING:
                outcome = self.cloud.outcome(OUTCOMES[part["_kind"]], part["name"])
                self.move(part, ERROR if outcome else ACTIVE)
            elif status == UPDATING:
                self.move(part, ACTIVE)
        # A monitor that came or went changes what is known of the members.
        for member in self.members.where("_lb", lb_id):
            if member["provisioning_status"] == ACTIVE and member["admin_state_up"]:
                member["operating_status"] = self._working(member)

    # ------------------------------------------------------------ deleting

    def begin_delete(self, lb: Row) -> None:
        """Start a delete with everything below; parts still being made are stranded."""
        lb_id = lb["id"]
        for pool in self.pools.where("_lb", lb_id):
            if pool["provisioning_status"] == CREATING:
                below = [*self.members.where("_pool", pool["id"]), *self.monitors.where("_pool", pool["id"])]
                for row in (pool, *below):
                    row["_stranded"] = True
        self.move(lb, DELETING)
        for part in self.parts_of(lb_id):
            if not part["_stranded"]:
                self.move(part, DELETING)
        self.cloud.later(self.cloud.settings.durations.lb_delete, lambda: self._deleted(lb_id))

    def _deleted(self, lb_id: str) -> None:
        lb = self.lbs.get(lb_id)
        if lb is None or lb["provisioning_status"] != DELETING:
            return
        if self.cloud.outcome("lb_delete", lb["name"]):
            self.move(lb, ERROR)
            for part in self.parts_of(lb_id):
                self.move(part, ERROR)
            return
        for part in self.parts_of(lb_id):
            if not part["_stranded"]:
                self.forget(part)
            elif part["_kind"] == "monitor":
                self.move(part, ERROR)
        self.lbs.remove(lb_id)
        if lb["_owns_port"]:
            self.cloud.neutron.port_delete_for_server(lb["vip_port_id"])

    def forget(self, part: Row) -> None:
        """Remove a part and what cannot live without it."""
        if part["_kind"] == "pool":
            below = [*self.members.where("_pool", part["id"]), *self.monitors.where("_pool", part["id"])]
            for row in below:
                self.forget(row)
            for listener in self.listeners.where("default_pool_id", part["id"]):
                self.listeners.change(listener, default_pool_id=None)
        self._tables[part["_kind"]].remove(part["id"])

    def _working(self, row: Row) -> str:
        if row.get("_kind") == "member" and self.monitor_of(row["_pool"]) is None:
            return "NO_MONITOR"
        return "ONLINE"
