"""Operations of providers: which there are, and which settings their flavors and zones may have."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.errors import refuse
from roadstead_octavia.http.paging import asked
from roadstead_octavia.resources.choices import require_enabled
from roadstead_octavia.resources.provider.wire import RESOURCE


async def list_(call: Call) -> Answer:
    """200 with the providers that are enabled; the project of the caller is what the policy is asked about."""
    call.parts.policy.enforce(call, "provider:get_all", call.caller.project_id)
    enabled = call.options.enabled_provider_drivers
    rows = [{"name": name, "description": text} for name, text in enabled.items()]
    return Answer(200, {RESOURCE.many: _shown(call, rows)})


async def flavor_capabilities(call: Call) -> Answer:
    """200 with the settings that a flavor profile of the provider may have."""
    return await _capabilities(
        call, "provider-flavor", "flavor_capabilities", "get_supported_flavor_metadata"
    )


async def availability_zone_capabilities(call: Call) -> Answer:
    """200 with the settings that a zone profile of the provider may have."""
    return await _capabilities(
        call,
        "provider-availability-zone",
        "availability_zone_capabilities",
        "get_supported_availability_zone_metadata",
    )


async def _capabilities(call: Call, rule: str, root: str, method: str) -> Answer:
    call.parts.policy.enforce(call, f"{rule}:get_all", call.caller.project_id)
    provider = call.ids[0]
    require_enabled(call, provider)
    found: Mapping[str, str] | None = await call.parts.provider.ask(provider, method, [])
    rows = [{"name": name, "description": text} for name, text in (found or {}).items()]
    return Answer(200, {root: _shown(call, rows)})


def _shown(call: Call, rows: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Those that the query's filters let through, with the attributes that it asks for."""
    wanted: dict[str, str] = {}
    for name, value in call.query:
        if name in ("name", "description") and call.options.allow_filtering:
            if name in wanted:
                raise refuse("InvalidFilterArgument")
            wanted[name] = value
    fields = asked(call.query, call.options).fields or ("name", "description")
    return [
        {name: row[name] for name in ("name", "description") if name in fields}
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
    ]
