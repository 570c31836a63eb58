"""Answers in XML, for requests whose path ends in `.xml`.

The form: one `result` element, an element for each attribute in the answer's order, `item` for each element of a list, `nil="true"` for
null, and `item` with `key` and `value` for each pair of a mapping.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

ROOT = "result"
# Attributes that are mappings with free keys, where other objects have an element for each attribute.
MAPPINGS = frozenset(("insert_headers",))


def dumps(body: Mapping[str, Any]) -> bytes:
    """XML of an answer, in ASCII with character references."""
    return tostring(_element(ROOT, body))


def fault(code: str, text: str) -> bytes:
    """XML of a fault."""
    error = Element("error")
    SubElement(error, "faultcode").text = code
    SubElement(error, "faultstring").text = text
    SubElement(error, "debuginfo")
    return tostring(error)


def _element(name: str, value: Any) -> Element:
    element = Element(name)
    if value is None:
        element.set("nil", "true")
    elif isinstance(value, Mapping):
        element.extend(_pairs(value) if name in MAPPINGS else (_element(*pair) for pair in value.items()))
    elif isinstance(value, list):
        element.extend(_element("item", item) for item in value)
    else:
        element.text = _text(value)
    return element


def _pairs(mapping: Mapping[str, Any]) -> list[Element]:
    items = []
    for key, value in mapping.items():
        item = Element("item")
        item.append(_element("key", key))
        item.append(_element("value", value))
        items.append(item)
    return items


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return str(value)
