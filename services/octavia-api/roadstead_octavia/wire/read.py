"""Reading a request's body by its description: every attribute checked in the order of the description, the first fault refuses.

`read` gives the root object by wire names: absent attributes stay absent, defaults are filled in, the older name of an attribute is
folded into the newer one.  What null means on PUT is a step of its own (`put_values`), so that an operation can see what was sent.
All refusals are 4xx; those that differ from the original's answers are the ones that `DEPARTURES` names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from roadstead_octavia.errors import ApiError, invalid, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.wire.check import NO_NULL, Unfit, Wrong, checked, converted
from roadstead_octavia.wire.describe import KEEP, NO_DEFAULT, Body, Field, Kind, Resource
from roadstead_octavia.wire.document import document

Method = Literal["POST", "PUT"]
Values = Mapping[str, Any]

NOT_AN_OBJECT = "Value should be an object"
MISSING = "Mandatory field missing."

# Where reading answers otherwise than the original: the lines of docs/octavia-departures.md.
DEPARTURES = {
    "read-no-root": "a body of `{}` or `null`, or a null root object, is 400 `No NAME object supplied.`",
    "read-objects": "an array, text or number where an object is expected is 400 `Value should be an object`",
    "read-null-refused": "null for what cannot be null, and null in a list or a mapping, is 400 `Value should not be null`",
    "read-null-is-absent": "null for what has a default (flavor, zone, provider, limit, weight, authentication) counts as not sent on creation",
    "read-children": "pools, members, monitors, policies and rules in the body of a single creation are 400 `Unknown attribute`, unless empty",
    "read-integers": "fractions and booleans for an integer are 400 `invalid literal`, as lists and objects are",
    "read-batch": "a batch without `members`, or with null, is 400 that names it",
    "read-sizes": "an integer beyond 32 bits, and a URL, path or list of codes longer than its column, are 400",
    "read-storable": "NUL and unpaired surrogates in texts are 400",
    "read-texts": "a number for an address or a CIDR is 400 with the reason of that kind",
    "read-duplicates": "a tag, CIDR, certificate reference or security group that is sent twice counts once",
    "read-encodings": "a body that is no UTF-8, nested too deeply, no XML, or XML with a document type, is 400 `not in valid ... format`",
    "read-forms": "of form bodies plain attributes and lists of texts are read; deeper names are unknown arguments",
}


class NoBody(Mapping[str, Any]):
    """What stands for a body that is not there: looking into it raises the refusal."""

    def __init__(self, refusal: ApiError) -> None:
        self._refusal = refusal

    def __getitem__(self, name: str) -> Any:
        raise self._refusal

    def __iter__(self) -> Iterator[str]:
        raise self._refusal

    def __len__(self) -> int:
        raise self._refusal


def read(
    resource: Resource, body: bytes, content_type: str | None, *, method: Method, options: Options
) -> Values:
    """The root object of a request's body by wire names; ApiError (4xx).

    A PUT without its root object is refused when the operation first looks at the body, so that an object that does not exist is 404.
    """
    form = resource.post if method == "POST" else resource.put
    assert form is not None, f"{resource.noun} has no {method}"
    root = Body(resource.one, {resource.one: Field(Kind.OBJECT, of=form)})
    values = read_document(root, resource.argument, body, content_type, method=method, options=options)
    found: dict[str, Any] | None = values.get(resource.one)
    if found is not None:
        return found
    refusal = invalid(f"No {resource.one} object supplied.")
    if method == "PUT":
        return NoBody(refusal)
    raise refusal


def read_document(
    root: Body, argument: str, body: bytes, content_type: str | None, *, method: Method, options: Options
) -> dict[str, Any]:
    """A whole document by its own description (the member batch has no root object); ApiError (4xx)."""
    sent = document(root, argument, body, content_type, method)
    return _Reading(argument, sent, method, options).document(root) if sent is not None else {}


def put_values(resource: Resource, body: Values, options: Options) -> dict[str, Any]:
    """The values to set by a PUT whose body was read: null replaced by what it means for each attribute."""
    assert resource.put is not None
    values: dict[str, Any] = {}
    for name, value in body.items():
        if value is None:
            value = resource.put.fields[name].null(options)
            if value is KEEP:
                continue
        values[name] = value
    return values


@dataclass(frozen=True)
class _Reading:
    """One document on its way through the description.  argument: what texts call it.  sent: the document."""

    argument: str
    sent: Any
    method: Method
    options: Options

    def document(self, root: Body) -> dict[str, Any]:
        try:
            if not isinstance(self.sent, dict):
                raise _wrong(self.argument, self.sent, NOT_AN_OBJECT)
            return self.attributes(root, self.sent, (self.argument,))
        except Unfit as unfit:
            raise _wrong(self.argument, self.sent, str(unfit)) from None

    def attributes(self, body: Body, sent: dict[str, Any], where: tuple[str, ...]) -> dict[str, Any]:
        unknown = [
            name
            for name, value in sent.items()
            if (field := body.fields.get(name)) is None or (field.only_empty and value)
        ]
        if unknown:
            row = "UnknownAttribute" if len(unknown) == 1 else "UnknownAttributes"
            raise refuse(row, where=".".join(where), names=printable(", ".join(unknown)))
        values: dict[str, Any] = {}
        for name, field in body.fields.items():
            target = field.alias_of or name
            value = KEEP if name not in sent else self.attribute(field, name, sent[name], where)
            if value is not KEEP:
                values[target] = value
            elif field.required and name not in sent:
                raise _wrong(name, None, MISSING)
            elif field.default is not NO_DEFAULT:
                values[target] = list(field.default) if isinstance(field.default, list) else field.default
        return values

    def attribute(self, field: Field, name: str, value: Any, where: tuple[str, ...]) -> Any:
        """The value of one attribute; KEEP when it counts as not sent."""
        if field.only_empty:
            return KEEP
        if value is None:
            if not field.nullable:
                raise _wrong(name, None, NO_NULL)
            return field.null(self.options) if self.method == "POST" else None
        shown = field.alias_of or name
        value = self.value(field, name, value, (*where, name))
        try:
            return self.fitting(field, value)
        except Wrong as wrong:
            raise _wrong(shown, value, str(wrong)) from None

    def value(self, field: Field, name: str, value: Any, where: tuple[str, ...]) -> Any:
        """The value in the field's type, with the objects in it read; Unfit, ApiError."""
        of = field.of
        if field.kind is Kind.OBJECT:
            assert isinstance(of, Body)
            if not isinstance(value, dict):
                raise _wrong(name, value, NOT_AN_OBJECT)
            return self.attributes(of, value, where)
        if field.kind is Kind.ARRAY:
            assert isinstance(of, Field)
            if not isinstance(value, list):
                raise Unfit(f"Value not a valid list: {value}")
            if None in value:
                raise _wrong(name, value, NO_NULL)
            return [self.value(of, name, item, where) for item in value]
        if field.kind is Kind.MAPPING:
            if not isinstance(value, dict):
                raise Unfit(f"Value not a valid dict: {value}")
            if None in value.values():
                raise _wrong(name, value, NO_NULL)
            return value
        return converted(field, value)

    def fitting(self, field: Field, value: Any) -> Any:
        """The value as it is stored; Wrong."""
        if field.kind is Kind.ARRAY and isinstance(field.of, Field):
            items = [self.fitting(field.of, item) for item in value]
            return list(dict.fromkeys(items)) if field.unique else items
        if field.kind is Kind.MAPPING and isinstance(field.of, Field):
            key = Field(Kind.STRING)
            return {checked(key, name): checked(field.of, item) for name, item in value.items()}
        return checked(field, value)


def printable(text: str) -> str:
    """The text with what no encoding holds written as escapes, so that it can be sent back."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _wrong(name: str, value: Any, reason: str) -> ApiError:
    return refuse("InvalidInput", field=name, value=printable(f"{value}"), reason=printable(reason))
