"""A dump of mysqldump or mariadb-dump as rows: a reader of its INSERT and CREATE TABLE statements, and of nothing else.

The text is read in pieces, so its size does not matter; one statement may be as long as `LONGEST`.  Values are NULL, numbers, texts with
their escapes, and bytes (`_binary '...'`, `0x...`, `X'...'`); what is none of these is refused with its place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from roadstead_octavia.db.importer.problem import ImportRefused

PIECE = 1 << 20
LONGEST = 1 << 28

# One piece of a statement.  A quoted text that does not end here needs more of the file.
_TOKEN = re.compile(
    rb"""
      '[^'\\]*(?:(?:\\.|'')[^'\\]*)*'(?!')
    | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*"(?!")
    | `(?:[^`]|``)*`(?!`)
    | --[ \t][^\n]*(?:\n|\Z) | --\n | --\Z | \#[^\n]*(?:\n|\Z)
    | /\*.*?\*/
    | [^'"`;/\#-]+
    | ; | /(?!\*) | --(?=[^ \t\n]) | -(?!-)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = (b"-- ", b"--\t", b"--\n", b"#", b"/*")
_INSERT = re.compile(
    rb"\s*(?:INSERT|REPLACE)\s+(?:IGNORE\s+|LOW_PRIORITY\s+|DELAYED\s+)*INTO\s+(?:`[^`]+`\.)?`?(\w+)`?\s*"
    rb"(?:\(([^()]*)\)\s*)?VALUES?\s*",
    re.IGNORECASE,
)
_CREATE = re.compile(
    rb"\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:`[^`]+`\.)?`?(\w+)`?\s*\((.*)\)",
    re.IGNORECASE | re.DOTALL,
)
_COLUMN = re.compile(rb"^\s*`([^`]+)`\s", re.MULTILINE)
_VALUE = re.compile(
    rb"""\s*(?:
      (?P<null>NULL\b)
    | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w'])
    | (?P<hex>0[xX][0-9a-fA-F]*|[xX]'[0-9a-fA-F]*')
    | (?P<bits>[bB]'[01]*'|0b[01]+)
    | (?P<charset>_\w+\s*)?'(?P<text>[^'\\]*(?:(?:\\.|'')[^'\\]*)*)'(?!')
    | (?P<word>TRUE\b|FALSE\b)
    )\s*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPED = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}

Values = Sequence[Any]  # None, int, float or bytes


def statements(stream: IO[bytes]) -> Iterator[bytes]:
    """The statements without comments (those of the kind `/*!40000 ... */` are left out too)."""
    waiting, at, length, last = b"", 0, 0, False
    parts: list[bytes] = []
    while True:
        found = _TOKEN.match(waiting, at)
        # A token that reaches the end of what was read may go on in what was not.
        if found is None or (found.end() == len(waiting) and not last):
            if last:
                if at < len(waiting):
                    raise ImportRefused(
                        "the dump ends within a text or a comment: it was cut short; dump again"
                    )
                break
            more = stream.read(PIECE)
            waiting, at, last = waiting[at:] + more, 0, not more
            if len(waiting) > LONGEST:
                raise ImportRefused(f"a text in the dump is longer than {LONGEST} bytes")
            continue
        token, at = found.group(), found.end()
        if token == b";":
            yield b"".join(parts)
            parts, length = [], 0
        elif not token.startswith(_COMMENTS):
            parts.append(token)
            length += len(token)
            if length > LONGEST:
                raise ImportRefused(f"a statement in the dump is longer than {LONGEST} bytes")
    if b"".join(parts).strip():
        raise ImportRefused("the dump ends within a statement: it was cut short; dump again")


def rows(stream: IO[bytes], tables: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(table, row) of those tables.  ImportRefused with the place of what cannot be read."""
    wanted, columns = set(tables), {}
    for statement in statements(stream):
        head = _INSERT.match(statement)
        if head is None:
            made = _CREATE.match(statement)
            if made is not None:
                columns[made.group(1).decode()] = [c.decode() for c in _COLUMN.findall(made.group(2))]
            continue
        table = head.group(1).decode()
        if table not in wanted:
            continue
        names = _names(head.group(2)) if head.group(2) is not None else columns.get(table)
        if not names:
            raise ImportRefused(
                f"the dump inserts into {table} without naming columns and has no CREATE TABLE for it:"
                " dump with --complete-insert"
            )
        for number, values in enumerate(tuples(statement, head.end(), table), 1):
            if len(values) != len(names):
                raise ImportRefused(
                    f"{table}, row {number} of an INSERT: {len(values)} values for {len(names)} columns"
                )
            yield table, dict(zip(names, values, strict=True))


def _names(text: bytes) -> list[str]:
    return [part.strip().strip(b"`").decode() for part in text.split(b",")]


def tuples(statement: bytes, at: int, table: str) -> Iterator[Values]:
    """`(...), (...)` from there to the end."""
    end = len(statement.rstrip())
    while True:
        if statement[at : at + 1] != b"(":
            raise _unreadable(statement, at, table)
        at += 1
        values: list[Any] = []
        while True:
            found = _VALUE.match(statement, at)
            if found is None:
                raise _unreadable(statement, at, table)
            values.append(_value(found))
            at = found.end()
            ending = statement[at : at + 1]
            at += 1
            if ending == b")":
                break
            if ending != b",":
                raise _unreadable(statement, at - 1, table)
        yield values
        while at < end and statement[at : at + 1].isspace():
            at += 1
        if at >= end:
            return
        if statement[at : at + 1] != b",":
            raise _unreadable(statement, at, table)
        at += 1
        while statement[at : at + 1].isspace():
            at += 1


def _value(found: "re.Match[bytes]") -> Any:
    if found["null"]:
        return None
    if (number := found["number"]) is not None:
        return float(number) if re.search(rb"[.eE]", number) else int(number)
    if (text := found["text"]) is not None:
        return _ESCAPE.sub(_unescaped, text)
    if (digits := found["hex"]) is not None:
        digits = digits[2:].strip(b"'")
        return bytes.fromhex((digits if len(digits) % 2 == 0 else b"0" + digits).decode())
    if (bits := found["bits"]) is not None:
        return int(bits[2:].strip(b"'") or b"0", 2)
    return int(found["word"].lower() == b"true")


def _unescaped(found: "re.Match[bytes]") -> bytes:
    letter = found.group(1)
    return b"'" if letter is None else _ESCAPED.get(letter, letter)


def _unreadable(statement: bytes, at: int, table: str) -> ImportRefused:
    near = statement[max(0, at - 20) : at + 20].decode("utf-8", "replace")
    return ImportRefused(f"{table}: the values of an INSERT cannot be read near {near!r}")
