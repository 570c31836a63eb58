"""Requests and messages of the command line, over nats-py."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client as Nats
from nats.js import JetStreamContext

from roadstead.cli import chosen, tracing
from roadstead.cli.context import Context
from roadstead.cli.failures import NoAnswer, Refused, UserError, words_of
from roadstead.cli.kinds import INVENTORIES, has_project
from roadstead.cli.patience import Patience
from roadstead.subjects import NO_PROJECT, OWNERS, api_subject

CONNECT_WITHIN = 3.0
ANSWER_WITHIN = 10.0
RECONNECT_EVERY = 0.5
PAGE = 200
LISTED_BY = {
    "flavor": "compute",
    "image": "compute",
    "volumeclass": "volumes",
    "externalnetwork": "network",
}

Fields = Mapping[str, Any]


class Client:
    """A connection and the context it belongs to.  Every failure is a UserError that says what to do."""

    def __init__(self, context: Context, connection: Nats) -> None:
        self.context = context
        self.nats = connection
        self.patience: Patience | None = None  # of commands that wait

    def at(self, region: str, project: str | None) -> "Client":
        """The same connection in another region and project (None: as it is)."""
        twin = copy.copy(self)
        twin.context = replace(self.context, region=region, project=project or self.context.project)
        return twin

    def impatient(self) -> "Client":
        """The same, for requests that are not sent again when nobody answers."""
        twin = copy.copy(self)
        twin.patience = None
        return twin

    def stay(self) -> None:
        """From now on a broker that goes away is come back to, subscriptions and all."""
        self.nats.options["allow_reconnect"] = True
        self.nats.options["max_reconnect_attempts"] = -1
        self.nats.options["reconnect_time_wait"] = RECONNECT_EVERY

    @property
    def js(self) -> JetStreamContext:
        return self.nats.jetstream(timeout=ANSWER_WITHIN)

    async def ask(
        self, subject: str, payload: Fields, *, who: str, timeout: float = ANSWER_WITHIN
    ) -> dict[str, Any]:
        """The reply to a request.  Refused for an answered error; NoAnswer when nobody answers, with patience only at its end."""
        while True:
            try:
                reply = await self._ask(subject, payload, who, timeout)
            except NoAnswer as error:
                if self.patience is None:
                    raise
                await self.patience.pause(error)
            else:
                if self.patience is not None:
                    self.patience.answered(who)
                return read_reply(reply)

    async def _ask(self, subject: str, payload: Fields, who: str, timeout: float) -> bytes:
        body = json.dumps(payload).encode()
        if self.patience is not None:
            timeout = min(timeout, max(0.1, self.patience.left))
        with tracing.span(f"request {subject.split('.')[0]}") as headers:
            try:
                message = await self.nats.request(subject, body, timeout=timeout, headers=headers or None)
            except nats.errors.NoRespondersError:
                raise NoAnswer(f"the {who} service does not answer: see `roadstead status`", who) from None
            except (TimeoutError, nats.errors.TimeoutError):
                raise NoAnswer(
                    f"the {who} service gave no answer within {timeout:g} s: see `roadstead status` and its log",
                    who,
                ) from None
            except nats.errors.Error as error:
                raise UserError(
                    f"the broker took no request: {error}; see the rights of this context's user"
                ) from None
        return message.data

    async def api(
        self, kind: str, verb: str, payload: Fields, *, region: str | None = None, project: str | None = None
    ) -> dict[str, Any]:
        """A request about a kind in the region and project of the context, unless others are given."""
        subject = api_subject(
            region or (NO_PROJECT if kind == "region" else self.context.need_region()),
            self._project(kind, project),
            kind,
            verb,
        )
        return await self.ask(subject, payload, who=OWNERS.get(kind) or LISTED_BY[kind])

    def _project(self, kind: str, project: str | None) -> str:
        if kind in INVENTORIES or not has_project(kind):
            return NO_PROJECT
        return project or self.context.need_project()

    async def listing(
        self, kind: str, *, region: str | None = None, project: str | None = None, **filters: Any
    ) -> list[dict[str, Any]]:
        """All pages of a list."""
        items: list[dict[str, Any]] = []
        marker: str | None = None
        given = {name: value for name, value in filters.items() if value is not None}
        while True:
            page = {**given, "limit": PAGE, **({"marker": marker} if marker else {})}
            reply = await self.api(kind, "list", page, region=region, project=project)
            items += reply["items"]
            marker = reply.get("next")
            if not marker:
                return items

    async def publish(self, subject: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Store one message in its stream; its sequence.  UserError when it was not stored."""
        try:
            ack = await self.js.publish(subject, body, headers=dict(headers))
        except (nats.errors.Error, TimeoutError) as error:
            raise UserError(
                f"the broker did not store the message: {words_of(error)}; it is safe to try again"
            ) from None
        return int(ack.seq)

    async def follow(self, subject: str, handle: Callable[[str, dict[str, Any]], Awaitable[None]]) -> Any:
        """Call `handle(subject, document)` for each JSON message from now on; returns the subscription."""

        async def on_message(message: Any) -> None:
            try:
                document = json.loads(message.data)
            except ValueError:
                return  # not one of ours
            if isinstance(document, dict):
                await handle(message.subject, document)

        subscription = await self.nats.subscribe(subject, cb=on_message)
        await self.nats.flush()
        return subscription


