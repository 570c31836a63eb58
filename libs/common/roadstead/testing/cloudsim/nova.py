"""Simulated Nova: microversions, version documents, the tables, and changes by somebody else.

Servers live in `servers` (id -> Server); the calls are in nova_servers.py, nova_boot.py,
nova_actions.py, nova_volumes.py and the smaller nova_*.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from .base import ApiError, Ctx, JsonObject, Service, answer, route
from .ids import seconds_z
from .nova_actions import Actions
from .nova_boot import Boot
from .nova_flavors import FLAVORS, Flavors, new_flavor
from .nova_groups import Groups
from .nova_keypairs import Keypairs
from .nova_quotas import Quotas
from .nova_servers import Servers
from .nova_state import NOSTATE, RUNNING, SHUTDOWN, VM_STATES, Server, refusal
from .nova_views import Views
from .nova_volumes import Volumes
from .orders import Obeyed
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

MINIMUM = (2, 1)
_VERSION = re.compile(r"^([1-9]\d*)\.([1-9]\d*|0)$")
DELETED_KEPT = 5_000


class Nova(Service):
    """Compute: servers and what belongs to them."""

    name = "compute"
    prefix = "compute"
    version_key = "compute"

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.servers: dict[str, Server] = {}
        self.deleted: dict[str, Server] = {}
        self.flavors: dict[str, JsonObject] = {}
        self.keypairs: dict[tuple[str, str], JsonObject] = {}
        self.groups: dict[str, JsonObject] = {}
        self.views = Views(self)
        self.boot = Boot(self)
        self.quotas = Quotas(self)
        self.groups_part = Groups(self)
        self.actions = Actions(self)
        self.volumes = Volumes(self)
        for part in (
            Servers(self), self.actions, self.volumes, Flavors(self), Keypairs(self), self.groups_part, self.quotas,
        ):  # fmt: skip
            self.include(part)

    def seed(self) -> None:
        for name, values in FLAVORS.items():
            flavor = new_flavor(self.cloud.ids.uuid(), name, **values)
            self.flavors[flavor["id"]] = flavor

    # ------------------------------------------------------- microversions

    def prepare(self, ctx: Ctx) -> None:
        """Settle the microversion: 2.1 without a header, 400 for a malformed one, 406 beyond the range."""
        text = self._asked(ctx)
        maximum = tuple(int(n) for n in self.cloud.settings.compute_max.split("."))
        if text is None:
            ctx.version = MINIMUM
            return
        if text == "latest":
            ctx.version = (maximum[0], maximum[1])
            return
        found = _VERSION.match(text)
        if found is None:
            raise self.bad_request(
                f"API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum."
            )
        version = (int(found[1]), int(found[2]))
        if not MINIMUM <= version <= maximum:
            raise self.error(
                406,
                f"Version {text} is not supported by the API. Minimum is 2.1 and maximum is "
                f"{self.cloud.settings.compute_max}.",
            )
        ctx.version = version

    def _asked(self, ctx: Ctx) -> str | None:
        header = ctx.request.headers.get("openstack-api-version")
        for part in (header or "").split(","):
            words = part.split()
            if len(words) == 2 and words[0].lower() == "compute":
                return words[1]
        return ctx.request.headers.get("x-openstack-nova-api-version")

    def decorate(self, ctx: Ctx, response: Response) -> None:
        if ctx.version != (0, 0):
            text = f"{ctx.version[0]}.{ctx.version[1]}"
            response.headers.setdefault("OpenStack-API-Version", f"compute {text}")
            response.headers.setdefault("X-OpenStack-Nova-API-Version", text)
            response.headers.setdefault("Vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version")

    def _document(self, version_id: str, minimum: str, maximum: str, status: str) -> JsonObject:
        base = self.cloud.settings.base_url
        return {
            "id": version_id,
            "status": status,
            "version": maximum,
            "min_version": minimum,
            "updated": "2013-07-23T11:33:21Z",
            "links": [{"rel": "self", "href": f"{base}/compute/{'v2' if version_id == 'v2.0' else 'v2.1'}/"}],
        }

    @route("GET", "", auth=False)
    def list_versions(self, ctx: Ctx) -> Response:
        latest = self._document("v2.1", "2.1", self.cloud.settings.compute_max, "CURRENT")
        return answer({"versions": [self._document("v2.0", "", "", "SUPPORTED"), latest]})

    @route("GET", "/v2.1", auth=False)
    def show_version(self, ctx: Ctx) -> Response:
        document = self._document("v2.1", "2.1", self.cloud.settings.compute_max, "CURRENT")
        kinds = [{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]
        return answer({"version": document | {"media-types": kinds}})

    # ----------------------------------------------------------- look-ups

    def server(self, server_id: str) -> Server | None:
        return self.servers.get(server_id)

    def own_server(self, ctx: Ctx) -> Server:
        """The server of the path within the caller's project; 404 otherwise."""
        server = self.servers.get(ctx.params["id"])
        if server is None or not ctx.owns(server.project_id):
            raise self.not_found(f"Instance {ctx.params['id']} could not be found.")
        return server

    def check(self, ctx: Ctx, server: Server, operation: str) -> None:
        """409 unless the server's state, and its lock, allow the operation."""
        if server.locked and not ctx.is_admin:
            raise self.conflict(f"Instance {server.id} is locked")
        reason = refusal(server, operation)
        if reason is not None:
            raise self.conflict(reason)

    def invalid_field(self, key: str, value: object, reason: str) -> ApiError:
        return self.bad_request(f"Invalid input for field/attribute {key}. Value: {value}. {reason}")

    # --------------------------------------------------------- transitions

    def step(self, server: Server, seconds: float, change: Callable[[Server], None]) -> None:
        """Do `change` later, unless the server is gone or another operation has begun by then."""
        epoch, server_id = server.epoch, server.id

        def run() -> None:
            now = self.servers.get(server_id)
            if now is not None and now.epoch == epoch:
                change(now)
                now.updated = self.cloud.now

        self.cloud.later(seconds, run)

    def obey(self, server: Server, *verbs: str) -> Obeyed:
        """The order that metadata, image or flavor hold for this attempt."""
        image = self.cloud.glance.image(server.image_id)
        properties = image["_properties"] if image is not None else {}
        specs = server.flavor.get("extra_specs") or {}
        return self.cloud.orders.obey(server.id, verbs, (server.metadata, properties, specs))

    def begin(self, server: Server, task: str | None) -> None:
        """A new operation takes over: its task is set, steps of the one before do nothing any more."""
        server.epoch += 1
        server.task_state = task
        server.updated = self.cloud.now

    def fail(self, server: Server, message: str, code: int = 500, details: str = "") -> None:
        """To ERROR without a task, with a fault."""
        server.vm_state, server.task_state = "error", None
        server.fault = {
            "code": code,
            "created": seconds_z(self.cloud.now),
            "message": message,
            "details": details or f"Traceback (most recent call last):\n  ...\n{message}",
        }
        server.updated = self.cloud.now

    def recovered(self, server: Server) -> None:
        """Out of ERROR: the fault goes, or stays on record where the cloud leaves stale ones."""
        if not self.cloud.settings.stale_fault:
            server.fault = None

    def remove(self, server: Server) -> None:
        """The end of a delete: ports unbound or deleted, volumes let go, the server only in changes-since."""
        for nic in server.nics:
            if nic.made_by_nova:
                self.cloud.neutron.port_delete_for_server(nic.port_id)
            else:
                self.cloud.neutron.port_unbind(nic.port_id)
        for held in server.attachments.values():
            self.cloud.cinder.detach_complete(held.volume_id, server.id)
            if held.delete_on_termination:
                self.cloud.cinder.volume_delete_for_server(held.volume_id)
        for group in self.groups.values():
            if server.id in group["members"]:
                group["members"].remove(server.id)
        server.vm_state, server.task_state, server.power_state = "deleted", None, NOSTATE
        server.terminated_at = server.updated = self.cloud.now
        server.nics, server.attachments = [], {}
        del self.servers[server.id]
        self.deleted[server.id] = server
        while len(self.deleted) > DELETED_KEPT:
            del self.deleted[next(iter(self.deleted))]

    # ------------------------------------------------------- for the admin

    def dump(self) -> dict[str, list[JsonObject]]:
        return {
            "servers": [
                {"id": s.id, "name": s.name, "project_id": s.project_id} for s in self.servers.values()
            ],
            "server_groups": [
                {"id": g["id"], "name": g["name"], "project_id": g["project_id"]}
                for g in self.groups.values()
            ],
            "keypairs": [
                {"id": f"{user}/{name}", "name": name, "project_id": None} for user, name in self.keypairs
            ],
        }

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """Verbs on servers: set, delete, rebuild, evacuate, stop, start, error, recover, detach_volume;
        on key pairs (id "user id/name") and server groups: delete_keypair, delete_server_group."""
        if verb == "delete_keypair":
            user, _, name = object_id.partition("/")
            del self.keypairs[(user, name)]
            return {"id": object_id}
        if verb == "delete_server_group":
            del self.groups[object_id]
            return {"id": object_id}
        server = self.servers[object_id]
        changes: dict[str, Callable[[Server, JsonObject], None]] = {
            "set": self._foreign_set,
            "delete": lambda s, v: self.remove(s),
            "rebuild": self._foreign_rebuild,
            "evacuate": self._foreign_evacuate,
            "stop": self._foreign_stop,
            "start": self._foreign_start,
            "error": lambda s, v: self.fail(
                s, str(v.get("message", "host failure")), int(v.get("code", 500))
            ),
            "recover": self._foreign_recover,
            "detach_volume": lambda s, v: self.volumes.finish_detach(s, str(v["volume_id"])),
        }
        if verb not in changes:
            raise ValueError(f"compute knows no foreign change {verb!r}; use one of {', '.join(changes)}")
        changes[verb](server, values)
        server.updated = self.cloud.now
        return {
            "id": server.id,
            "name": server.name,
            "status": server.status,
            "task_state": server.task_state,
        }

    def _foreign_set(self, server: Server, values: JsonObject) -> None:
        """Fields: name, vm_state, task_state, power_state, image_id, launched_at (true, false or ISO time),
        host, metadata, fault, locked."""
        plain = {
            "name",
            "vm_state",
            "task_state",
            "power_state",
            "image_id",
            "host",
            "metadata",
            "fault",
            "locked",
        }
        unknown = set(values) - plain - {"launched_at"}
        if unknown:
            raise ValueError(f"a server has no field {sorted(unknown)[0]!r} to set")
        if values.get("vm_state", "active") not in VM_STATES:
            raise ValueError(
                f"vm_state {values['vm_state']!r} is unknown; use one of {', '.join(sorted(VM_STATES))}"
            )
        server.epoch += 1
        for key in plain & set(values):
            setattr(server, key, values[key])
        if "launched_at" in values:
            at = values["launched_at"]
            if isinstance(at, str):
                server.launched_at = datetime.fromisoformat(at)
            else:
                server.launched_at = self.cloud.now if at else None

    def _foreign_rebuild(self, server: Server, values: JsonObject) -> None:
        """By the cloud administrator; `image` absent keeps the image, `fail` ends it in ERROR."""
        self.actions.start_rebuild(
            server, str(values.get("image") or server.image_id), bool(values.get("fail"))
        )

    def _foreign_evacuate(self, server: Server, values: JsonObject) -> None:
        """To another host by rebuild on the same image; `fail` ends it in ERROR."""
        hosts = self.cloud.settings.compute_hosts
        server.host = str(values.get("host") or next((h for h in hosts if h != server.host), server.host))
        self.actions.start_rebuild(server, server.image_id, bool(values.get("fail")))

    def _foreign_stop(self, server: Server, values: JsonObject) -> None:
        self.begin(server, None)
        server.vm_state, server.power_state = "stopped", SHUTDOWN

    def _foreign_start(self, server: Server, values: JsonObject) -> None:
        self.begin(server, None)
        server.vm_state, server.power_state = "active", RUNNING

    def _foreign_recover(self, server: Server, values: JsonObject) -> None:
        self._foreign_start(server, values)
        self.recovered(server)
