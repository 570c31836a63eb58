"""Sealing of secrets, and a type that cannot leak them.

Whatever is secret is sealed before a row or a message holds it.  Keys are Fernet keys, the first one seals, every one opens, so a
rotation adds the new key everywhere, puts it first, seals again, and removes the old one.
"""

import base64
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

MARK = "[secret]"


class Secret:
    """A text that prints as a mark and does not serialise.  `reveal()` is the only way out."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return MARK

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and secrets.compare_digest(
            self._value.encode(), other._value.encode()
        )

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret does not serialise")


class SealBroken(ValueError):
    """A sealed value that none of the keys opens: a key is missing, or the value is not ours."""


class Sealer:
    """Seals JSON objects to text and opens them again."""

    def __init__(self, keys: Sequence[str]) -> None:
        """keys: urlsafe base64 of 32 bytes each, the sealing one first.  ValueError when there is none or one is malformed."""
        if not keys:
            raise ValueError(
                "no sealing key is configured: set ROADSTEAD_SEAL_KEYS or ROADSTEAD_SEAL_KEY_FILE"
            )
        try:
            self._fernet = MultiFernet([Fernet(k) for k in keys])
        except ValueError:
            raise ValueError("a sealing key is malformed: it must be urlsafe base64 of 32 bytes") from None

    def seal_json(self, value: Mapping[str, Any]) -> str:
        return self._fernet.encrypt(orjson.dumps(dict(value))).decode()

    def open_json(self, sealed: str) -> dict[str, Any]:
        try:
            return dict(orjson.loads(self._fernet.decrypt(sealed.encode())))
        except InvalidToken:
            raise SealBroken("a sealed value cannot be opened with the configured keys") from None

    def reseal(self, sealed: str) -> str:
        """The same value under the first key."""
        return self.seal_json(self.open_json(sealed))


def new_key() -> str:
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


def keys_from_file(path: Path, *, create: bool = False) -> list[str]:
    """One key a line, the sealing one first.  create: an absent file is made (mode 0600) with one new key."""
    if create and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(new_key() + "\n")
    return [
        line.strip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")
    ]
