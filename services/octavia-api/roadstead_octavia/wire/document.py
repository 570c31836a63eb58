"""The document of a request before anything in it is checked: JSON, XML or a form, as plain values.

XML elements and form fields become what the same request would have been in JSON, so that one reader serves all three.
"""

import json
from typing import Any
from urllib.parse import parse_qsl
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from roadstead_octavia.errors import refuse
from roadstead_octavia.wire.describe import Body, Field, Kind

JSON_TYPES = frozenset(("application/json", "text/javascript", "application/javascript"))
XML_TYPES = frozenset(("text/xml",))
FORM_TYPE = "application/x-www-form-urlencoded"
MAXIMUM_DEPTH = 100
MAXIMUM_FORM_FIELDS = 1000


def document(root: Body, argument: str, body: bytes, content_type: str | None, method: str) -> Any:
    """The document as plain values, None for `null`; ApiError 400 or 415.

    A POST of no type is looked at as a form first, which tells a client that forgot the type which argument is unknown.
    """
    if not body:
        raise refuse("MissingArgument", name=argument)
    sent_type = (content_type or "").partition(";")[0]
    known_type = sent_type.strip().lower()
    if known_type in JSON_TYPES:
        return _json(body)
    if known_type in XML_TYPES:
        return _xml(root, body)
    if known_type == FORM_TYPE:
        return _form(root, argument, body)
    if not known_type and method == "POST":
        _form(root, argument, body)
    raise refuse("UnknownMimetype", type=sent_type)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise refuse("NotJson") from None


class _NoDocumentType(TreeBuilder):
    """A document type can define entities that grow without bound; no client sends one."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ParseError(f"document type {name}")


def _xml(root: Body, body: bytes) -> Any:
    parser = XMLParser(target=_NoDocumentType())  # noqa: S314 - document types are refused
    try:
        parser.feed(body)
        top = parser.close()
    except (ParseError, ValueError, LookupError):
        raise refuse("NotXml") from None
    return _element(Field(Kind.OBJECT, of=root), top, 0)


def _element(field: Field, element: Element, depth: int) -> Any:
    """The element as JSON would have it; unknown elements are left out."""
    if element.get("nil"):
        return None
    if depth > MAXIMUM_DEPTH:
        raise refuse("NotXml")
    of = field.of
    if field.kind is Kind.OBJECT and isinstance(of, Body):
        found = {name: element.find(name) for name in of.fields}
        return {
            name: _element(of.fields[name], child, depth + 1)
            for name, child in found.items()
            if child is not None
        }
    if field.kind is Kind.ARRAY and isinstance(of, Field):
        return [_element(of, item, depth + 1) for item in element.findall("item")]
    if field.kind is Kind.MAPPING:
        return {item.findtext("key", ""): item.findtext("value") for item in element.findall("item")}
    text = element.text or ""
    if field.kind is Kind.BOOLEAN and text:
        return text.lower() != "false"
    return text


def _form(root: Body, argument: str, body: bytes) -> Any:
    """`ARGUMENT.ROOT.NAME=VALUE` for plain attributes; everything else is an unknown argument."""
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAXIMUM_FORM_FIELDS)
    except ValueError:
        raise refuse("UnknownArgument", name="form") from None
    result: dict[str, Any] = {}
    unknown = set()
    for path, value in pairs:
        if not _put(root, result, path, argument, value):
            unknown.add(path)
    if unknown:
        raise refuse("UnknownArgument", name=", ".join(sorted(unknown)))
    return result


def _put(root: Body, result: dict[str, Any], path: str, argument: str, value: str) -> bool:
    """Set the attribute that the path names; False when there is none."""
    first, *names = path.split(".")
    if first != argument or not names:
        return False
    body, place = root, result
    for name in names[:-1]:
        field = body.fields.get(name)
        if field is None or not isinstance(field.of, Body) or field.kind is not Kind.OBJECT:
            return False
        body, place = field.of, place.setdefault(name, {})
    last = body.fields.get(names[-1])
    if last is None or last.kind in (Kind.OBJECT, Kind.MAPPING):
        return False
    if last.kind is Kind.ARRAY:
        place.setdefault(names[-1], []).append(value)
    else:
        place[names[-1]] = value
    return True
