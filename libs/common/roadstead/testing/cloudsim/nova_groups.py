"""Server groups: names are not unique, a deleted project leaves them behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .paging import cut
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova

POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


class Groups:
    """Routes of /os-server-groups."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    def _show(self, ctx: Ctx, group: JsonObject) -> JsonObject:
        body: JsonObject = {"id": group["id"], "name": group["name"], "members": list(group["members"])}
        if ctx.version >= (2, 13):
            body |= {"project_id": group["project_id"], "user_id": group["user_id"]}
        if ctx.version >= (2, 64):
            body |= {"policy": group["policy"], "rules": dict(group["rules"])}
        else:
            body |= {"policies": [group["policy"]], "metadata": {}}
        return body

    @route("GET", "/v2.1/os-server-groups")
    def index(self, ctx: Ctx) -> Response:
        everything = ctx.q("all_projects") is not None and ctx.is_admin
        rows = [g for g in self.nova.groups.values() if everything or g["project_id"] == ctx.project_id]
        size = self.cloud.settings.pages.compute
        offset = ctx.q("offset") or "0"
        if not offset.isdigit():
            raise self.nova.bad_request("offset param must be an integer")
        page, _ = cut(ctx, rows[int(offset) :], lambda g: g["id"], size, size)
        return answer({"server_groups": [self._show(ctx, g) for g in page]})

    @route("POST", "/v2.1/os-server-groups")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("server_group")
        name = ctx.text(body, "name", required=True) or ""
        if ctx.version >= (2, 64):
            ctx.only(body, {"name", "policy", "rules"})
            policy = ctx.text(body, "policy", required=True)
        else:
            ctx.only(body, {"name", "policies"})
            policy = next(iter(ctx.texts(body, "policies")), None)
        if policy not in POLICIES:
            raise self.nova.invalid_field("policy", policy, f"{policy!r} is not one of {list(POLICIES)}")
        self.nova.quotas.check_groups(ctx.project_id)
        group: JsonObject = {
            "id": self.cloud.ids.uuid(),
            "name": name,
            "policy": policy,
            "rules": ctx.mapping(body, "rules"),
            "members": [],
            "project_id": ctx.project_id,
            "user_id": ctx.token.user_id,
        }
        self.nova.groups[group["id"]] = group
        return answer({"server_group": self._show(ctx, group)})

    def _group(self, ctx: Ctx) -> JsonObject:
        group = self.nova.groups.get(ctx.params["id"])
        if group is None or not ctx.owns(group["project_id"]):
            raise self.nova.not_found(f"Instance group {ctx.params['id']} could not be found.")
        return group

    @route("GET", "/v2.1/os-server-groups/{id}")
    def show(self, ctx: Ctx) -> Response:
        return answer({"server_group": self._show(ctx, self._group(ctx))})

    @route("DELETE", "/v2.1/os-server-groups/{id}")
    def delete(self, ctx: Ctx) -> Response:
        group = self._group(ctx)
        for server in self.nova.servers.values():
            if server.group_id == group["id"]:
                server.group_id = None
        del self.nova.groups[group["id"]]
        return nothing()
