"""A resource as data: what drives reading, writing, filters, sorting, OpenAPI and tests.

A `Field` says how a value is read (`kind` with its bounds), where it is stored (`column`), and what null means.  A `Resource` has
one `Body` for each form it comes in and the names of its list.  The values are in `resources/<resource>/wire.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from roadstead_octavia.options import Options


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


class Keep:
    """The type of `KEEP`."""

    def __repr__(self) -> str:
        return "KEEP"


class NoDefault:
    """The type of `NO_DEFAULT`."""


NO_DEFAULT: Final = NoDefault()
KEEP: Final = Keep()  # null counts as not sent: POST takes the default, PUT changes nothing
NO_COLUMN: Final = ""  # the attribute is no column: a relation, or rows of another table


@dataclass(frozen=True)
class Field:
    """One attribute.

    column: where it is stored: None for a column of the same name, `vip.x` for column x of the load balancer's VIP, NO_COLUMN for none.
    alias_of: another name for the same attribute (tenant_id).  default: what it is when it is not sent; NO_DEFAULT: then it is absent.
    on_null: what null means: a value, a function of the options, or KEEP; None leaves null to the operation.
    nullable: whether null is let in at all.  only_empty: accepted as long as there is nothing in it, otherwise unknown.
    unique: of a list: what is there twice counts once.
    """

    kind: Kind
    required: bool = False
    default: Any = NO_DEFAULT
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
    nullable: bool = True
    only_empty: bool = False
    unique: bool = False

    def null(self, options: Options) -> Any:
        """What null means under these options; KEEP when it counts as not sent."""
        return self.on_null(options) if callable(self.on_null) else self.on_null


@dataclass(frozen=True)
class Body:
    """An object on the wire.  type_name: its name in the OpenAPI document.  The order of the fields is the order of the checks."""

    type_name: str
    fields: Mapping[str, Field]


def named(*columns: str, **renamed: str) -> Mapping[str, str]:
    """Names that lists are filtered and sorted by -> columns: those that are called alike, and those that are not."""
    return {**{column: column for column in columns}, **renamed}


@dataclass(frozen=True)
class Resource:
    """One resource.

    noun: in texts (`Load Balancer`).  table.  rule: prefix of its policy rules (`loadbalancer`).  one, many, links: root keys.
    argument: the name of the body argument in texts.  post, put: None where there is no such call.
    shown: wire name -> function of a row (with its relations) giving the value, in order of the answer.
    optional: attributes of the answer that are left out when they are None.
    full: what of the answer differs in the answer to a graph creation, by wire name (None: left out there).
    filters: wire or model name -> column (`vip.ip_address`: a column of the VIP).  sorts: likewise.
    booleans: columns whose filter is a boolean.
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
    booleans: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    full: Mapping[str, Callable[[Mapping[str, Any]], Any] | None] = field(default_factory=dict)
