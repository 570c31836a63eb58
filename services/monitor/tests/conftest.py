"""Servers in a simulated cloud, their owner's rows, and a sweeper between the two."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from roadstead.clock import parse_time
from roadstead.cloud.credentials import Keyring
from roadstead.events import ObservedMessage
from roadstead.reconcile import rules
from roadstead.reconcile.gate import view_of
from roadstead.reconcile.status import merged, status_document
from roadstead.reconcile.views import Directory
from roadstead.store.api import Row
from roadstead.subjects import Key, parse_key
from roadstead.testing.cloudsim.caller import Stage, stage
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.passbench import StandingClock, engine, view
from roadstead_compute.server import KIND, texts
from roadstead_compute.server.model import server_id
from roadstead_monitor.sweep import Sweeper, Swept

REGION = "11111111-1111-4111-8111-111111111111"
NETWORK = "22222222-2222-4222-8222-222222222222"
IDENTITY = "99999999-9999-4999-8999-999999999999"
PROJECT = "proj"


@dataclass
class Owner:
    """The compute service as far as observations go: production rules over rows in memory, STATUS into a directory."""

    clock: StandingClock
    directory: Directory
    rows: dict[str, Row] = field(default_factory=dict)
    outcomes: list[str] = field(default_factory=list)
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        body = json.loads(payload)
        self.messages.append((subject, dict(body)))
        key = parse_key(subject)
        message = ObservedMessage(
            body.pop("present"),
            parse_time(body.pop("readStartedAt")),
            body.pop("sweep"),
            body.pop("knownResourceVersion"),
            body,
        )
        row = self.rows[key.id]
        change = rules.observe(row, self.clock.now(), kind=KIND, message=message, cause={})
        self.outcomes.append(change.result)
        if change.row is not None:
            self.put(change.row)
        return 1, len(self.messages)

    def put(self, row: Row) -> None:
        self.rows[row.key.id] = row
        self.directory.put(view_of(json.loads(json.dumps(status_document(row)))))

    def stamp(self, ident: str, **changes: Any) -> None:
        """A pass writes status, as it does at its end."""
        row = self.rows[ident]
        status = merged(row.status, changes, self.clock.now())
        self.put(replace(row, status=status, resource_version=row.resource_version + 1))

    def edit(self, ident: str) -> None:
        row = self.rows[ident]
        self.put(replace(row, generation=row.generation + 1, resource_version=row.resource_version + 1))


class Sky:
    """One region with one identity (more on demand)."""

    def __init__(self) -> None:
        self.clock = StandingClock()
        self.cloud = Cloud(self.clock)
        self.keyring = Keyring()
        self.directory = Directory()
        self.owner = Owner(self.clock, self.directory)
        self.engine = engine(self.cloud, self.keyring, self.clock)
        self.sweeper = Sweeper(self.engine, self.directory, self.owner)
        self.stages: dict[str, Stage] = {}
        self.nova: dict[str, str] = {}
        self.region(REGION, IDENTITY)

    def region(self, region: str, identity: str) -> None:
        """Another region on the same cloud, with an identity of its own."""
        made = stage(self.cloud, f"stage-{len(self.stages)}")
        self.stages[identity] = made
        self.keyring.put_endpoint(region, "http://cloud.invalid/identity/v3", None)
        secret = {
            "domain-id": made.domain_id,
            "user-id": made.region_user_id,
            "password": "pw",
            "project-id": made.region_project_id,
        }
        self.keyring.put_region_secret(region, secret, 1)
        record = {"projectID": made.project_id, "userID": made.user_id, "password": "pw"}
        self.keyring.put_identity(region, identity, record, 1)
        self.directory.put(
            view("region", region, region, "_", metadata={"name": f"region-{len(self.stages)}"})
        )

    def server(
        self,
        name: str,
        *,
        identity: str = IDENTITY,
        region: str = REGION,
        real: bool = True,
        network: str = NETWORK,
    ) -> str:
        """A server that a pass has just asked for; its id."""
        ident = server_id(network, name)
        metadata = {
            "name": name,
            "projectId": PROJECT,
            "organizationId": "org",
            "identityId": identity,
            "creationTime": "2025-12-31T23:59:58.000Z",
        }
        spec = {"flavorID": "f-1", "networks": [{"id": network}]}
        row = Row(Key(region, PROJECT, "server", ident), identity, metadata, spec, 1, 1, 1, 1)
        self.owner.put(replace(row, resource_version=1))
        if real:
            made = self.stages[identity]
            if network not in self.nova:
                self.nova[network] = made.network(f"network-{network}")[0]
            port = made.port(self.nova[network], name=f"server-{ident}")
            self.nova[ident] = made.boot(
                name, networks=[{"port": port["id"]}], metadata={"serverID": ident, "regionID": region}
            )
            self.owner.stamp(ident, **texts.CREATED)
        return ident

    async def sweep(self, *, rest: float = 60.0) -> Swept:
        """The cloud goes on for `rest` seconds, then one sweep over everything."""
        self.clock.advance(rest)
        self.owner.messages.clear()
        self.owner.outcomes.clear()
        self.cloud.log.clear()
        return await self.sweeper.sweep("test", 1, (0,))

    def status(self, ident: str) -> dict[str, Any]:
        return dict(self.owner.rows[ident].status)

    def condition(self, ident: str, kind: str) -> str | None:
        found = [c for c in self.status(ident).get("conditions", ()) if c["type"] == kind]
        return found[0]["reason"] if found else None

    def observed(self, ident: str) -> dict[str, Any]:
        return dict(self.status(ident)["observed"])

    def gets(self) -> list[Any]:
        """Looks at one server by its id."""
        return list(self.cloud.log.calls(service="compute", method="GET", path=r"/servers/[0-9a-f]{8}-"))

    def lists(self) -> list[Any]:
        return list(self.cloud.log.calls(service="compute", method="GET", path=r"/servers/detail$"))

    def foreign(self, verb: str, ident: str, **values: Any) -> None:
        self.cloud.foreign("compute", verb, self.nova[ident], **values)


@pytest.fixture
def sky() -> Sky:
    return Sky()
