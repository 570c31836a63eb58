"""The API in this process, over a real database: for tests with thousands of requests.

Provider and network agree at once.  Every request is told apart by what it wrote, so that a refusal that wrote something is seen.
"""

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from roadstead_octavia.call import Parts, _now
from roadstead_octavia.db.port import Change, Operation, Row, Tree, Write
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.errors import refuse
from roadstead_octavia.http.app import App
from roadstead_octavia.http.identity import HeaderIdentity
from roadstead_octavia.http.operations import load
from roadstead_octavia.options import Options
from roadstead_octavia.outside.absent import NoKeys
from roadstead_octavia.policy_engine import PolicyEngine
from roadstead_octavia.provider.conclude import End, Outcome
from roadstead_octavia.provider.noop import driver
from roadstead_octavia.provider.noop.driver import Manner
from roadstead_octavia.provider.reports import Enders
from roadstead_octavia.provider.store import SqlOperations

from .client import Reply

MINE, THEIRS = "a" * 32, "b" * 32
SUBNET = "30000000-0000-4000-8000-000000000000"
NETWORK = "40000000-0000-4000-8000-000000000000"
OPTIONS = Options(
    auth_strategy="testing", enabled_provider_drivers={"noop": "x"}, default_provider_driver="noop"
)
# A claim is written before anything can be refused by the provider, and taken back.
CLAIM = "vip_port_claim"


class Agrees:
    """The noop provider without a bus."""

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        json.dumps(arguments)  # it must be possible to send them

    async def ask(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        told = driver.ask(method, {"arguments": json.loads(json.dumps(arguments))}, Manner())
        if "returns" not in told:
            raise refuse("ProviderNotImplemented", prov=provider, user_msg="not implemented")
        return told["returns"]


class OneSubnet:
    """A network with one subnet that everybody may use."""

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        if (kind, identifier) == ("subnets", SUBNET):
            return {"id": SUBNET, "network_id": NETWORK, "cidr": "192.0.2.0/24", "ip_version": 4}
        if (kind, identifier) == ("networks", NETWORK):
            return {"id": NETWORK, "subnets": [SUBNET]}
        return None

    async def has_qos(self) -> bool:
        return True

    async def availability(self, network_id: str) -> Mapping[str, int]:
        return {SUBNET: 200}

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        return {
            **vip,
            "port_id": str(uuid.uuid4()),
            "ip_address": vip["ip_address"] or "192.0.2.9",
        }, additional

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        return


class Watched(PostgresDatabase):
    """Remembers what was written since `wrote` was last cleared."""

    wrote: list[str]

    async def commit(self, change: Change, options: Options) -> int:
        revision = await super().commit(change, options)
        self.wrote.append(f"change of {change.load_balancer_id}")
        return revision

    async def write(self, writes: Sequence[Write]) -> None:
        await super().write(writes)
        self.wrote += [w.table for w in writes if w.table != CLAIM]


class Inside:
    """See the module.  Every method blocks: the loop is this object's own."""

    def __init__(self, database_url: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.database = Watched(database_url, patience=5.0)
        self.database.wrote = []
        self.run(self.database.open())
        self.operations: list[str] = []
        network, policy = OneSubnet(), PolicyEngine(None)
        self.stored = SqlOperations(self.database)
        self.enders = Enders(self.database, network, OPTIONS, operations=self.stored, now=_now)
        parts = Parts(
            database=self.database,
            provider=Agrees(),
            network=network,
            keys=NoKeys(),
            policy=policy,
            dispatch=self._dispatch,
        )

        def is_admin(values: Any) -> bool:
            return policy.is_admin(values, enforce_scope=True, enforce_new_defaults=True)

        identity = HeaderIdentity(is_admin, everybody_is_admin=False)
        self.app = App(parts, OPTIONS, identity, operations=load())

    def close(self) -> None:
        self.run(self.database.close())
        self.loop.close()

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def _dispatch(self, operation: Operation, tree: Tree, revision: int) -> None:
        self.operations.append(operation.id)

    def ask(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        project: str = MINE,
        roles: str = "member",
        content_type: str | None = "application/json",
    ) -> tuple[Reply, list[str]]:
        """The answer, and what the request wrote.  What it began is finished before the next."""
        self.database.wrote.clear()
        headers = {
            "host": "localhost",
            "accept": "application/json",
            "x-project-id": project,
            "x-user-id": "u",
            "x-roles": roles,
        }
        if content_type is not None:
            headers["content-type"] = content_type
        reply = self.run(self._one(method, target, headers, body))
        wrote = list(self.database.wrote)
        self.run(self._finish())
        return reply, wrote

    async def _one(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        where, _, query = target.partition("?")
        parts = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": unquote(where),
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items()],
            "scheme": "http",
            "server": ("localhost", 80),
        }
        await self.app(scope, receive, send)
        start, *rest = sent
        raw = b"".join(message.get("body", b"") for message in rest)
        answered = {k.decode().lower(): v.decode() for k, v in start["headers"]}
        said: Any = raw.decode() or None
        if said and "json" in answered.get("content-type", ""):
            said = json.loads(said)
        return Reply(start["status"], answered, said)

    async def _finish(self) -> None:
        while self.operations:
            row = await self.stored.one(self.operations.pop())
            if row is not None:
                await self.enders.end(row, Outcome(End.SUCCESS))


def well_formed(reply: Reply) -> bool:
    """Whether a refusal has one of the three forms of this API, or is the plain text of a path that is not there."""
    body = reply.body
    if isinstance(body, str):
        return reply.headers.get("content-type", "").startswith("text/") and bool(body)
    if not isinstance(body, Mapping):
        return False
    if set(body) == {"faultcode", "faultstring", "debuginfo"}:
        server = reply.status >= 500
        return body["faultcode"] == ("Server" if server else "Client") and isinstance(
            body["faultstring"], str
        )
    return {"code", "title"} <= set(body) or isinstance(body.get("error"), Mapping)
