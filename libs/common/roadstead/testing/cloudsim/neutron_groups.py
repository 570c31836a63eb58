"""Security groups and their rules, with the `default` group that every project gets at first look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .neutron_ports import GROUP_NOT_FOUND
from .neutron_rules import RULE_FIELDS, canonical_key, normalise
from .tables import Row
from .typed_fields import checked
from .wire import Response

if TYPE_CHECKING:
    from .neutron import Neutron

RULE_CREATABLE = {*RULE_FIELDS, "security_group_id", "description", "project_id", "tenant_id"}
RULE_NOT_FOUND = ("SecurityGroupRuleNotFound", "Security group rule {} does not exist")


class Groups:
    """The collections /v2.0/security-groups and /v2.0/security-group-rules."""

    def __init__(self, neutron: Neutron) -> None:
        self.neutron = neutron
        self.state = neutron.state

    @route("GET", "/v2.0/security-groups")
    def index(self, ctx: Ctx) -> Response:
        self.state.default_group(ctx.now, ctx.project_id)
        return self.neutron.listing(ctx, "security_groups", self.state.groups, self.show)

    @route("GET", "/v2.0/security-groups/{id}")
    def get(self, ctx: Ctx) -> Response:
        return answer({"security_group": self.show(ctx, self._find(ctx))})

    @route("POST", "/v2.0/security-groups")
    def create(self, ctx: Ctx) -> Response:
        body = ctx.body("security_group")
        checked(ctx, body, {"name", "description", "stateful", "project_id", "tenant_id"})
        self.neutron.require_member(ctx, "create_security_group")
        project = self.neutron.project_for(ctx, body, "create_security_group")
        name = ctx.text(body, "name", "") or ""
        default = self.state.default_group(ctx.now, project)
        if name == "default" and default is not None:
            raise self.neutron.error(
                409, "Default security group already exists.", "SecurityGroupDefaultAlreadyExists"
            )
        self.neutron.check_quota(
            project, "security_group", len(self.state.groups.where("project_id", project))
        )
        row = self.state.add_group(ctx.now, project, name, ctx.text(body, "description", "") or "")
        row["stateful"] = ctx.flag(body, "stateful", True)
        return answer({"security_group": self.show(ctx, row)}, 201)

    @route("PUT", "/v2.0/security-groups/{id}")
    def update(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.neutron.require_member(ctx, "update_security_group")
        body = ctx.body("security_group")
        checked(ctx, body, {"name", "description", "stateful"})
        if row["name"] == "default" and body.get("name") not in (None, "default"):
            raise self.neutron.error(
                409, "Updating default security group not allowed.", "SecurityGroupCannotUpdateDefault"
            )
        self.state.groups.change(row, **body)
        self.neutron.touch(row)
        return answer({"security_group": self.show(ctx, row)})

    @route("DELETE", "/v2.0/security-groups/{id}")
    def delete(self, ctx: Ctx) -> Response:
        row = self._find(ctx)
        self.neutron.require_member(ctx, "delete_security_group")
        if self.state.group_ports.get(row["id"]):
            raise self.neutron.error(409, f"Security Group {row['id']} in use.", "SecurityGroupInUse")
        # Only the cloud administrator: a project's manager leaves the group behind as an orphan.
        if row["name"] == "default" and not ctx.is_admin:
            raise self.neutron.error(
                409,
                "Insufficient rights for removing default security group.",
                "SecurityGroupCannotRemoveDefault",
            )
        for rule in self.state.rules.where("security_group_id", row["id"]):
            self.state.rules.remove(rule["id"])
        self.state.groups.remove(row["id"])
        self.state.group_ports.pop(row["id"], None)
        return nothing()

    @route("GET", "/v2.0/security-group-rules")
    def list_rules(self, ctx: Ctx) -> Response:
        self.state.default_group(ctx.now, ctx.project_id)
        return self.neutron.listing(
            ctx, "security_group_rules", self.state.rules, self.show_rule, self._visible_rule
        )

    @route("GET", "/v2.0/security-group-rules/{id}")
    def get_rule(self, ctx: Ctx) -> Response:
        row = self.neutron.find(ctx, self.state.rules, ctx.params["id"], RULE_NOT_FOUND, self._visible_rule)
        return answer({"security_group_rule": self.show_rule(ctx, row)})

    @route("POST", "/v2.0/security-group-rules")
    def create_rule(self, ctx: Ctx) -> Response:
        value = ctx.json()
        if isinstance(value, dict) and isinstance(value.get("security_group_rules"), list):
            made = [
                self._create_rule(ctx, {"security_group_rule": item})
                for item in value["security_group_rules"]
            ]
            return answer({"security_group_rules": [self.show_rule(ctx, row) for row in made]}, 201)
        row = self._create_rule(ctx, {"security_group_rule": ctx.body("security_group_rule")})
        return answer({"security_group_rule": self.show_rule(ctx, row)}, 201)

    @route("DELETE", "/v2.0/security-group-rules/{id}")
    def delete_rule(self, ctx: Ctx) -> Response:
        """A rule of another project in one's own group can be read, and is 404 to a delete."""
        row = self.neutron.find(ctx, self.state.rules, ctx.params["id"], RULE_NOT_FOUND)
        self.neutron.require_member(ctx, "delete_security_group_rule")
        self.state.rules.remove(row["id"])
        return nothing()

    # ------------------------------------------------------------- pieces

    def _visible_rule(self, ctx: Ctx, row: Row) -> bool:
        group = self.state.groups.get(row["security_group_id"])
        return ctx.owns(row["project_id"]) or (group is not None and ctx.owns(group["project_id"]))

    def show(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the group with its rules."""
        made = self.neutron.shown(ctx, row)
        made["security_group_rules"] = [
            self.show_rule(ctx, rule) for rule in self.state.rules.where("security_group_id", row["id"])
        ]
        return made

    def show_rule(self, ctx: Ctx, row: Row) -> JsonObject:
        """Return the rule as replies show it."""
        return self.neutron.shown(ctx, row)

    def _find(self, ctx: Ctx) -> Row:
        return self.neutron.find(ctx, self.state.groups, ctx.params["id"], GROUP_NOT_FOUND)

    def _create_rule(self, ctx: Ctx, wrapped: JsonObject) -> Row:
        body: JsonObject = wrapped["security_group_rule"]
        checked(ctx, body, RULE_CREATABLE)
        group_id = ctx.text(body, "security_group_id", required=True)
        group = self.neutron.find(ctx, self.state.groups, group_id, GROUP_NOT_FOUND)
        self.neutron.require_member(ctx, "create_security_group_rule")
        matching = normalise(body)
        if matching["remote_group_id"]:
            self.neutron.find(ctx, self.state.groups, matching["remote_group_id"], GROUP_NOT_FOUND)
        key = canonical_key(matching)
        for other in self.state.rules.where("security_group_id", group["id"]):
            if canonical_key(other) == key:
                raise self.neutron.error(
                    409,
                    f"Security group rule already exists. Rule id is {other['id']}.",
                    "SecurityGroupRuleExists",
                )
        # An administrator's rule is the administrator's, unless it names the group's project.
        project = self.neutron.project_for(ctx, body, "create_security_group_rule")
        self.neutron.check_quota(
            project, "security_group_rule", len(self.state.rules.where("project_id", project))
        )
        row = self.state.add_rule(ctx.now, group["id"], project, matching)
        row["description"] = ctx.text(body, "description", "") or ""
        self.neutron.touch(group)
        return row
