"""Resources while they change: a live table on a terminal, a line for each change in a pipe."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.live import Live
from rich.text import Text

from roadstead.cli.output import COLOURS, console, table_text

HEAD = ("KIND", "NAME", "STATUS", "SECONDS", "MESSAGE")  # no ids: the table must fit a terminal


@dataclass
class Line:
    """One resource.  since: monotonic seconds at which it was first asked for; ended: when it came to where it should."""

    kind: str
    name: str
    id: str
    status: str = "waiting"
    message: str = ""
    since: float = field(default_factory=time.monotonic)
    ended: float | None = None

    @property
    def seconds(self) -> float:
        return (self.ended if self.ended is not None else time.monotonic()) - self.since

    def row(self) -> list[str]:
        return [self.kind, self.name, self.status, f"{self.seconds:.1f}", self.message]


class Board:
    """Lines in the order in which they were added."""

    def __init__(self, quiet: bool = False) -> None:
        self.lines: dict[tuple[str, str], Line] = {}
        self._live: Live | None = None
        self._quiet = quiet

    @contextmanager
    def shown(self) -> Iterator["Board"]:
        """While inside, changes appear."""
        terminal = console()
        if self._quiet or not terminal.is_terminal:
            yield self
            return
        with Live(console=terminal, get_renderable=self._text, refresh_per_second=8) as live:
            self._live = live
            try:
                yield self
            finally:
                self._live = None

    def add(self, kind: str, name: str, ident: str) -> Line:
        return self.lines.setdefault((kind, ident), Line(kind, name, ident))

    def tell(self, kind: str, ident: str, status: str, message: str = "", *, ended: bool = False) -> None:
        """What is known now; said only when it differs from before."""
        line = self.lines[kind, ident]
        if ended and line.ended is None:
            line.ended = time.monotonic()
        elif not ended:
            line.ended = None
        if (line.status, line.message) == (status, message):
            return
        line.status, line.message = status, message
        if self._live is None and not self._quiet:
            out = console()
            text = Text(f"{line.kind} {line.name} ")
            text.append(status, COLOURS.get(status, "") if out.is_terminal else "")
            text.append(f" {line.seconds:.1f} s" + (f"  {message}" if message else ""))
            out.print(text)
            sys.stdout.flush()

    def rows(self) -> Sequence[Sequence[Any]]:
        return [line.row() for line in self.lines.values()]

    def _text(self) -> Text:
        return table_text(HEAD, self.rows()) if self.lines else Text("")
