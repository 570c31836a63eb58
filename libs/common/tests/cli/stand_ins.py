"""A client without a broker: answers from a few documents, and a note of what was asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.context import Context
from roadstead.cli.failures import Refused

REGION = "7377fb11-e0f1-53a2-b166-13fba73ab5a5"
CONTEXT = Context("test", region=REGION, project="demo", organization="acme")


class Answers(Client):
    """held: documents by kind; offered: entries of inventories.  asked: (kind, verb, payload)."""

    def __init__(
        self,
        held: Mapping[str, list[dict[str, Any]]] | None = None,
        offered: Mapping[str, list[dict[str, Any]]] | None = None,
        context: Context = CONTEXT,
    ) -> None:
        super().__init__(context, None)  # type: ignore[arg-type]  # nothing here may reach for a connection
        self.held = dict(held or {})
        self.offered = dict(offered or {})
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def at(self, region: str, project: str | None) -> "Answers":
        context = replace(self.context, region=region, project=project or self.context.project)
        twin = Answers(self.held, self.offered, context)
        twin.asked = self.asked
        return twin

    async def api(
        self,
        kind: str,
        verb: str,
        payload: Mapping[str, Any],
        *,
        region: str | None = None,
        project: str | None = None,
    ) -> dict[str, Any]:
        self.asked.append((kind, verb, dict(payload)))
        if verb == "get":
            for document in self.held.get(kind, ()):
                if document["metadata"]["id"] == payload["id"]:
                    return document
            raise Refused("NOT_FOUND", f"there is no {kind} {payload['id']} here", 404)
        if verb == "list":
            items = [*self.offered.get(kind, ()), *self.held.get(kind, ())]
            name, network = payload.get("name"), payload.get("network")
            return {
                "items": [
                    d
                    for d in items
                    if (name is None or d.get("metadata", {}).get("name") == name)
                    and (network is None or d.get("metadata", {}).get("networkId") == network)
                ],
                "next": None,
            }
        raise AssertionError(f"nobody expected {kind}.{verb}")


def held(kind: str, ident: str, name: str, **metadata: Any) -> dict[str, Any]:
    """A document as `get` answers it."""
    return {
        "kind": kind,
        "metadata": {"id": ident, "name": name, "regionId": REGION, "projectId": "demo", **metadata},
        "spec": {},
        "status": {},
    }
