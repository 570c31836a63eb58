"""How the command says no: one line with what to do about it, and an exit status."""

from collections.abc import Mapping, Sequence
from typing import Any

FAILED = 1
USAGE = 2
BUSY = 4  # somebody else is at work on the same stack


class UserError(Exception):
    """Something that the person at the terminal can act on.  The text is one line with the remedy in it."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status


class NoAnswer(UserError):
    """Nobody answered a request, or not in time; who: the service that should."""

    def __init__(self, message: str, who: str) -> None:
        super().__init__(message)
        self.who = who


class Refused(UserError):
    """A request that was answered with an error (events.md section 3)."""

    def __init__(
        self, code: str, message: str, status: int = 0, details: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(f"{message} ({code})" if code else message)
        self.code = code
        self.http = status
        self.details = tuple(details)


class NoneSuch(UserError):
    """A word names nothing that exists here."""


def is_none_such(error: UserError) -> bool:
    """Whether an error says that a resource does not exist, by its name or by its id."""
    return isinstance(error, NoneSuch) or (isinstance(error, Refused) and error.http == 404)


def words_of(error: BaseException) -> str:
    """What an exception says; its type where it says nothing, as time-outs do."""
    return str(error) or type(error).__name__
