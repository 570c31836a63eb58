"""Calls on servers: list, read, create, change, delete, metadata, tags, addresses, history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .base import Ctx, JsonObject, answer, nothing, route
from .ids import micros, seconds_z
from .nova_state import Server
from .paging import linked, regex_matches, sort_rows
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova

# Query keys that a list takes; from 2.75 any other key is refused.
_KEYS = frozenset(
    {
        "access_ip_v4", "access_ip_v6", "all_tenants", "auto_disk_config", "availability_zone", "changes-before",
        "changes-since", "config_drive", "created_at", "deleted", "description", "display_description", "display_name",
        "flavor", "host", "hostname", "image", "image_ref", "ip", "ip6", "kernel_id", "key_name", "launch_index",
        "launched_at", "limit", "locked", "marker", "metadata", "name", "node", "not-tags", "not-tags-any", "power_state",
        "progress", "project_id", "ramdisk_id", "reservation_id", "root_device_name", "soft_deleted", "sort_dir",
        "sort_key", "status", "system_metadata", "tags", "tags-any", "task_state", "tenant_id", "terminated_at",
        "user_id", "uuid", "vm_state",
    }
)  # fmt: skip


class Servers:
    """Routes of /servers."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    # ---------------------------------------------------------------- list

    @route("GET", "/v2.1/servers")
    def index(self, ctx: Ctx) -> Response:
        return self._list(ctx, self.nova.views.brief, "os_compute_api:servers:index:get_all_tenants")

    @route("GET", "/v2.1/servers/detail")
    def detail(self, ctx: Ctx) -> Response:
        def show(server: Server) -> JsonObject:
            return self.nova.views.full(ctx, server, listed=True)

        return self._list(ctx, show, "os_compute_api:servers:detail:get_all_tenants")

    def _list(self, ctx: Ctx, show: Any, rule: str) -> Response:
        if ctx.version >= (2, 75):
            ctx.only(dict(ctx.request.query), _KEYS)
        everyone = ctx.q_flag("all_tenants", False) or (ctx.q("all_tenants") == "")
        if everyone and not ctx.is_admin:
            raise self.nova.policy_error(rule)
        rows = sort_rows(ctx, self._selected(ctx, bool(everyone)), _sort_value, "created_at", descending=True)
        size = self.cloud.settings.pages.compute
        return answer(linked(ctx, "servers", rows, lambda s: s.id, show, default=size, maximum=size))

    def _selected(self, ctx: Ctx, everyone: bool) -> list[Server]:
        since = self._time(ctx, "changes-since")
        before = self._time(ctx, "changes-before")
        pool: list[Server] = []
        if not (ctx.is_admin and ctx.q_flag("deleted")):
            pool += self.nova.servers.values()
        if since is not None or (ctx.is_admin and ctx.q_flag("deleted")):
            pool += self.nova.deleted.values()
        project = None if everyone else ctx.project_id
        if everyone:
            project = ctx.q("project_id") or ctx.q("tenant_id")
        wanted = self._filters(ctx)
        return [
            s
            for s in reversed(pool)
            if project in (None, s.project_id)
            and (since is None or s.updated >= since)
            and (before is None or s.updated <= before)
            and all(accepts(s) for accepts in wanted)
        ]

    def _filters(self, ctx: Ctx) -> list[Any]:
        """One test per filter in the query; `metadata` is taken and has no effect, as in Nova."""
        tests: list[Any] = []
        name = ctx.q("name")
        if name:
            regex_matches(ctx, name, "")
            tests.append(lambda s: regex_matches(ctx, name, s.name))
        statuses = {v.upper() for v in ctx.q_all("status")}
        if statuses:
            if "DELETED" in statuses and not ctx.is_admin:
                raise self.nova.error(403, "Only administrators may list deleted instances")
            tests.append(lambda s: s.status in statuses)
        address = ctx.q("ip")
        if address:
            regex_matches(ctx, address, "")
            tests.append(lambda s: self._has_address(ctx, s, address))
        equal: dict[str, Any] = {
            "image": lambda s: s.image_id, "flavor": lambda s: s.flavor["id"], "uuid": lambda s: s.id,
            "user_id": lambda s: s.user_id, "key_name": lambda s: s.key_name, "vm_state": lambda s: s.vm_state,
            "task_state": lambda s: s.task_state, "power_state": lambda s: str(s.power_state),
            "availability_zone": lambda s: s.zone,
        }  # fmt: skip
        if ctx.is_admin:
            equal |= {"host": lambda s: s.host, "node": lambda s: s.host}
        for key, read in equal.items():
            value = ctx.q(key)
            if value:
                tests.append(lambda s, read=read, value=value: read(s) == value)
        for key, accept in (("tags", all), ("tags-any", any)):
            value = ctx.q(key)
            if value:
                names = value.split(",")
                tests.append(lambda s, names=names, accept=accept: accept(n in s.tags for n in names))
        return tests

    def _has_address(self, ctx: Ctx, server: Server, pattern: str) -> bool:
        rows = [row for rows in self.nova.views.addresses(server).values() for row in rows]
        return any(regex_matches(ctx, pattern, row["addr"]) for row in rows)

    def _time(self, ctx: Ctx, key: str) -> datetime | None:
        text = ctx.q(key)
        if text is None:
            return None
        try:
            at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            raise self.nova.bad_request(f"Invalid {key} value") from None
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    # ------------------------------------------------------- one by one

    @route("GET", "/v2.1/servers/{id}")
    def show(self, ctx: Ctx) -> Response:
        return answer({"server": self.nova.views.full(ctx, self.nova.own_server(ctx))})

    @route("POST", "/v2.1/servers")
    def create(self, ctx: Ctx) -> Response:
        """202 with id, links, adminPass and security groups; no status."""
        if ctx.token.project_id is None:
            raise self.nova.policy_error("os_compute_api:servers:create")
        whole = ctx.document()
        body = ctx.body("server")
        hints: JsonObject = {}
        for key in ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"):
            hints |= ctx.mapping(whole, key)
        server = self.nova.boot.create(ctx, body, hints)
        links = self.nova.views.links("servers", server.id)
        shown = {
            "id": server.id,
            "links": links,
            "adminPass": body.get("adminPass") or self.cloud.ids.hex()[:12],
            "security_groups": [{"name": name} for name in server.security_groups],
            "OS-DCF:diskConfig": server.disk_config,
        }
        return answer({"server": shown}, 202, Location=links[0]["href"])

    @route("PUT", "/v2.1/servers/{id}")
    def update(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        body = ctx.body("server")
        ctx.only(body, {"name", "description", "accessIPv4", "accessIPv6", "OS-DCF:diskConfig", "hostname"})
        server.name = ctx.text(body, "name", server.name) or server.name
        if "description" in body:
            server.description = ctx.text(body, "description")
        server.hostname = ctx.text(body, "hostname", server.hostname) or server.hostname
        server.updated = self.cloud.now
        return answer({"server": self.nova.views.full(ctx, server)})

    @route("DELETE", "/v2.1/servers/{id}")
    def delete(self, ctx: Ctx) -> Response:
        """204 whatever the state; the server reads with task deleting until it is gone."""
        server = self.nova.own_server(ctx)
        if server.locked and not ctx.is_admin:
            raise self.nova.conflict(f"Instance {server.id} is locked")
        if server.task_state == "deleting":
            return nothing()
        self.nova.actions.note(ctx, server, "delete")
        never_scheduled = server.host is None and server.vm_state in ("building", "error")
        self.nova.begin(server, "deleting")
        if never_scheduled:
            self.nova.remove(server)
        else:
            self.nova.step(server, self.cloud.settings.durations.server_delete, self._deleted)
        return nothing()

    def _deleted(self, server: Server) -> None:
        outcome = self.cloud.outcome("server_delete", server.name)
        if outcome is not None:
            self.nova.fail(server, outcome.message or "delete failed on the host", outcome.code)
        else:
            self.nova.remove(server)

    # ------------------------------------------------------------ metadata

    @route("GET", "/v2.1/servers/{id}/metadata")
    def list_metadata(self, ctx: Ctx) -> Response:
        return answer({"metadata": dict(self.nova.own_server(ctx).metadata)})

    @route("POST", "/v2.1/servers/{id}/metadata")
    def add_metadata(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        given = ctx.body("metadata")
        self.nova.check(ctx, server, "update metadata")
        server.metadata = self.nova.boot.metadata(ctx, server.metadata | given)
        return answer({"metadata": dict(server.metadata)})

    @route("PUT", "/v2.1/servers/{id}/metadata")
    def replace_metadata(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        given = ctx.body("metadata")
        self.nova.check(ctx, server, "update metadata")
        server.metadata = self.nova.boot.metadata(ctx, given)
        return answer({"metadata": dict(server.metadata)})

    @route("PUT", "/v2.1/servers/{id}/metadata/{key}")
    def set_metadata_item(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        given = ctx.body("meta")
        self.nova.check(ctx, server, "update metadata")
        server.metadata = self.nova.boot.metadata(ctx, server.metadata | given)
        return answer({"meta": given})

    @route("DELETE", "/v2.1/servers/{id}/metadata/{key}")
    def delete_metadata_item(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        self.nova.check(ctx, server, "delete metadata")
        if server.metadata.pop(ctx.params["key"], None) is None:
            raise self.nova.not_found("Metadata item was not found")
        return nothing()

    @route("GET", "/v2.1/servers/{id}/tags")
    def list_tags(self, ctx: Ctx) -> Response:
        return answer({"tags": list(self.nova.own_server(ctx).tags)})

    @route("PUT", "/v2.1/servers/{id}/tags")
    def replace_tags(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        server.tags = ctx.texts(ctx.document(), "tags")
        return answer({"tags": list(server.tags)})

    # ---------------------------------------------------------- what it has

    @route("GET", "/v2.1/servers/{id}/ips")
    def addresses(self, ctx: Ctx) -> Response:
        rows = self.nova.views.addresses(self.nova.own_server(ctx))
        short = {
            name: [{"version": a["version"], "addr": a["addr"]} for a in each] for name, each in rows.items()
        }
        return answer({"addresses": short})

    @route("GET", "/v2.1/servers/{id}/os-security-groups")
    def security_groups(self, ctx: Ctx) -> Response:
        shown = self.nova.views.full(ctx, self.nova.own_server(ctx)).get("security_groups", [])
        return answer({"security_groups": shown})

    @route("GET", "/v2.1/servers/{id}/os-instance-actions")
    def list_actions(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        rows = [self._action(server, index) for index in reversed(range(len(server.actions)))]
        return answer({"instanceActions": rows})

    @route("GET", "/v2.1/servers/{id}/os-instance-actions/{request_id}")
    def show_action(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        for index, action in enumerate(server.actions):
            if action.request_id == ctx.params["request_id"]:
                result = None if not action.finished else ("Error" if action.message else "Success")
                event = {
                    "event": f"compute_{action.action}",
                    "start_time": micros(action.start),
                    "finish_time": micros(action.updated) if action.finished else None,
                    "result": result,
                    "hostId": "",
                }
                return answer({"instanceAction": self._action(server, index) | {"events": [event]}})
        raise self.nova.not_found(
            f"Action for request_id {ctx.params['request_id']} on instance {server.id} not found"
        )

    def _action(self, server: Server, index: int) -> JsonObject:
        action = server.actions[index]
        return {
            "action": action.action,
            "instance_uuid": server.id,
            "request_id": action.request_id,
            "user_id": action.user_id,
            "project_id": action.project_id,
            "start_time": micros(action.start),
            "updated_at": micros(action.updated),
            "message": action.message,
        }


def _sort_value(server: Server, key: str) -> Any:
    values: dict[str, Any] = {
        "created_at": server.created.timestamp(), "updated_at": server.updated.timestamp(),
        "launched_at": seconds_z(server.launched_at) if server.launched_at else None, "display_name": server.name,
        "name": server.name, "uuid": server.id, "vm_state": server.vm_state, "task_state": server.task_state,
        "host": server.host, "power_state": server.power_state,
    }  # fmt: skip
    return values.get(key)
