"""A recorded world as the API's options and caller."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from roadstead_octavia.call import Caller
from roadstead_octavia.options import Options

KNOWN = {f.name for f in fields(Options)}
# Options of the original that the API's answers do not depend on.
WITHOUT_EFFECT = {"controller_worker.network_driver"}


class Unsupported(Exception):
    """This exchange needs something that cannot be staged from data."""


def options_of(config: Mapping[str, Any]) -> Options:
    """The options that a recorded configuration means; Unsupported for one that there is no option for."""
    values: dict[str, Any] = {"pagination_max_limit": 1000, "enabled_provider_drivers": {}}
    values["enabled_provider_drivers"] = {
        "amphora": "The Octavia Amphora driver.",
        "octavia": "Deprecated alias of the Octavia Amphora driver.",
    }
    values["default_provider_driver"] = "amphora"
    quotas = dict(Options().default_quotas)
    for key, value in config.items():
        group, _, name = key.partition(".")
        if group == "quotas":
            quotas[name.removeprefix("default_").removesuffix("_quota")] = value
        elif group == "healthcheck":
            values[f"healthcheck_{name}"] = tuple(value) if isinstance(value, list) else value
        elif name == "pagination_max_limit":
            values[name] = _limit(value)
        elif name in KNOWN:
            values[name] = tuple(value) if isinstance(value, list) else value
        elif key not in WITHOUT_EFFECT:
            raise Unsupported(f"no option {key}")
    return replace(Options(), default_quotas=quotas, **values)


def _limit(value: Any) -> int | None:
    return None if str(value) == "infinite" or int(value) < 0 else int(value)


def caller_of(context: Mapping[str, Any] | None) -> Caller | None:
    """The recorded caller; None when the request never got as far as having one."""
    if context is None:
        return None
    policy = dict(context.get("policy") or {})
    return Caller(
        user_id=context.get("user_id"),
        project_id=context.get("project_id"),
        roles=tuple(context.get("roles") or ()),
        is_admin=bool(context.get("is_admin") or policy.get("is_admin")),
        system_scope=context.get("system_scope"),
        credentials=policy,
    )
