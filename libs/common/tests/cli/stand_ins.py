"""A client without a broker: answers from a few documents, and a note of what was asked."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.context import Context
from roadstead.cli.failures import NoAnswer, Refused
from roadstead.subjects import OWNERS

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


class Owner(Answers):
    """Also takes specs and deletions.  refuses: message by name; away: how many requests of a kind meet nobody, by (kind, verb)."""

    def __init__(
        self, refuses: Mapping[str, str] | None = None, away: Mapping[tuple[str, str], int] | None = None
    ) -> None:
        super().__init__(offered={"volumeclass": [{"id": "c-1", "name": "fast"}]})
        self.nats = SimpleNamespace(options={})  # type: ignore[assignment]  # what a waiting command asks of a connection
        self.refuses = dict(refuses or {})
        self.away = dict(away or {})
        self.keeps: dict[str, Refused] = {}  # by name, why a deletion is refused
        self.applied: list[str] = []
        self.deleted: list[str] = []
        self.states: dict[
            str, tuple[str, str]
        ] = {}  # provisioningStatus and code by name, where it is not provisioned

    def at(self, region: str, project: str | None) -> "Owner":
        return self

    async def follow(self, subject: str, handle: Any) -> Any:
        async def unsubscribe() -> None:
            return None

        return SimpleNamespace(unsubscribe=unsubscribe)

    async def api(
        self,
        kind: str,
        verb: str,
        payload: Mapping[str, Any],
        *,
        region: str | None = None,
        project: str | None = None,
    ) -> dict[str, Any]:
        while self.away.get((kind, verb), 0):
            self.away[kind, verb] -= 1
            who = OWNERS[kind]
            error = NoAnswer(f"the {who} service does not answer: see `roadstead status`", who)
            if self.patience is None:
                raise error
            await self.patience.pause(error)
        if verb == "apply":
            return self._applied(kind, payload)
        if verb == "delete":
            for document in self.held[kind]:
                if (
                    document["metadata"]["id"] == payload["id"]
                    and document["metadata"].get("name") in self.keeps
                ):
                    raise self.keeps[document["metadata"]["name"]]
            self.deleted.append(str(payload["id"]))
            self.held[kind] = [d for d in self.held[kind] if d["metadata"]["id"] != payload["id"]]
            return {}
        return await super().api(kind, verb, payload, region=region, project=project)

    def _applied(self, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        name, ident = payload["metadata"]["name"], payload["metadata"]["id"]
        if name in self.refuses:
            raise Refused("INVALID", self.refuses[name], 422)
        self.applied.append(name)
        document = held(kind, ident, name, generation=1)
        state, code = self.states.get(name, ("provisioned", ""))
        document["status"] = {"provisioningStatus": state, "observedGeneration": 1, "code": code}
        self.held.setdefault(kind, []).append(document)
        return {"id": ident, "generation": 1, "result": "accepted"}
