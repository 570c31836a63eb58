"""How things are shown: aligned columns for people, JSON and YAML for programs.

Tables have no borders and are never cut, so a line can be searched, copied and piped; colours appear on a terminal only.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.text import Text


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


FormOption = Annotated[Form, typer.Option("--output", "-o", help="How to show it.", show_default=True)]

COLOURS = {
    "provisioned": "green",
    "ready": "green",
    "ok": "green",
    "provisioning": "yellow",
    "deprovisioning": "yellow",
    "starting": "yellow",
    "waiting": "yellow",
    "warning": "yellow",
    "restarting": "red",
    "stopped": "dim",
    "deleted": "dim",
    "error": "red",
    "wrong": "red",
    "info": "cyan",
}


def console() -> Console:
    """Of standard output as it is now (tests replace it)."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=True)


def complain(message: str) -> None:
    """One line on standard error."""
    terminal = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    terminal.print(Text("roadstead: ", style="bold red" if terminal.is_terminal else "") + Text(message))


def say(message: str, style: str = "") -> None:
    """One line on standard output."""
    console().print(Text(message, style=style))


def emit(form: Form, value: Any) -> bool:
    """Print the value when a form for programs is asked for; whether it was."""
    if form is Form.JSON:
        print(json.dumps(value, indent=2, ensure_ascii=False, default=str))
    elif form is Form.YAML:
        print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), end="")
    return form is not Form.TABLE


def table_lines(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[list[str]]:
    """Cells padded to the width of their columns, the last column as it is; the head first."""
    cells = [[_cell(c) for c in row] for row in rows]
    everything = [list(head), *cells]
    widths = [max(len(line[i]) for line in everything) for i in range(len(head))]
    last = len(head) - 1
    return [[c if i == last else c.ljust(widths[i]) for i, c in enumerate(line)] for line in everything]


def table_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Text:
    """The same as coloured text: words that tell a state bear its colour."""
    lines = table_lines(head, rows)
    text = Text()
    for number, line in enumerate(lines):
        for index, cell in enumerate(line):
            style = "bold" if number == 0 else COLOURS.get(cell.strip(), "")
            text.append(cell, style)
            if index < len(line) - 1:
                text.append("  ")
        if number < len(lines) - 1:
            text.append("\n")
    return text


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]], none: str = "") -> None:
    """The table; `none` instead of an empty one, on standard error, so that a pipe sees no lines."""
    if not rows and none:
        Console(file=sys.stderr, highlight=False, soft_wrap=True).print(none)
        return
    console().print(table_text(head, rows))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(str(value).split())
    return text or "-"
