"""URLs as far as the API looks at them: what requests are redirected to, and paths that monitors ask for.

Scheme and authority are held to RFC 3986; of the path only that it has no white space and no brackets, as clients send characters there that the RFC
wants encoded.
"""

import ipaddress
import re

_REFERENCE = re.compile(r"(?:([^:/?#]+):)?(?://([^\\/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f]")
_PERCENT = r"%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9\-._~"
_DELIMITERS = r"!$&'()*+,;="
_USER = rf"(?:[{_UNRESERVED}{_DELIMITERS}:]|{_PERCENT})+"
_NAME = rf"(?:[{_UNRESERVED}{_DELIMITERS}]|{_PERCENT})*"
_BRACKETS = re.compile(r"[\[\]]")
_AUTHORITY = re.compile(rf"(?:{_USER}@)?(?:\[([^\]]*)\]|{_NAME}):?[0-9]{{0,5}}\Z")
_ZONE = re.compile(rf"(?:[{_UNRESERVED}]|{_PERCENT})+\Z")
_FUTURE = re.compile(rf"v[0-9A-Fa-f]+\.[{_UNRESERVED}{_DELIMITERS}:]+\Z")


def is_url(text: str) -> bool:
    """Whether it is an http or https URL with a host."""
    if _CONTROL.search(text):
        return False
    scheme, authority, path = _parts(text)
    if scheme not in ("http", "https") or not authority or _BRACKETS.search(path):
        return False
    return _is_authority(authority)


def is_path(text: str) -> bool:
    """Whether it is an absolute path, with a query or not, and nothing before it."""
    scheme, authority, path = _parts(text)
    if scheme or (authority and _is_authority(authority)) or not path.startswith("/"):
        return False
    return not _BRACKETS.search(path) and not re.search(r"\s", text)


def _parts(text: str) -> tuple[str | None, str | None, str]:
    match = _REFERENCE.match(text)
    assert match is not None  # every text matches
    return match[1], match[2], match[3]


def _is_authority(text: str) -> bool:
    match = _AUTHORITY.match(text)
    return match is not None and (match[1] is None or _is_literal(match[1]))


def _is_literal(text: str) -> bool:
    """Whether it may stand in brackets: an IPv6 address, with a zone or not, or a form to come."""
    if _FUTURE.match(text):
        return True
    address, percent, zone = text.partition("%25")
    if percent and not _ZONE.match(zone):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return "%" not in address
