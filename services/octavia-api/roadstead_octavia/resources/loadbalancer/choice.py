"""What a new load balancer is made with: its flavor, its availability zone and the provider that these and the request come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import Row
from roadstead_octavia.errors import invalid, refuse
from roadstead_octavia.resources.loadbalancer import rules

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Choice:
    """flavor, zone: the data of their profiles, empty without one."""

    provider: str
    flavor: Settings = field(default_factory=dict)
    zone: Settings = field(default_factory=dict)


async def chosen(call: Call, body: Mapping[str, Any]) -> Choice:
    """ApiError 400 for a flavor or zone that is not there or disabled, and for a provider that does not fit."""
    flavor_id, zone_name = body.get("flavor_id"), body.get("availability_zone")
    flavor = zone = None
    if flavor_id is not None:
        flavor = await _enabled(call, "flavor", {"id": flavor_id}, "Invalid flavor_id.")
    if zone_name is not None:
        zone = await _enabled(call, "availability_zone", {"name": zone_name}, "Invalid availability zone.")
    flavor_profile = await _profile(call, "flavor", flavor)
    provider = rules.provider_of(
        body.get("provider"),
        flavor_id,
        flavor_profile["provider_name"] if flavor_profile else None,
        call.options,
    )
    zone_profile = await _profile(call, "availability_zone", zone)
    return Choice(
        provider,
        _settings(flavor_profile, "flavor_data"),
        _settings(zone_profile, "availability_zone_data"),
    )


async def validate(call: Call, choice: Choice) -> None:
    """Ask the provider whether it still takes these settings."""
    ask = call.parts.provider.ask
    if choice.flavor:
        await ask(choice.provider, "validate_flavor", [dict(choice.flavor)])
    if choice.zone:
        await ask(choice.provider, "validate_availability_zone", [dict(choice.zone)])


async def _enabled(call: Call, table: str, key: Row, missing: str) -> Row:
    row = await call.parts.database.row(table, key)
    if row is None:
        raise invalid(missing)
    if not row["enabled"]:
        (value,) = key.values()
        raise refuse("DisabledOption", option=table, value=value)
    return row


async def _profile(call: Call, table: str, row: Row | None) -> Row | None:
    if row is None:
        return None
    return await call.parts.database.row(f"{table}_profile", {"id": row[f"{table}_profile_id"]})


def _settings(profile: Row | None, column: str) -> Settings:
    found = orjson.loads(profile[column]) if profile is not None else {}
    return found if isinstance(found, dict) else {}
