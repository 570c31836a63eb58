"""What a single value must be: one function from a field and a value to the value as it is stored, or the reason why not.

Two kinds of refusal, since clients are shown different things: `Unfit` is a value of the wrong JSON type (the text shows the whole
document), `Wrong` is a value of the right type that the field does not take (the text shows the value).
"""

import ipaddress
import re
import socket
from typing import Any
from uuid import UUID

from roadstead_octavia.wire import url
from roadstead_octavia.wire.describe import Field, Kind

TRUE = frozenset(("true", "t", "yes", "y", "on", "1"))
FALSE = frozenset(("false", "f", "no", "n", "off", "0"))
# What the integer columns of the database hold.
SMALLEST, LARGEST = -(2**31), 2**31 - 1
INTEGER_DIGITS = 40
SHOWN_DIGITS = 200
NO_NULL = "Value should not be null"
UNSTORABLE = "Value should not contain NUL or unpaired surrogate characters"


class Unfit(Exception):
    """Not of the JSON type that the field takes."""


class Wrong(Exception):
    """Of the right type, but not what the field takes."""


def converted(field: Field, value: Any) -> Any:
    """The value in the field's type; Unfit.  Values that have no other form stay as they are."""
    match field.kind:
        case Kind.BOOLEAN:
            return _boolean(value)
        case Kind.INTEGER:
            return _integer(value)
        case Kind.FLOAT_ENUM:
            return _float(value)
        case Kind.ENUM if isinstance(field.choices[0], int):
            return _integer(value)
        case _:
            return value


def checked(field: Field, value: Any) -> Any:
    """The converted value as it is stored; Wrong."""
    match field.kind:
        case Kind.STRING:
            return _text(field, value)
        case Kind.INTEGER:
            return _bounded(field, value)
        case Kind.ENUM | Kind.FLOAT_ENUM:
            if isinstance(value, (str, int, float)) and value in field.choices:
                return value
            raise Wrong(f"Value should be one of: {', '.join(map(str, field.choices))}")
        case Kind.ALPN:
            if isinstance(value, str) and value in field.choices:
                return value
            raise Wrong("Value should be a valid ALPN protocol ID")
        case Kind.UUID:
            return _uuid(value)
        case Kind.IP:
            if isinstance(value, str) and is_address(value):
                return value
            raise Wrong("Value should be IPv4 or IPv6 format")
        case Kind.CIDR:
            return _network(value)
        case Kind.URL:
            if isinstance(value, str) and url.is_url(value):
                return _short(field, value)
            raise Wrong("Value must be a valid URL string")
        case Kind.URL_PATH:
            if isinstance(value, str) and url.is_path(value):
                return _short(field, value)
            raise Wrong("Value must be a valid URL Path string")
        case _:
            return value


def is_address(text: str) -> bool:
    """Whether it is an IPv4 address of four numbers or an IPv6 address, without a zone."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return True
    return False


def _boolean(value: Any) -> bool:
    if isinstance(value, int):
        return bool(value)
    if isinstance(value, str):
        if value in TRUE:
            return True
        if value in FALSE:
            return False
    raise Unfit(f"Value not an unambiguous boolean: {value}")


def _integer(value: Any) -> int:
    """Booleans and fractions are refused: they are mistakes, not numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) <= INTEGER_DIGITS:
        try:
            return int(value)
        except ValueError:
            pass
    shown = repr(value)[:SHOWN_DIGITS] if isinstance(value, str) else f"'{value}'"
    raise Unfit(f"invalid literal for int() with base 10: {shown}")


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        shown = repr(value) if isinstance(value, str) else f"'{value}'"
        raise Unfit(f"could not convert string to float: {shown}") from None


def _bounded(field: Field, value: int) -> int:
    lowest = SMALLEST if field.minimum is None else field.minimum
    highest = LARGEST if field.maximum is None else field.maximum
    if value < lowest:
        raise Wrong(f"Value should be greater or equal to {lowest}")
    if value > highest:
        raise Wrong(f"Value should be lower or equal to {highest}")
    return value


def _text(field: Field, value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong("Value should be string")
    if field.minimum_length is not None and len(value) < field.minimum_length:
        raise Wrong(f"Value should have a minimum character requirement of {field.minimum_length}")
    _short(field, value)
    if field.pattern is not None and not re.search(field.pattern, value):
        raise Wrong(f"Value should match the pattern {field.pattern}")
    return _storable(value)


def _short(field: Field, value: str) -> str:
    if field.maximum_length is not None and len(value) > field.maximum_length:
        raise Wrong(f"Value should have a maximum character requirement of {field.maximum_length}")
    return value


def _storable(value: str) -> str:
    """The database holds UTF-8 without NUL."""
    if "\0" in value or (
        not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)
    ):
        raise Wrong(UNSTORABLE)
    return value


def _uuid(value: Any) -> str:
    if isinstance(value, str):
        try:
            return str(UUID(value))
        except ValueError:
            pass
    raise Wrong("Value should be UUID format")


def _network(value: Any) -> str:
    if isinstance(value, str):
        try:
            return ipaddress.ip_network(value, strict=False).with_prefixlen
        except ValueError:
            pass
    raise Wrong("Value should be IPv4 or IPv6 CIDR format")
