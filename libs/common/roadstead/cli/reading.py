"""What the reading commands make of documents: finding one by id or name, columns, the words of a status."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.context import is_uuid
from roadstead.cli.failures import NoneSuch, UserError
from roadstead.cli.kinds import INVENTORIES

Document = Mapping[str, Any]


def status_of(document: Document) -> str:
    """provisioned, provisioning, error, deprovisioning, deleted; unknown while nothing is told."""
    if "gone" in document:
        return "deleted"
    if "deletionTimestamp" in document.get("metadata", {}):
        return "deprovisioning"
    return str(document.get("status", {}).get("provisioningStatus") or "unknown")


def is_provisioned(document: Document) -> bool:
    """The newest accepted spec is realized."""
    status, metadata = document.get("status", {}), document.get("metadata", {})
    return status_of(document) == "provisioned" and status.get("observedGeneration") == metadata.get(
        "generation"
    )


def has_failed(document: Document) -> bool:
    """The newest spec was refused, or cannot be realized as it is."""
    if condition(document, "Accepted").get("status") == "False":
        return True
    return status_of(document) == "error"


def condition(document: Document, kind: str) -> Mapping[str, Any]:
    found: Sequence[Mapping[str, Any]] = document.get("status", {}).get("conditions", ())
    return next((each for each in found if each.get("type") == kind), {})


def message_of(document: Document) -> str:
    """What a person should read first: a refusal, else why it is not ready, with its code."""
    refused = condition(document, "Accepted")
    if refused.get("status") == "False":
        return f"refused: {refused.get('message', '')}"
    code = document.get("status", {}).get("code")
    text = str(condition(document, "Available").get("message") or "")
    return f"{code}: {text}" if code and text else str(code or text)


def age_of(document: Document) -> str:
    """How long it has been as it is: since the last change of Available."""
    since = condition(document, "Available").get("lastTransitionTime")
    if not since:
        return "-"
    return span_text(
        (datetime.now(UTC) - datetime.fromisoformat(str(since).replace("Z", "+00:00"))).total_seconds()
    )


def span_text(seconds: float) -> str:
    """37s, 5m, 3h, 12d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


EXTRA: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    "identity": (("PROJECT", ("status", "projectId")),),
    "network": (("PREFIX", ("spec", "prefix")), ("VLAN", ("status", "openstack", "vlanID"))),
    "server": (
        ("PRIVATE IP", ("status", "privateIP")),
        ("PUBLIC IP", ("status", "publicIP")),
    ),
    "volume": (("SIZE", ("spec", "size")), ("CLAIM", ("status", "claimRef", "id"))),
    "loadbalancer": (("VIP", ("status", "vipAddress")), ("PUBLIC IP", ("status", "publicIP"))),
}
INVENTORY_COLUMNS: Mapping[str, Sequence[str]] = {
    "flavor": ("name", "id", "architecture", "cpus", "memory", "disk", "baremetal"),
    "image": ("name", "id", "status", "architecture", "sizeGiB", "virtualization"),
    "volumeclass": ("name", "id", "media", "minSize", "maxSize", "encrypted"),
    "externalnetwork": ("name", "id"),
}


def columns(kind: str, documents: Sequence[Document]) -> tuple[list[str], list[list[Any]]]:
    """Head and rows of a table of one kind."""
    if kind in INVENTORIES:
        names = INVENTORY_COLUMNS[kind]
        return [name.upper() for name in names], [[d.get(name) for name in names] for d in documents]
    extra = list(EXTRA.get(kind, ()))
    if kind == "server":
        extra.insert(0, ("POWER", ()))
    head = ["NAME", "ID", "STATUS", *(title for title, _ in extra), "SINCE", "MESSAGE"]
    rows = []
    for document in documents:
        metadata = document.get("metadata", {})
        more = [
            condition(document, "Active").get("reason") if title == "POWER" else _at(document, path)
            for title, path in extra
        ]
        rows.append(
            [
                metadata.get("name"),
                metadata.get("id"),
                status_of(document),
                *more,
                age_of(document),
                message_of(document),
            ]
        )
    return head, rows


def _at(document: Document, path: Sequence[str]) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


async def find(client: Client, kind: str, word: str, *, network: str | None = None) -> dict[str, Any]:
    """The one resource of that id or name.  NoneSuch for a name that nothing has; UserError when several have it."""
    if is_uuid(word):
        ident = word.lower()
        return await client.api(kind, "get", {"id": ident}, region=ident if kind == "region" else None)
    more = {"allRegions": True} if kind == "region" else {"network": network}
    items = [d for d in await client.listing(kind, name=word, **more) if d["metadata"].get("name") == word]
    if not items:
        raise NoneSuch(f"there is no {kind} named {word} here; `roadstead get {kind}` lists them")
    if len(items) > 1:
        ids = ", ".join(d["metadata"]["id"] for d in items)
        raise UserError(f"{len(items)} resources of kind {kind} are named {word}; give one of the ids {ids}")
    return items[0]


async def region_rows(client: Client) -> list[dict[str, Any]]:
    """Every region with how it stands."""
    return [
        {
            "name": d["metadata"].get("name"),
            "id": d["metadata"]["id"],
            "status": status_of(d),
            "message": message_of(d),
        }
        for d in await client.listing("region", allRegions=True)
    ]
