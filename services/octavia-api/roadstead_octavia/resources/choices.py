"""Flavors, availability zones and their profiles: two pairs of resources that work alike.

A profile holds settings of one provider as JSON text, which the provider validates; a flavor or zone is a name for a profile that users
may choose.  Only administrators write them; the policy is asked about the caller's own project.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Delete, Insert, Row, Update
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.resources.generic import NIL
from roadstead_octavia.wire.columns import new_row, to_row
from roadstead_octavia.wire.describe import Resource
from roadstead_octavia.wire.read import put_values
from roadstead_octavia.wire.write import one


def authorize(call: Call, resource: Resource, action: str) -> None:
    call.parts.policy.enforce(call, f"{resource.rule}:{action}", call.caller.project_id)


def require_enabled(call: Call, provider: str) -> None:
    """ApiError ProviderNotEnabled."""
    if provider not in call.options.enabled_provider_drivers:
        raise refuse("ProviderNotEnabled", prov=provider)


@dataclass(frozen=True)
class Profiles:
    """One kind of profile.  data: the attribute with the JSON text.  method: of the provider.  user: (table, column) of what uses it.

    in_use and missing: nouns of two refusals, which differ from the resource's own for flavor profiles.
    """

    resource: Resource
    data: str
    method: str
    user: tuple[str, str]
    noun: str

    async def create(self, call: Call) -> Answer:
        authorize(call, self.resource, "post")
        body = call.body
        settings = self._settings(body[self.data])
        require_enabled(call, body["provider_name"])
        await call.parts.provider.ask(body["provider_name"], self.method, [settings])
        assert self.resource.post is not None
        row = {**new_row(self.resource.post, body), "id": call.parts.new_id()}
        await call.parts.database.write([Insert(self.resource.table, row)])
        return Answer(201, one(self.resource, row))

    async def update(self, call: Call) -> Answer:
        authorize(call, self.resource, "put")
        identifier, body = call.ids[0], call.body
        for name in ("name", "provider_name", self.data):
            if name in body and body[name] is None:
                raise refuse("InvalidOption", value=None, option=name)
        if ("provider_name" in body or self.data in body) and await self._is_used(call, identifier):
            raise refuse("ObjectInUse", object=self.noun, id=identifier)
        if identifier == NIL:
            raise not_found(self.noun, identifier)
        row = await call.parts.database.row(self.resource.table, {"id": identifier})
        if row is None:
            raise not_found(self.resource.noun, identifier)
        values = to_row(self.resource, put_values(self.resource, body, call.options))
        after: Row = {**row, **values}
        if self.data in body:
            settings = self._settings(after[self.data])
            require_enabled(call, after["provider_name"])
            await call.parts.provider.ask(after["provider_name"], self.method, [settings])
        if values:
            await call.parts.database.write([Update(self.resource.table, {"id": identifier}, values)])
        return Answer(200, one(self.resource, after))

    async def delete(self, call: Call) -> Answer:
        authorize(call, self.resource, "delete")
        identifier = call.ids[0]
        if identifier == NIL:
            raise not_found(self.noun, identifier)
        if await self._is_used(call, identifier):
            raise refuse("ObjectInUse", object=self.noun, id=identifier)
        if await call.parts.database.row(self.resource.table, {"id": identifier}) is None:
            raise not_found(self.noun, identifier)
        await call.parts.database.write([Delete(self.resource.table, {"id": identifier})])
        return Answer(204)

    async def _is_used(self, call: Call, identifier: str) -> bool:
        table, column = self.user
        return await call.parts.database.row(table, {column: identifier}) is not None

    def _settings(self, text: str) -> Mapping[str, Any]:
        """The text as settings; ApiError for what is no JSON object."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise refuse("InvalidOption", value=text, option=self.data)
        return found


@dataclass(frozen=True)
class Named:
    """Flavors or zones.  key: the column that paths name.  profiles: table and noun of their profiles, profile: the column.

    used_by: the column of load balancers that chose one.
    """

    resource: Resource
    key: str
    profile: str
    profiles: tuple[str, str]
    used_by: str

    async def create(self, call: Call) -> Answer:
        authorize(call, self.resource, "post")
        database = call.parts.database
        assert self.resource.post is not None
        row = new_row(self.resource.post, call.body)
        if self.key == "id":
            row["id"] = call.parts.new_id()
        self.require_name(row)
        await self._require_free(call, row["name"])
        if await database.row(self.profiles[0], {"id": row[self.profile]}) is None:
            raise not_found(self.profiles[1], row[self.profile])
        await database.write([Insert(self.resource.table, row)])
        return Answer(201, one(self.resource, row))

    async def update(self, call: Call) -> Answer:
        authorize(call, self.resource, "put")
        identifier, database = call.ids[0], call.parts.database
        row = await self._required(call, identifier)
        values = to_row(self.resource, put_values(self.resource, call.body, call.options))
        if values.get("name") is not None and values["name"] != row["name"]:
            await self._require_free(call, values["name"])
        if values:
            await database.write([Update(self.resource.table, {self.key: identifier}, values)])
        return Answer(200, one(self.resource, {**row, **values}))

    async def delete(self, call: Call) -> Answer:
        authorize(call, self.resource, "delete")
        identifier, database = call.ids[0], call.parts.database
        await self._required(call, identifier)
        users = await database.rows("load_balancer", {self.used_by: identifier})
        if any(user["provisioning_status"] != "DELETED" for user in users):
            raise refuse("ObjectInUse", object=self.resource.noun, id=identifier)
        # Load balancers that are DELETED keep pointing at something: at the placeholder.
        keep = [
            Update("load_balancer", {"id": user["id"]}, {self.used_by: NIL, "updated_at": user["updated_at"]})
            for user in users
        ]
        await database.write([*keep, Delete(self.resource.table, {self.key: identifier})])
        return Answer(204)

    async def _required(self, call: Call, identifier: str) -> Row:
        row = await call.parts.database.row(self.resource.table, {self.key: identifier})
        if row is None or identifier == NIL:
            raise not_found(self.resource.noun, identifier)
        return row

    async def _require_free(self, call: Call, name: str | None) -> None:
        taken = name is not None and await call.parts.database.row(self.resource.table, {"name": name})
        if taken:
            raise refuse("RecordAlreadyExists", field=self.resource.noun.lower(), name=name)

    def require_name(self, row: Row) -> None:
        """Zones are named in paths: a name that no path can hold is refused."""
        name = row["name"]
        if self.key == "name" and (not name or "/" in name):
            raise refuse(
                "InvalidInput", field="name", value=name, reason="Value should be a name without slashes"
            )
