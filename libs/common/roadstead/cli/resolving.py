"""Every word of the documents looked up, and every document's own id settled, before anything is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.context import is_uuid
from roadstead.cli.documents import Document
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.kinds import INVENTORIES, has_project
from roadstead.cli.naming import (
    Path,
    dotted,
    hidden_identity,
    id_for,
    member_servers,
    network_of,
    references,
    replaced,
)
from roadstead.cli.reading import find


@dataclass(frozen=True)
class Resolved:
    """A document whose words are ids.  servers: by word, the ids of servers whose addresses it waits for."""

    document: Document
    id: str
    region: str
    project: str | None
    exists: bool = False
    servers: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.document.kind

    @property
    def name(self) -> str:
        return self.document.name or self.id

    @property
    def needs(self) -> set[str]:
        """Ids of everything that the document names."""
        named = {value for _, _, value in references(self.document)}
        return (named | set(self.servers.values())) - {self.id}

    def envelope(self) -> dict[str, Any]:
        return {"metadata": dict(self.document.metadata), "spec": dict(self.document.spec)}


class Resolver:
    """Looks words up: in the documents that were resolved before, in the inventories, among what exists."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._made: dict[tuple[str, str], list[Resolved]] = {}
        self._inventories: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._identities: dict[str, str | None] = {}

    async def all(self, documents: Sequence[Document]) -> list[Resolved]:
        """In the order given, which has dependencies first.  UserError for the first word that means nothing."""
        found = []
        for document in documents:
            resolved = await self._one(document)
            self._made.setdefault((resolved.kind, resolved.document.name), []).append(resolved)
            found.append(resolved)
        return found

    async def _one(self, document: Document) -> Resolved:
        document = self._tenancy(document)
        region = str(document.metadata.get("regionId") or "")
        project = document.metadata.get("projectId") if has_project(document.kind) else None
        values: dict[Path, Any] = {}
        network: str | None = None
        for path, kind, word in references(document):
            try:
                values[path] = ident = await self._id_of(kind, word, region, project, network)
            except UserError as error:
                raise UserError(f"{document.where}: {dotted(path)}: {error}") from None
            if kind == "network" and document.kind != "network":
                network = ident
        document = replaced(document, values)
        network = network_of(document)
        ident, exists = await self._own_id(document, region, project, network)
        document = await self._identity(document, ident, network, project)
        servers = {}
        for path, word in member_servers(document):
            try:
                servers[word] = await self._id_of("server", word, region, project, network)
            except UserError as error:
                raise UserError(f"{document.where}: {dotted(path)}.server: {error}") from None
        document = document.with_parts({**document.metadata, "id": ident}, document.spec)
        return Resolved(document, ident, region, project, exists, servers)

    def _tenancy(self, document: Document) -> Document:
        """Region, project and organization of the context where the document names none."""
        metadata = dict(document.metadata)
        context = self._client.context
        if document.kind == "region":
            ident = metadata.get("id") or metadata.get("regionId")
            if not ident:
                raise UserError(
                    f"{document.where}: a region needs metadata.id; `roadstead region register` makes one", 2
                )
            return document.with_parts({**metadata, "id": ident, "regionId": ident}, document.spec)
        metadata.setdefault("regionId", context.region or context.need_region())
        metadata.setdefault("projectId", context.project or context.need_project())
        if "organizationId" not in metadata:
            if not context.organization:
                raise UserError(
                    "no organization is chosen: give --organization ID, or set ROADSTEAD_ORGANIZATION", 2
                )
            metadata["organizationId"] = context.organization
        return document.with_parts(metadata, document.spec)

    async def _id_of(
        self, kind: str, word: str, region: str, project: str | None, network: str | None
    ) -> str:
        if kind in INVENTORIES:
            return await self._offered(kind, word, region)
        if is_uuid(word):
            return word.lower()
        made = self._made.get((kind, word), [])
        if network is not None and len(made) > 1:
            made = [m for m in made if network_of(m.document) == network]
        if len(made) > 1:
            raise UserError(f"{len(made)} documents of kind {kind} are named {word}; give its id")
        if made:
            return made[0].id
        scope = network if kind in ("securitygroup", "server", "volume") else None
        held = await find(self._client.at(region, project), kind, word, network=scope)
        return str(held["metadata"]["id"])

    async def _offered(self, kind: str, word: str, region: str) -> str:
        """An entry of an inventory by its id, else by its name."""
        if (kind, region) not in self._inventories:
            self._inventories[kind, region] = await self._client.listing(kind, region=region)
        entries = self._inventories[kind, region]
        if any(entry["id"] == word for entry in entries):
            return word
        named = [str(entry["id"]) for entry in entries if entry.get("name") == word]
        if len(named) == 1:
            return named[0]
        if named:
            raise UserError(
                f"{len(named)} entries of {kind} are named {word}; give one of the ids {', '.join(named)}"
            )
        known = ", ".join(sorted(str(entry.get("name")) for entry in entries)) or "nothing"
        raise UserError(f"the region offers no {kind} {word}; it offers: {known}")

    async def _own_id(
        self, document: Document, region: str, project: str | None, network: str | None
    ) -> tuple[str, bool]:
        """The document's id, and whether the resource exists."""
        kind, given = document.kind, document.metadata.get("id")
        client = self._client.at(region, project)
        if given is None and kind == "server":
            given = id_for(kind, document.name, region=region, project=project, network=network)
        if given is not None:
            if not is_uuid(str(given)):
                raise UserError(f"{document.where}: metadata.id {given!r} is no UUID", 2)
            try:
                await client.api(kind, "get", {"id": str(given).lower()}, region=region)
            except Refused as error:
                if error.http != 404:
                    raise
                return str(given).lower(), False
            return str(given).lower(), True
        held = [
            d
            for d in await client.listing(kind, name=document.name, network=network)
            if d["metadata"].get("name") == document.name
        ]
        if kind == "network":
            held = [d for d in held if "deletionTimestamp" not in d["metadata"]] or held
        if len(held) > 1:
            ids = ", ".join(d["metadata"]["id"] for d in held)
            raise UserError(
                f"{document.where}: {len(held)} of kind {kind} are named {document.name}; set metadata.id to one of {ids}"
            )
        if held:
            return str(held[0]["metadata"]["id"]), True
        return id_for(kind, document.name, region=region, project=project, network=network), False

    async def _identity(
        self, document: Document, ident: str, network: str | None, project: str | None
    ) -> Document:
        """What hangs on a network lives in the network's identity unless it names one."""
        if document.kind == "network":
            self._identities[ident] = document.metadata.get("identityId") or hidden_identity(ident)
            return document
        if network is None or document.metadata.get("identityId") or document.kind == "region":
            return document
        if network not in self._identities:
            client = self._client.at(str(document.metadata["regionId"]), project)
            held = await find(client, "network", network)
            self._identities[network] = held["metadata"].get("identityId")
        identity = self._identities[network]
        if identity is None:
            return document
        return document.with_parts({**document.metadata, "identityId": identity}, document.spec)
