"""What `roadstead doctor` looks at of the Octavia API: its schema, its answers, its providers.

Nothing is said where it is not in use: no schema in the database, no address in the context, and nobody who answers on the bus.  The
schema alone is no sign of use, as `roadstead migrate` makes every one.
"""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.context import Context
from roadstead.cli.diagnosis import Line, State
from roadstead.cli.failures import UserError
from roadstead.store.api import SchemaBehind, StoreUnavailable
from roadstead.subjects import OCTAVIA_API, rpc_subject
from roadstead_octavia.db.tables import SCHEMA

ANSWER_WITHIN = 6.0  # a provider that is silent takes three of them


async def checks(client: Client | None, context: Context) -> AsyncIterator[Line]:
    """All lines; none where the API is not in use."""
    schema = [line async for line in _schema(context)]
    seen = await _providers(client)
    if not schema and seen is None and context.octavia_url is None:
        return
    for line in schema:
        yield line
    yield await _answer(context, seen)
    if seen is not None:
        for each in seen["providers"]:
            yield _provider(each, str(seen["default"]))


async def _schema(context: Context) -> AsyncIterator[Line]:
    if context.database_url is None:
        return
    # SQLAlchemy takes long to import.
    from roadstead.store.postgres.revisions import check_revision
    from roadstead_octavia.db.postgres import PostgresDatabase

    database = PostgresDatabase(context.database_url, SCHEMA, pool_size=1, patience=2.0)
    try:
        await database.session.open()
        there = await database.session.run(
            lambda link, _: link.fetchval("SELECT to_regnamespace($1) IS NOT NULL", SCHEMA)
        )
        if there:
            await database.session.run(lambda link, _: check_revision(link.fetch, SCHEMA))
            yield Line(f"schema {SCHEMA}", State.OK, "it is as this release needs it")
    except SchemaBehind as error:
        yield Line(f"schema {SCHEMA}", State.WRONG, str(error), "run `roadstead migrate`")
    except (StoreUnavailable, OSError):
        return  # the database's own line tells it
    finally:
        await database.close()


async def _providers(client: Client | None) -> Mapping[str, Any] | None:
    """What the API says of its providers; None when nobody answers."""
    if client is None:
        return None
    subject = rpc_subject(OCTAVIA_API, "providers")
    try:
        reply = await client.ask(subject, {}, who=OCTAVIA_API, timeout=ANSWER_WITHIN)
    except UserError:
        return None
    return reply if "providers" in reply else None


async def _answer(context: Context, seen: Mapping[str, Any] | None) -> Line:
    """One line of both ways to the API: the bus, and HTTP where the context has its address."""
    what, log = "octavia API", f"start it; see `roadstead logs {OCTAVIA_API}`"
    if (url := context.octavia_url) is not None:
        fault = await asyncio.to_thread(_asked, url)
        if fault is not None:
            return Line(what, State.WRONG, f"{url} {fault}", log)
    if seen is None and url is None:
        return Line(
            what,
            State.INFO,
            "not looked at: the context names no address, and nobody answers on the bus",
            "set octaviaUrl in an operator's context where it is run",
        )
    if seen is None:
        return Line(what, State.WRONG, "it does not answer on the bus, so no provider is heard", log)
    return Line(what, State.OK, f"{url} answers" if url else "it answers on the bus")


def _asked(url: str) -> str | None:
    """What is wrong with the document of versions at an address; None when nothing is."""
    if not url.startswith(("http://", "https://")):
        return "is no address: octaviaUrl begins with http:// or https://"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_WITHIN) as answer:  # noqa: S310 - looked at above
            json.load(answer)["versions"]
    except urllib.error.HTTPError as error:
        return f"answers {error.code}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"gives no document of versions: {error}"
    return None


def _provider(seen: Mapping[str, Any], default: str) -> Line:
    name = str(seen["name"])
    what = f"provider {name}"
    if seen["answers"]:
        return Line(what, State.OK, "it answers")
    text = "it does not answer: what needs it gets 503" + ("; it is the default" if name == default else "")
    return Line(
        what, State.WRONG, text, "start it, or take it out of ROADSTEAD_OCTAVIA_ENABLED_PROVIDER_DRIVERS"
    )
