"""Pure rules of the simulated Glance: fields, formats, JSON patches, import sources, seeded images."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

READ_ONLY = frozenset(
    {
        "status", "checksum", "size", "virtual_size", "created_at", "updated_at", "self", "file", "schema",
        "os_hash_algo", "os_hash_value", "direct_url", "stores",
    }
)  # fmt: skip
BASE_FIELDS = frozenset(
    {
        "name", "visibility", "owner", "protected", "os_hidden", "min_disk", "min_ram", "disk_format",
        "container_format", "tags",
    }
)  # fmt: skip
CREATE_FIELDS = BASE_FIELDS | {"id", "locations"}
DISK_FORMATS = ("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop", "gpt")
CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
IMPORT_PORTS = (None, 80, 443)

_LINUX = {"unikorn:os:kernel": "linux", "unikorn:virtualization": "virtualized"}
IMAGE_SEEDS: dict[str, dict[str, str]] = {
    "ubuntu-24.04": {
        **_LINUX, "unikorn:os:family": "debian", "unikorn:os:distro": "ubuntu", "unikorn:os:version": "24.04",
        "unikorn:os:codename": "noble",
    },
    "debian-12": {
        **_LINUX, "unikorn:os:family": "debian", "unikorn:os:distro": "debian", "unikorn:os:version": "12",
        "unikorn:os:codename": "bookworm",
    },
    "unlabelled": {},
}  # fmt: skip


def check_formats(body: Mapping[str, Any]) -> str | None:
    """Return the reason why disk or container format are no values of Glance, None when they are."""
    for key, known in (("disk_format", DISK_FORMATS), ("container_format", CONTAINER_FORMATS)):
        value = body.get(key)
        if value is not None and value not in known:
            return (
                f"Provided object does not match schema 'image': '{value}' is not one of {[None, *known]}: "
                f"Failed validating 'enum' in schema['properties']['{key}']"
            )
    return None


def check_property(properties: Mapping[str, Any]) -> str | None:
    """Return the reason why a custom property is refused: all of them are texts."""
    for key, value in properties.items():
        if key.startswith("os_glance_"):
            return f"Attribute '{key}' is reserved."
        if not isinstance(value, str):
            return (
                f"Provided object does not match schema 'image': {value!r} is not of type 'string': Failed "
                f"validating 'type' in schema['properties']['{key}']"
            )
    return None


def parse_patch(
    document: Any, row: Mapping[str, Any], properties: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[int, str] | None]:
    """Return (changes by field, refusal); a change to None removes a custom property.

    Later operations see the changes of earlier ones.
    """
    if not isinstance(document, list):
        return {}, (400, "Request body must be a JSON array of operation objects.")
    changes: dict[str, Any] = {}
    for item in document:
        if not isinstance(item, dict) or item.get("op") not in ("add", "replace", "remove"):
            return {}, (400, "Operations must be JSON objects with op add, replace or remove.")
        path = str(item.get("path", ""))
        if not path.startswith("/"):
            return {}, (400, f'Pointer `{path}` does not start with "/".')
        key = path[1:].replace("~1", "/").replace("~0", "~")
        refusal = _refuse_change(key, item, row, {**properties, **changes})
        if refusal is not None:
            return {}, refusal
        changes[key] = None if item["op"] == "remove" else item.get("value")
    return changes, None


def refuse_uri(uri: str) -> bool:
    """True for a source that Glance's default filter refuses: other scheme or port than the web's,
    or a loopback or link-local address."""
    parts = urlsplit(uri)
    try:
        port = parts.port
    except ValueError:
        return True
    if parts.scheme not in ("http", "https") or not parts.hostname or port not in IMPORT_PORTS:
        return True
    if parts.hostname == "localhost":
        return True
    try:
        address = ip_address(parts.hostname)
    except ValueError:
        return False
    return address.is_loopback or address.is_link_local or address.is_unspecified


def _fits(key: str, value: Any) -> bool:
    """True when the value has the type of a base field; null clears a name or format."""
    if key in ("protected", "os_hidden"):
        return isinstance(value, bool)
    if key in ("min_disk", "min_ram"):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if key == "tags":
        return isinstance(value, list) and all(isinstance(tag, str) for tag in value)
    if value is None:
        return key in ("name", "disk_format", "container_format")
    return isinstance(value, str)


def _refuse_change(
    key: str, item: Mapping[str, Any], row: Mapping[str, Any], properties: Mapping[str, Any]
) -> tuple[int, str] | None:
    if key in READ_ONLY or key == "id":
        return 403, f"Attribute '{key}' is read-only."
    if key.startswith("os_glance_"):
        return 403, f"Attribute '{key}' is reserved."
    if key in BASE_FIELDS:
        if item["op"] == "remove":
            return 403, f"Property {key} may not be removed."
        if not _fits(key, item.get("value")):
            return 400, f"Invalid value for property {key}: {item.get('value')!r} is of a wrong type."
        if key in ("disk_format", "container_format") and row["status"] != "queued":
            return 403, f"Attribute {key} can be only replaced for a queued image."
        return None
    if item["op"] != "add" and properties.get(key) is None:
        return 409, f"Property {key} does not exist."
    if item["op"] != "remove" and not isinstance(item.get("value"), str):
        return 400, f"Invalid value for property {key}: {item.get('value')!r} is not of type 'string'."
    return None
