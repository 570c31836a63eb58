"""Short words for fields, so that a description reads like a table."""

from typing import Any

from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, Body, Field, Kind

MAXIMUM_TEXT = 255
PROJECT_LENGTH = 36


def text(maximum: int = MAXIMUM_TEXT, **more: Any) -> Field:
    return Field(Kind.STRING, maximum_length=maximum, **more)


def uuid(**more: Any) -> Field:
    return Field(Kind.UUID, **more)


def address(**more: Any) -> Field:
    """An IPv4 or IPv6 address."""
    return Field(Kind.IP, **more)


def boolean(**more: Any) -> Field:
    return Field(Kind.BOOLEAN, **more)


def integer(minimum: int | None = None, maximum: int | None = None, **more: Any) -> Field:
    return Field(Kind.INTEGER, minimum=minimum, maximum=maximum, **more)


def choice(*choices: Any, kind: Kind = Kind.ENUM, **more: Any) -> Field:
    """One of the choices; their kind is a text unless said otherwise."""
    return Field(kind, choices=choices, **more)


def array(of: Field | Body, **more: Any) -> Field:
    return Field(Kind.ARRAY, of=Field(Kind.OBJECT, of=of) if isinstance(of, Body) else of, **more)


def nested(of: Body, **more: Any) -> Field:
    return Field(Kind.OBJECT, of=of, **more)


def mapping(of: Field, **more: Any) -> Field:
    """An object with free keys and values of one kind."""
    return Field(Kind.MAPPING, of=of, **more)


def admin_state(**more: Any) -> Field:
    """admin_state_up: null is false."""
    return boolean(column="enabled", on_null=False, **more)


def tags() -> Field:
    """Null changes nothing, an empty list removes all."""
    return array(text(), column=NO_COLUMN, on_null=KEEP, unique=True)


def project() -> Field:
    return text(PROJECT_LENGTH)


def tenant() -> Field:
    """The older name of project_id; when both are sent this one counts."""
    return text(PROJECT_LENGTH, alias_of="project_id")