def read_reply(data: bytes) -> dict[str, Any]:
    """The object in a reply.  Refused when it is an error."""
    try:
        reply = json.loads(data)
    except ValueError:
        raise UserError(
            "a service answered with something that is not JSON; do its version and ours differ?"
        ) from None
    if not isinstance(reply, dict):
        raise UserError(
            "a service answered with something that is no object; do its version and ours differ?"
        )
    error = reply.get("error")
    if isinstance(error, dict):
        raise Refused(
            str(error.get("code") or "ERROR"),
            str(error.get("message") or "the request was refused"),
            int(error.get("status") or 0),
            error.get("details") or (),
        )
    return reply


@asynccontextmanager
async def connected(context: Context | None = None) -> AsyncIterator[Client]:
    """A client of the chosen context.  UserError when the broker is not there or turns us away."""
    context = (context or chosen.context()).checked()
    connection = await _connect(context)
    try:
        yield Client(context, connection)
    finally:
        if not connection.is_closed:
            await connection.close()


async def _connect(context: Context) -> Nats:
    refusals: list[str] = []

    async def on_error(error: Exception) -> None:
        refusals.append(str(error))

    options: dict[str, Any] = {}
    if context.ca_file:
        import ssl

        options["tls"] = ssl.create_default_context(cafile=context.ca_file)
    if context.nkey_seed_file:
        if not Path(context.nkey_seed_file).expanduser().is_file():
            raise UserError(f"the seed file {context.nkey_seed_file} of context {context.name} is not there")
        options["nkeys_seed"] = str(Path(context.nkey_seed_file).expanduser())
    try:
        return await asyncio.wait_for(
            nats.connect(
                [url.strip() for url in context.nats_url.split(",")],
                name="roadstead-cli",
                inbox_prefix=context.inbox_prefix.encode(),
                allow_reconnect=False,
                connect_timeout=2,
                error_cb=on_error,
                **options,
            ),
            CONNECT_WITHIN,
        )
    except (nats.errors.Error, TimeoutError, OSError) as error:
        said = " ".join([*refusals, str(error)]).lower()
        if "authorization" in said or "authentication" in said:
            raise UserError(
                f"the broker at {context.nats_url} refuses the user of context {context.name}: see its nkeySeedFile"
            ) from None
        raise UserError(
            f"the broker at {context.nats_url} does not answer: start a stack with `roadstead up`, or choose another "
            "--context"
        ) from None
