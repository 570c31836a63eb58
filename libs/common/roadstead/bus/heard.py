"""How far a service has acted on what others publish, kept in its database.

Every start reads the last message of each subject again, to know it.  What it causes was written down when some replica first heard
it, so a restart acts only on what is newer: it makes nothing due that is not (architecture.md section 3.12).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roadstead.bus.epochs import Documents


@dataclass(frozen=True, order=True)
class Mark:
    """The newest message that was acted on: when its stream stored it, in microseconds, and its sequence."""

    time: int = 0
    sequence: int = 0


class Heard:
    """The mark of one followed stream.  Messages are noted in the order of the stream, after what they cause was stored."""

    def __init__(self, documents: Documents, stream: str) -> None:
        self._documents = documents
        self._name = f"heard.{stream}"
        self._before: Mark | None = None
        self._newest = Mark()
        self._kept = Mark()
        self._missed = False

    async def is_news(self, sequence: int, time: int) -> bool:
        """Whether nobody had acted on the message when this process began.

        One that is newer by either measure is news: a stream that was made anew counts from 1, and a restored one goes back.
        """
        if self._before is None:
            document = await self._documents.change_document(self._name, lambda held, _now: (held, held))
            self._before = Mark(**document) if document is not None else Mark()
        return sequence > self._before.sequence or time > self._before.time

    def note(self, sequence: int, time: int) -> None:
        """Everything up to this message was acted on."""
        if not self._missed:
            self._newest = max(self._newest, Mark(time, sequence))

    def miss(self) -> None:
        """A message could not be acted on: the mark stays below it, so that the next start does."""
        self._missed = True

    async def keep(self) -> None:
        """Write the mark down where it moved; a replica that is behind moves nothing back."""
        newest = self._newest
        if newest == self._kept:
            return

        def rule(document: Mapping[str, Any] | None, _now: datetime) -> tuple[Mapping[str, Any], None]:
            held = Mark(**document) if document is not None else Mark()
            mark = max(held, newest)
            return {"time": mark.time, "sequence": mark.sequence}, None

        await self._documents.change_document(self._name, rule)
        self._kept = newest
