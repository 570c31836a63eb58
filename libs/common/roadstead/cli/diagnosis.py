"""`doctor`: what could be wrong with a deployment, looked at from the outside, each with its remedy.

Every check is a function of its own that answers a line or several and never raises; one that fails does not keep the others from
being looked at.  Distributions that are no service bring theirs along (entry point group `roadstead.checks`): each is called with the
client, None when there is no broker, and the context.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
import orjson

from roadstead.cli.client import Client, connected
from roadstead.cli.context import Context
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.reading import message_of, status_of
from roadstead.cli.sealed import last_messages, sealer_of
from roadstead.cli.stack.build import service_modules
from roadstead.cli.streams import stream_rows
from roadstead.clock import parse_time
from roadstead.seal import SealBroken
from roadstead.store.api import SchemaBehind, StoreUnavailable
from roadstead.subjects import STREAMS, consumers_of, rpc_subject

SKEW_WARNING, SKEW_WRONG = 1.0, 10.0  # seconds
FULL_WARNING, FULL_WRONG = 0.8, 0.95
BEHIND_WARNING = 1000
ANSWER_WITHIN = 3.0


class State(StrEnum):
    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class Line:
    """One thing looked at."""

    what: str
    state: State
    text: str
    remedy: str = ""

    def as_dict(self) -> dict[str, str]:
        return {"check": self.what, "state": self.state.value, "text": self.text, "remedy": self.remedy}


async def diagnose(context: Context) -> list[Line]:
    """All lines, in the order in which a person should mend things."""
    lines: list[Line] = []
    try:
        async with connected(context) as client:
            for check in (bus, streams, services, consumers, dead_letters):
                lines += [line async for line in check(client)]
            lines += [line async for line in database(context)]
            lines += [line async for line in keys(client, context)]
            lines += [line async for line in regions(client)]
            for brought in checks_of_others():
                lines += [line async for line in brought(client, context)]
    except UserError as error:
        lines.append(
            Line("bus", State.WRONG, str(error), "start the broker, or correct the context's natsUrl")
        )
        lines += [line async for line in database(context)]
        for brought in checks_of_others():
            lines += [line async for line in brought(None, context)]
    return lines


Check = Callable[[Client | None, Context], AsyncIterator[Line]]


def checks_of_others() -> list[Check]:
    """What installed distributions look at themselves, by name."""
    return [entry.load() for entry in sorted(entry_points(group="roadstead.checks"), key=lambda e: e.name)]


async def bus(client: Client) -> AsyncIterator[Line]:
    began = time.monotonic()
    try:
        await client.nats.flush(timeout=2)
    except (nats.errors.Error, TimeoutError):
        yield Line(
            "bus",
            State.WRONG,
            "the broker took the connection and answers no ping",
            "look at the broker's log",
        )
        return
    took = (time.monotonic() - began) * 1000
    found = client.nats.connected_server_version
    version = f"{found.major}.{found.minor}.{found.patch}"
    yield Line("bus", State.OK, f"{client.context.nats_url}, nats-server {version}, {took:.1f} ms away")
    try:
        reply = await client.nats.request("$JS.API.STREAM.INFO.SPEC", b"", timeout=ANSWER_WITHIN)
        at = parse_time(str(orjson.loads(reply.data)["ts"]))
    except (nats.errors.Error, TimeoutError, KeyError, ValueError):
        return  # the streams' own lines tell what is wrong
    yield _skew("clock of broker", (at - datetime.now(UTC)).total_seconds())


async def streams(client: Client) -> AsyncIterator[Line]:
    rows = {str(row["name"]): row for row in await stream_rows(client)}
    bad = False
    for name in STREAMS:
        row = rows[name]
        if row.get("missing"):
            bad = True
            yield Line(
                f"stream {name}",
                State.WRONG,
                "it is not there",
                "start a service; each makes what is missing",
            )
        elif "hidden" in row:
            bad = True
            yield Line(
                f"stream {name}",
                State.WRONG,
                f"it cannot be looked at: {row['hidden']}",
                "use the operator's context",
            )
        elif float(row["share"]) >= FULL_WARNING:
            bad = True
            state = State.WRONG if float(row["share"]) >= FULL_WRONG else State.WARNING
            yield Line(
                f"stream {name}",
                state,
                f"it is {row['full']} full",
                "raise its size limit, or remove what is old",
            )
    if not bad:
        total = sum(int(row["messages"]) for row in rows.values())
        yield Line("streams", State.OK, f"all {len(rows)} are there, {total} messages")


async def services(client: Client) -> AsyncIterator[Line]:
    answering = []
    for name in service_modules():
        try:
            await client.ask(rpc_subject(name, "ping"), {}, who=name, timeout=ANSWER_WITHIN)
        except Refused:
            answering.append(name)  # it knows no such request, and says so: it lives
        except UserError:
            yield Line(
                f"service {name}", State.WRONG, "it does not answer", f"start it; see `roadstead logs {name}`"
            )
        else:
            answering.append(name)
    if answering:
        yield Line("services", State.OK, f"{', '.join(answering)} answer")


async def consumers(client: Client) -> AsyncIterator[Line]:
    waiting = 0
    for service in service_modules():
        for consumer in consumers_of(service):
            try:
                info = await client.js.consumer_info(consumer.stream, consumer.durable)
            except nats.js.errors.NotFoundError:
                yield Line(
                    f"consumer {consumer.durable}",
                    State.WRONG,
                    "it is not there",
                    f"start the {service} service",
                )
                continue
            except (nats.errors.Error, TimeoutError):
                return  # streams told already that nothing may be looked at
            behind = info.num_pending or 0
            waiting += behind
            if behind > BEHIND_WARNING:
                yield Line(
                    f"consumer {consumer.durable}",
                    State.WARNING,
                    f"{behind} messages wait for it",
                    f"see `roadstead logs {service}`, or run more replicas",
                )
    yield Line("consumers", State.OK, f"{waiting} messages wait")


async def dead_letters(client: Client) -> AsyncIterator[Line]:
    try:
        count = (await client.js.stream_info("DLQ")).state.messages
    except (nats.js.errors.NotFoundError, nats.errors.Error, TimeoutError):
        return
    if count:
        yield Line(
            "dead letters",
            State.WARNING,
            f"{count} messages were refused",
            "`roadstead dlq list` tells why; `roadstead dlq dismiss` when it is settled",
        )
    else:
        yield Line("dead letters", State.OK, "none")


async def database(context: Context) -> AsyncIterator[Line]:
    from roadstead.store.postgres import PostgresStore  # SQLAlchemy takes long to import

    if context.database_url is None:
        yield Line(
            "database",
            State.INFO,
            "not looked at: the context names none",
            "set databaseUrl in an operator's context",
        )
        return
    told = behind = False
    for name in service_modules():
        store = PostgresStore(context.database_url, name, pool_size=1, patience=2.0)
        try:
            await store.open()
            if not told:
                told = True
                yield Line("database", State.OK, "it answers")
                yield _skew("clock of database", (await store.now() - datetime.now(UTC)).total_seconds())
        except SchemaBehind as error:
            behind = True
            yield Line(f"schema {name}", State.WRONG, str(error), "run `roadstead migrate`")
        except (StoreUnavailable, OSError) as error:
            text = str(error) or type(error).__name__
            yield Line(
                "database",
                State.WRONG,
                f"it does not answer: {text}",
                "start PostgreSQL, or correct databaseUrl",
            )
            return
        finally:
            await store.close()
    if not behind:
        yield Line("schemas", State.OK, "all are as this release needs them")


async def keys(client: Client, context: Context) -> AsyncIterator[Line]:
    if context.seal_key_file is None:
        yield Line(
            "keys",
            State.INFO,
            "not looked at: the context names none",
            "set sealKeyFile in an operator's context",
        )
        return
    path = Path(context.seal_key_file).expanduser()
    try:
        sealer = sealer_of(context)
        messages = await last_messages(client, "CREDENTIAL", "credential.>")
    except UserError as error:
        yield Line("keys", State.WRONG, str(error), "give the key file that the services use")
        return
    if path.stat().st_mode & 0o077:
        yield Line("keys", State.WARNING, f"{path} can be read by others", f"chmod 600 {path}")
    closed = 0
    for message in messages:
        try:
            sealer.open_json(str(orjson.loads(message.data).get("sealed")))
        except (SealBroken, ValueError):
            closed += 1
    if closed:
        yield Line(
            "keys",
            State.WRONG,
            f"{closed} of {len(messages)} credentials cannot be opened",
            "add the key that sealed them",
        )
    else:
        yield Line("keys", State.OK, f"they open all {len(messages)} credentials")


async def regions(client: Client) -> AsyncIterator[Line]:
    try:
        found: Sequence[dict[str, Any]] = await client.listing("region", allRegions=True)
    except UserError as error:
        yield Line("regions", State.WRONG, str(error), "start the identity service")
        return
    if not found:
        yield Line(
            "regions", State.INFO, "none is registered", "`roadstead region configure`, then `register`"
        )
    for document in found:
        name = document["metadata"].get("name")
        status, ident = status_of(document), document["metadata"]["id"]
        if status == "provisioned":
            yield Line(f"region {name}", State.OK, f"{ident} is reachable")
        else:
            text = f"{ident} is {status}: {message_of(document)}"
            yield Line(f"region {name}", State.WRONG, text, f"`roadstead region check {ident}` looks closer")


def _skew(what: str, seconds: float) -> Line:
    """How far a clock is from this machine's, network and all."""
    text = f"{abs(seconds):.2f} s {'ahead' if seconds > 0 else 'behind'}"
    state = State.OK
    if abs(seconds) > SKEW_WARNING:
        state = State.WRONG if abs(seconds) > SKEW_WRONG else State.WARNING
    return Line(what, state, text, "" if state is State.OK else "let both be set by NTP")
