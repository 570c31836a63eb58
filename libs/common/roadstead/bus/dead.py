"""What a dead letter looks like: the original body, and the reasons in headers (architecture.md section 3.11)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead.events import dump
from roadstead.subjects import BadSubject, dead_subject, parse_key

UNKNOWN_KEY = "unknown._.unknown.unknown"
MAX_BODY = 1 << 20
MAX_TEXT = 1000
MAX_DETAILS = 8000
_KEY = re.compile(r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){3}$")


@dataclass(frozen=True)
class DeadLetter:
    """Why a message is refused: a stable code, one line for a person, and every single problem."""

    code: str
    message: str
    details: Sequence[Mapping[str, Any]] = ()
    key: str = UNKNOWN_KEY


@dataclass(frozen=True)
class Origin:
    """The message that is refused and where it came from."""

    stream: str
    subject: str
    epoch: int
    sequence: int
    data: bytes
    traceparent: str | None = None


def key_of(subject: str) -> str:
    """The four tokens of the resource that a subject names, or the stand-in for none."""
    try:
        return str(parse_key(subject))
    except BadSubject:
        return UNKNOWN_KEY


def line(text: str, limit: int) -> str:
    """The text as a header may hold it: one line of printable ASCII, cut at `limit` characters."""
    ascii_text = text.encode("ascii", "backslashreplace").decode("ascii")
    clean = "".join(c if " " <= c <= "~" else " " for c in ascii_text).strip()
    return clean if len(clean) <= limit else clean[: limit - 3] + "..."


def details_line(details: Sequence[Mapping[str, Any]]) -> str:
    """As many whole details as fit, as a JSON list; the last one says how many were left out."""
    kept: list[Mapping[str, Any]] = []
    size = 2
    for index, detail in enumerate(details):
        one = {line(str(k), 64): line(str(v), MAX_TEXT) for k, v in detail.items()}
        size += len(dump(one)) + 1
        if size > MAX_DETAILS:
            kept.append({"code": "MORE", "message": f"{len(details) - index} more problems"})
            break
        kept.append(one)
    return dump(kept).decode("ascii")


def dead_message(
    service: str, letter: DeadLetter, origin: Origin, limit: int = MAX_BODY
) -> tuple[str, bytes, dict[str, str]]:
    """Subject, body (cut at `limit` bytes) and headers.  The message id makes a repeated refusal of one message one dead letter."""
    key = letter.key if _KEY.match(letter.key) else UNKNOWN_KEY
    headers = {
        "Nats-Msg-Id": f"dead-{service}-{origin.stream}-{origin.epoch}-{origin.sequence}-{line(letter.code, 64)}",
        "Roadstead-Reason": line(letter.code, 64) or "UNKNOWN",
        "Roadstead-Message": line(letter.message, MAX_TEXT) or "-",
        "Roadstead-Stream": origin.stream,
        "Roadstead-Subject": line(origin.subject, MAX_TEXT),
        "Roadstead-Epoch": str(origin.epoch),
        "Roadstead-Sequence": str(origin.sequence),
    }
    if letter.details:
        headers["Roadstead-Details"] = details_line(letter.details)
    if origin.traceparent:
        headers["traceparent"] = line(origin.traceparent, 64)
    body = origin.data
    if len(body) > limit:
        headers["Roadstead-Cut"] = str(len(body))
        body = body[:limit]
    return dead_subject(service, key), body, headers
