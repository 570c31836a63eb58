"""The API under test with the adapter that the replayer drives: state, world, result and seam on a port of their own.

    python -m tests.conformance.adapter --database URL --api-port N --admin-port N

What is real: the whole application, PostgreSQL, the policy engine, reports of providers.  What answers from the recorded world: the
caller's identity, options, the provider, the network, the key manager.  Prints `ready` when both ports are served.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
import uvicorn
import uvloop

from roadstead.store.migrate import migrate
from roadstead_octavia.call import Caller, Parts
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.tables import SCHEMA
from roadstead_octavia.errors import ApiError
from roadstead_octavia.http.app import App
from roadstead_octavia.http.healthcheck import HealthCheck
from roadstead_octavia.http.operations import load_what_is_there
from roadstead_octavia.options import Options
from roadstead_octavia.policy_engine import PolicyEngine
from roadstead_octavia.provider.judge import Fault
from roadstead_octavia.provider.reports import Enders, Reports, failed_reply, fault_reply
from roadstead_octavia.provider.store import SqlOperations

from .script import Script, ScriptedKeys, ScriptedNetwork, ScriptedProvider
from .state import Rows
from .world import Unsupported, caller_of, options_of

NOBODY = Caller(None, None, is_admin=True, credentials={"is_admin": True})


class Staged:
    """One exchange at a time.  script: the world of it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.script = Script({})
        self.caller_now: Caller = NOBODY
        self.database = PostgresDatabase(url, SCHEMA, pool_size=4)
        self.network = ScriptedNetwork(self)
        self.parts = Parts(
            database=self.database,
            provider=ScriptedProvider(self),
            network=self.network,
            keys=ScriptedKeys(self),
            policy=PolicyEngine(),
            dispatch=lambda _operation, _tree, _revision: None,
        )
        self.app = App(self.parts, Options(), self, operations=load_what_is_there())
        self.rows: Rows | None = None

    async def open(self) -> None:
        await migrate(self._url, [SCHEMA], roles=False)
        await self.database.open()
        self.rows = await Rows.connect(self._url, SCHEMA)

    async def caller(self, _headers: Mapping[str, str]) -> Caller:
        """The recorded caller; no token is looked at."""
        return self.caller_now

    # ------------------------------------------------------------ what the replayer asks for

    async def state(self, value: Any) -> None:
        assert self.rows is not None
        await self.rows.load(value["tables"])

    async def world(self, value: Any) -> None:
        if value.get("faults"):
            raise Unsupported("the database is made to fail")
        self.app.options = options_of(value.get("config") or {})
        self.app.health = HealthCheck(self.app._ask_database)  # what an earlier exchange learned is forgotten
        self.caller_now = caller_of(value.get("context")) or NOBODY
        self.script = Script(value)

    async def result(self, _value: Any) -> dict[str, Any]:
        assert self.rows is not None
        return {
            "provider_calls": self.script.calls,
            "casts": self.script.casts,
            "tables": await self.rows.read(),
            "network_writes": self.script.network_writes,
            "unscripted": self.script.unscripted,
        }

    async def seam(self, value: Any) -> dict[str, Any]:
        operations = SqlOperations(self.database)
        enders = Enders(self.database, self.network, self.app.options, operations=operations, now=_now)
        reports = Reports(self.database, operations, enders)
        socket, message = value["socket"], value["message"]
        try:
            if socket == "status":
                return {"reply": await reports.status(None, message)}
            if socket == "stats":
                return {"reply": await reports.statistics(None, message)}
            return {"reply": await reports.get(None, message)}
        except Fault as fault:
            if socket == "get":
                return {"no_reply": True}
            return {"reply": fault_reply(fault, "status_object" if socket == "status" else "stats_object")}
        except ApiError as error:
            return {"reply": failed_reply(error)}

    async def admin(self, scope: Any, receive: Any, send: Any) -> None:
        """The adapter's own endpoint."""
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        operation = {"state": self.state, "world": self.world, "result": self.result, "seam": self.seam}.get(
            scope["path"].rpartition("/")[2]
        )
        status, answer = 404, b""
        if operation is not None:
            try:
                found = await operation(json.loads(body) if body else None)
                status, answer = 200, b"" if found is None else json.dumps(found, default=str).encode()
            except Unsupported as error:
                status, answer = 501, str(error).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(answer)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _server(app: Any, port: int) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=port,
            log_level="warning",
            lifespan="off",
            access_log=False,
            server_header=False,
            interface="asgi3",
            date_header=False,
        )
    )


async def serve(url: str, api_port: int, admin_port: int) -> None:
    staged = Staged(url)
    await staged.open()
    servers = [_server(staged.app, api_port), _server(staged.admin, admin_port)]
    tasks = [asyncio.create_task(server.serve()) for server in servers]
    while not all(server.started for server in servers):
        if any(task.done() for task in tasks):
            raise RuntimeError("a port could not be bound")
        await asyncio.sleep(0.02)
    print("ready", flush=True)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", required=True, help="address of an empty database")
    parser.add_argument("--api-port", type=int, default=9876)
    parser.add_argument("--admin-port", type=int, default=9877)
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    uvloop.run(serve(given.database, given.api_port, given.admin_port))


if __name__ == "__main__":
    main()
