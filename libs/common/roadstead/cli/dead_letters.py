"""The dead-letter stream as people read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import nats.errors
import nats.js.errors
import orjson
from nats.js.api import ConsumerConfig, DeliverPolicy

from roadstead.cli.client import Client
from roadstead.cli.failures import UserError, words_of
from roadstead.clock import iso

STREAM = "DLQ"
BATCH = 200
PURGE_WITHIN = 10.0


@dataclass(frozen=True)
class DeadLetter:
    """One message that was put aside: why, where it came from, and what it was."""

    sequence: int
    at: str
    service: str
    reason: str
    message: str
    subject: str
    stream: str
    origin: int
    body: bytes
    cut: bool
    details: tuple[Mapping[str, Any], ...]
    traceparent: str = ""

    def summary(self) -> dict[str, Any]:
        return {
            "sequence": self.sequence,
            "at": self.at,
            "service": self.service,
            "reason": self.reason,
            "message": self.message,
            "subject": self.subject,
            "from": f"{self.stream} {self.origin}",
        }

    def full(self) -> dict[str, Any]:
        return {**self.summary(), "details": list(self.details), "cut": self.cut, "body": self.body_text()}

    def body_text(self) -> str:
        """The body for a screen: what is no text is shown as escapes."""
        return self.body.decode("utf-8", "backslashreplace")


def letter_of(
    sequence: int, at: str, dead_subject: str, data: bytes, headers: Mapping[str, str]
) -> DeadLetter:
    """From a message of the stream; a header that is missing is empty."""
    try:
        details = tuple(orjson.loads(headers.get("Roadstead-Details") or "[]"))
    except orjson.JSONDecodeError:
        details = ()
    origin = headers.get("Roadstead-Sequence", "0")
    return DeadLetter(
        sequence,
        at,
        dead_subject.split(".")[1] if "." in dead_subject else "",
        headers.get("Roadstead-Reason", ""),
        headers.get("Roadstead-Message", ""),
        headers.get("Roadstead-Subject", ""),
        headers.get("Roadstead-Stream", ""),
        int(origin) if origin.isdigit() else 0,
        data,
        "Roadstead-Cut" in headers,
        details,
        headers.get("traceparent", ""),
    )


async def listed(client: Client, service: str, limit: int) -> list[DeadLetter]:
    """The newest `limit` of a service (`*`: of all), oldest first."""
    found: list[DeadLetter] = []
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL, inactive_threshold=30.0, mem_storage=True)
    try:
        reader = await client.js.pull_subscribe(f"dlq.{service}.>", stream=STREAM, config=config)
        while pending := (await reader.consumer_info()).num_pending:
            for message in await reader.fetch(min(BATCH, int(pending)), timeout=5):
                place = message.metadata
                found.append(
                    letter_of(
                        place.sequence.stream,
                        iso(place.timestamp),
                        message.subject,
                        message.data,
                        message.headers or {},
                    )
                )
                await message.ack()
            found = found[-limit:]
        await reader.unsubscribe()
    except nats.js.errors.NotFoundError:
        raise UserError("there is no stream of dead letters: a service makes it at its start") from None
    except (nats.errors.Error, TimeoutError) as error:
        raise _hidden(error) from None
    return found


async def shown(client: Client, sequence: int) -> DeadLetter:
    try:
        message = await client.js.get_msg(STREAM, seq=sequence)
    except nats.js.errors.NotFoundError:
        raise _none(sequence) from None
    except (nats.errors.Error, TimeoutError) as error:
        raise _hidden(error) from None
    at = iso(message.time) if message.time is not None else ""
    return letter_of(sequence, at, str(message.subject), message.data or b"", message.headers or {})


async def dismissed(client: Client, sequence: int) -> None:
    """Take one dead letter out of the stream; UserError when there is none of that number."""
    await shown(client, sequence)
    try:
        await client.js.delete_msg(STREAM, sequence)
    except (nats.errors.Error, TimeoutError) as error:
        raise _hidden(error) from None


async def dismiss_all(client: Client, service: str) -> int:
    """Take out all of a service (`*`: of all) that are there now; how many.  What comes meanwhile stays."""
    newest = (await listed(client, service, 1))[-1:]
    if not newest:
        return 0
    subject = f"dlq.{service}.>"
    try:
        # Up to the newest one that was seen: nobody read what came behind it.
        reply = await client.js._api_request(
            f"$JS.API.STREAM.PURGE.{STREAM}",
            orjson.dumps({"filter": subject, "seq": newest[0].sequence + 1}),
            timeout=PURGE_WITHIN,
        )
    except (nats.errors.Error, TimeoutError) as error:
        raise _hidden(error) from None
    return int(reply.get("purged", 0))


def _none(sequence: int) -> UserError:
    return UserError(f"there is no dead letter {sequence}; `roadstead dlq list` shows them")


def _hidden(error: BaseException) -> UserError:
    return UserError(f"dead letters cannot be reached: {words_of(error)}; use an operator's context")


async def replayed(client: Client, sequence: int) -> str:
    """Publish the original again; what became of it."""
    letter = await shown(client, sequence)
    if letter.cut:
        raise UserError(
            f"dead letter {sequence} holds only the beginning of a message that was too large; publish it anew"
        )
    if not letter.subject:
        raise UserError(f"dead letter {sequence} does not tell its subject; it cannot be published again")
    headers = {"traceparent": letter.traceparent} if letter.traceparent else {}
    stored = await client.publish(letter.subject, letter.body, headers)
    return f"published again on {letter.subject} (sequence {stored})"
