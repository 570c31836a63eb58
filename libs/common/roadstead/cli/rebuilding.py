"""`rebuild` on the real broker and database."""

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import nats.errors
import nats.js.errors
from nats.js.api import ConsumerConfig, DeliverPolicy

from roadstead.assembly import Service
from roadstead.bus.connection import WRONG_LAST_SEQUENCE
from roadstead.bus.epochs import Seen, micros
from roadstead.bus.failures import BusRefused
from roadstead.bus.streams import ensure_streams
from roadstead.cli.client import Client, connected
from roadstead.cli.context import Context
from roadstead.cli.failures import Refused, UserError
from roadstead.clock import SystemClock
from roadstead.rebuild import Counts, Last, to_bus, to_database
from roadstead.settings import load_settings
from roadstead.store.api import SchemaBehind, StoreUnavailable
from roadstead.store.postgres import PostgresStore
from roadstead.subjects import rpc_subject

ANSWER_WITHIN = 2.0
BATCH = 200


class Broker:
    """`Streams` over nats-py."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def last(self, stream: str, subject: str) -> Last | None:
        try:
            message = await self._client.js.get_msg(stream, subject=subject)
        except nats.js.errors.NotFoundError:
            return None
        assert message.time is not None
        return Last(subject, int(message.seq or 0), micros(message.time), message.data or b"")

    async def all_last(self, stream: str, subject: str) -> list[Last]:
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT, inactive_threshold=60.0, mem_storage=True
        )
        reader = await self._client.js.pull_subscribe(subject, stream=stream, config=config)
        found: list[Last] = []
        while pending := (await reader.consumer_info()).num_pending:
            for message in await reader.fetch(min(BATCH, int(pending)), timeout=5):
                place = message.metadata
                found.append(
                    Last(message.subject, place.sequence.stream, micros(place.timestamp), message.data)
                )
                await message.ack()
        await reader.unsubscribe()
        return found

    async def seen(self, stream: str, sequence: int) -> Seen:
        info = await self._client.js.stream_info(stream)
        assert info.created is not None
        at = None
        if sequence:
            try:
                moment = (await self._client.js.get_msg(stream, seq=sequence)).time
                at = micros(moment) if moment is not None else None
            except nats.js.errors.NotFoundError:
                at = None
        return Seen(micros(info.created), int(info.state.last_seq), at)

    async def compare_and_publish(self, subject: str, body: bytes, expected: int) -> int | None:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        try:
            return int((await self._client.js.publish(subject, body, headers=headers)).seq)
        except nats.js.errors.APIError as error:
            if error.err_code == WRONG_LAST_SEQUENCE:
                return None
            raise

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        return 1, int((await self._client.js.publish(subject, payload, headers=dict(headers))).seq)

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        await self._client.js.purge_stream(stream, subject=subject, keep=keep or None)


async def rebuild_from_database(
    context: Context, names: Sequence[str], *, dry_run: bool
) -> dict[str, dict[str, Any]]:
    """Publish what the rows of those services say; counts by service."""
    return await _each(context, names, to_database_too=False, dry_run=dry_run)


async def rebuild_from_bus(
    context: Context, names: Sequence[str], *, dry_run: bool
) -> dict[str, dict[str, Any]]:
    """Make rows of those services from what the streams hold; counts by service."""
    return await _each(context, names, to_database_too=True, dry_run=dry_run)


async def _each(
    context: Context, names: Sequence[str], *, to_database_too: bool, dry_run: bool
) -> dict[str, dict[str, Any]]:
    url = context.need_database()
    settling = load_settings().settling
    services = {ep.name: ep.load() for ep in entry_points(group="roadstead.services") if ep.name in names}
    counts: dict[str, dict[str, Any]] = {}
    async with connected(context) as client:
        await _refuse_running(client, names)
        broker = Broker(client)
        try:
            await ensure_streams(client.js, ())
            for name in names:
                service: Service = services[name]
                store = PostgresStore(url, name)
                try:
                    await store.open()
                    if to_database_too:
                        made = await to_database(
                            name, store, broker, service.documents_of, settling=settling, dry_run=dry_run
                        )
                    else:
                        made = await to_bus(name, store, broker, SystemClock(), dry_run=dry_run)
                finally:
                    await store.close()
                counts[name] = _shown(made, to_database_too)
        except SchemaBehind as error:
            raise UserError(f"{error}; run `roadstead migrate` first") from None
        except (StoreUnavailable, OSError) as error:
            raise UserError(
                f"the database does not answer: {error}; what was done stays, run it again"
            ) from None
        except BusRefused as error:
            raise UserError(str(error)) from None
        except (nats.errors.Error, TimeoutError) as error:
            text = str(error) or type(error).__name__
            raise UserError(f"the broker failed: {text}; what was done stays, run it again") from None
    return counts


def _shown(made: Counts, rows: bool) -> dict[str, Any]:
    common = {"kept": made.kept}
    if rows:
        return {
            "rows": made.rows,
            "credentials": made.credentials,
            **common,
            "unreadable": len(made.unreadable),
        }
    return {"specs": made.specs, "statuses": made.statuses, "credentials": made.credentials, **common}


async def _refuse_running(client: Client, names: Sequence[str]) -> None:
    """UserError when one of the services answers: it would write the same rows."""

    async def runs(name: str) -> bool:
        try:
            await client.ask(rpc_subject(name, "ping"), {}, who=name, timeout=ANSWER_WITHIN)
        except Refused:
            return True
        except UserError:
            return False
        return True

    running = [
        name for name, up in zip(names, await asyncio.gather(*(runs(n) for n in names)), strict=True) if up
    ]
    if running:
        raise UserError(
            f"{', '.join(running)} run: stop them first (of the local stack: `roadstead down`, then `roadstead up --bare`)"
        )
