"""A resource as data: what drives reading, writing, filters, sorting, OpenAPI and tests.

A `Field` says how a value is read (`kind` with its bounds), where it is stored (`column`), and what null means on PUT.  A `Resource` has
one `Body` for each form it comes in and the names of its list.  The values are in `resources/<resource>/wire.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """How a value is read; names are the wire's."""

    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    FLOAT_ENUM = "float"
    UUID = "uuid"
    IP = "ip"
    CIDR = "cidr"
    URL = "url"
    URL_PATH = "url path"
    ALPN = "alpn"
    ENUM = "enum"
    OBJECT = "object"  # of: a Body
    ARRAY = "array"  # of: a Field
    MAPPING = "mapping"  # of: a Field for the values


@dataclass(frozen=True)
class Field:
    """One attribute.

    alias_of: another name for the same attribute (tenant_id).  on_null: what PUT makes of null: a value, or a function of the options;
    KEEP ignores it.  default: of POST.
    """

    kind: Kind
    required: bool = False
    default: Any = None
    column: str | None = None
    maximum_length: int | None = None
    minimum_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None
    choices: tuple[Any, ...] = ()
    of: "Field | Body | None" = None
    alias_of: str | None = None
    on_null: Any = None


@dataclass(frozen=True)
class Body:
    """An object on the wire.  type_name: what error texts call it."""

    type_name: str
    fields: Mapping[str, Field]


@dataclass(frozen=True)
class Resource:
    """One resource.

    noun: in texts (`Load Balancer`).  table.  rule: prefix of its policy rules (`loadbalancer`).  one, many, links: root keys.
    argument: the name of the body argument in texts.  post, put: None where there is no such call.
    shown: wire name -> function of a row (with its relations) giving the value, in order of the answer.
    filters: wire or model name -> column.  sorts: likewise.  booleans: columns whose filter is a boolean.
    """

    noun: str
    table: str
    rule: str
    one: str
    many: str
    links: str
    argument: str
    post: Body | None
    put: Body | None
    shown: Mapping[str, Callable[[Mapping[str, Any]], Any]]
    filters: Mapping[str, str] = field(default_factory=dict)
    sorts: Mapping[str, str] = field(default_factory=dict)
    tagged: bool = False
