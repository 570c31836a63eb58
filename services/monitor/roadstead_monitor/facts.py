"""What a list of Nova says of one server, as facts: read, put in one spelling, never interpreted.

Facts: status (upper case), taskState, powerState, launchedAt, createdAt (RFC 3339, UTC), image (a UUID; None where the reference
cannot be read), macAddress (of the first port on the server's network), generation (of the spec that was known at the read).
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from roadstead.clock import iso, parse_time
from roadstead.cloud.names import network_name

Facts = dict[str, Any]


def facts_of(listed: Mapping[str, Any], network: str | None, generation: int) -> Facts:
    """The facts of one row of a detailed server list; a hidden field is None.

    `network`: id of the network the server is on; its name is the key in Nova's address map.
    """
    power = listed.get("OS-EXT-STS:power_state")
    return {
        "generation": generation,
        "status": str(listed.get("status") or "").upper() or None,
        "taskState": listed.get("OS-EXT-STS:task_state") or None,
        "powerState": power if isinstance(power, int) else None,
        "launchedAt": _time(listed.get("OS-SRV-USG:launched_at")),
        "createdAt": _time(listed.get("created")),
        "image": _image(listed.get("image")),
        "macAddress": _mac(listed.get("addresses"), network),
    }


def _time(value: object) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    try:
        return iso(parse_time(value))
    except ValueError:
        return None


def _image(value: object) -> str | None:
    ident = value.get("id") if isinstance(value, Mapping) else value
    if not isinstance(ident, str):
        return None
    try:
        return str(UUID(ident))
    except ValueError:
        return None


def _mac(addresses: object, network: str | None) -> str | None:
    if network is None or not isinstance(addresses, Mapping):
        return None
    nics = addresses.get(network_name(network)) or ()
    first = next((nic for nic in nics if isinstance(nic, Mapping)), None)
    return (first.get("OS-EXT-IPS-MAC:mac_addr") or None) if first is not None else None
