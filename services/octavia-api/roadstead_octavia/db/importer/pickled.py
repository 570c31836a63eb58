"""`listener.insert_headers` of the original is a Python pickle of a small dict.

It is read here without executing it: the few instructions that such a dict needs are carried out on plain values, and every other one
(classes, calls, persistent ids) is refused.  A pickle from any Python and protocol from 0 that the original ran on is understood.
"""

import struct
from collections.abc import Callable
from typing import Any

from roadstead_octavia.db.importer.problem import ImportRefused

LONGEST = 1 << 20
NEWEST_PROTOCOL = 5
_MARK = object()


def read_headers(data: bytes) -> dict[str, Any] | None:
    """The dict (names and values are texts, numbers, booleans or None), or None.  ImportRefused for everything else."""
    if len(data) > LONGEST:
        raise ImportRefused(f"insert_headers is a pickle of {len(data)} bytes; at most {LONGEST} are read")
    try:
        value = _Reader(data).value()
    except (IndexError, struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportRefused(f"insert_headers is no pickle of a dict ({type(error).__name__})") from None
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ImportRefused(f"insert_headers is a pickle of a {type(value).__name__} and not of a dict")
    for name, one in value.items():
        if not isinstance(name, str) or not (one is None or isinstance(one, str | bool | int)):
            raise ImportRefused("insert_headers is a dict of more than texts")
    return value


class _Reader:
    """The stack machine."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def value(self) -> Any:
        while True:
            code = self._take(1)
            if code == b".":
                if len(self._stack) != 1:
                    raise ValueError
                return self._stack[0]
            step = _STEPS.get(code)
            if step is None:
                raise ImportRefused(
                    f"insert_headers is a pickle with the instruction {code!r}, which is not carried out"
                )
            step(self)

    def _take(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._data):
            raise IndexError
        self._at += length
        return self._data[self._at - length : self._at]

    def _line(self) -> bytes:
        end = self._data.index(b"\n", self._at)
        line = self._data[self._at : end]
        self._at = end + 1
        return line

    def _number(self, form: str) -> int:
        number: int = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return number

    def _at_most(self, form: str, most: int) -> None:
        if self._number(form) > most:
            raise ValueError

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _text(self, form: str) -> None:
        self._push(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def _bytes_text(self, form: str) -> None:
        # Texts of Python 2.
        self._push(self._take(self._number(form)).decode("ascii"))

    def _quoted(self) -> None:
        line = self._line()
        if len(line) < 2 or line[:1] not in b"'\"" or line[:1] != line[-1:]:
            raise ValueError
        self._push(line[1:-1].decode("unicode_escape"))

    def _integer_line(self) -> None:
        line = self._line()
        self._push({b"00": False, b"01": True}.get(line) if line in (b"00", b"01") else int(line))

    def _long(self) -> None:
        self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def _long_line(self) -> None:
        self._push(int(self._line().rstrip(b"L")))

    def _to_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError
        found = self._stack[at + 1 :]
        del self._stack[at:]
        return found

    def _dict(self) -> None:
        found = self._to_mark()
        self._push(dict(zip(found[::2], found[1::2], strict=True)))

    def _set(self) -> None:
        value, name = self._stack.pop(), self._stack.pop()
        self._into(self._stack[-1], [name, value])

    def _set_all(self) -> None:
        found = self._to_mark()
        self._into(self._stack[-1], found)

    def _into(self, target: Any, found: list[Any]) -> None:
        if not isinstance(target, dict):
            raise TypeError
        for name, value in zip(found[::2], found[1::2], strict=True):
            target[name] = value

    def _keep(self, place: int) -> None:
        self._memo[place] = self._stack[-1]


_STEPS: dict[bytes, Callable[[_Reader], None]] = {
    b"\x80": lambda r: r._at_most("<B", NEWEST_PROTOCOL),
    b"\x95": lambda r: r._at_most("<Q", LONGEST),
    b"(": lambda r: r._push(_MARK),
    b"}": lambda r: r._push({}),
    b"d": _Reader._dict,
    b"s": _Reader._set,
    b"u": _Reader._set_all,
    b"X": lambda r: r._text("<I"),
    b"\x8c": lambda r: r._text("<B"),
    b"\x8d": lambda r: r._text("<Q"),
    b"V": lambda r: r._push(r._line().decode("raw_unicode_escape")),
    b"U": lambda r: r._bytes_text("<B"),
    b"T": lambda r: r._bytes_text("<i"),
    b"S": _Reader._quoted,
    b"N": lambda r: r._push(None),
    b"\x88": lambda r: r._push(True),
    b"\x89": lambda r: r._push(False),
    b"K": lambda r: r._push(r._number("<B")),
    b"M": lambda r: r._push(r._number("<H")),
    b"J": lambda r: r._push(r._number("<i")),
    b"I": _Reader._integer_line,
    b"L": _Reader._long_line,
    b"\x8a": _Reader._long,
    b"\x94": lambda r: r._keep(len(r._memo)),
    b"q": lambda r: r._keep(r._number("<B")),
    b"r": lambda r: r._keep(r._number("<I")),
    b"p": lambda r: r._keep(int(r._line())),
    b"h": lambda r: r._push(r._memo[r._number("<B")]),
    b"j": lambda r: r._push(r._memo[r._number("<I")]),
    b"g": lambda r: r._push(r._memo[int(r._line())]),
}
