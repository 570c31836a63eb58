"""URLs as RFC 3986 has them: where requests are redirected to, and paths that monitors ask for."""

import re

_REFERENCE = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f]")
_PERCENT = r"%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9\-._~"
_DELIMITERS = r"!$&'()*+,;="
_PATH = re.compile(rf"(?:[{_UNRESERVED}{_DELIMITERS}:@/]|{_PERCENT})*\Z")
_USER = rf"(?:[{_UNRESERVED}{_DELIMITERS}:]|{_PERCENT})*"
_NAME = rf"(?:[{_UNRESERVED}{_DELIMITERS}]|{_PERCENT})*"
_AUTHORITY = re.compile(rf"(?:{_USER}@)?(\[[0-9A-Fa-f:.]+\]|{_NAME})(?::([0-9]{{0,5}}))?\Z")


def is_url(text: str) -> bool:
    """Whether it is an http or https URL with a host."""
    if _CONTROL.search(text):
        return False
    scheme, authority, path = _parts(text)
    if scheme is None or scheme.lower() not in ("http", "https") or not authority:
        return False
    match = _AUTHORITY.match(authority)
    return bool(match and match[1]) and bool(_PATH.match(path))


def is_path(text: str) -> bool:
    """Whether it is an absolute path, with a query or not, and nothing before it."""
    if re.search(r"\s", text):
        return False
    scheme, authority, path = _parts(text)
    return not scheme and not authority and path.startswith("/") and bool(_PATH.match(path))


def _parts(text: str) -> tuple[str | None, str | None, str]:
    match = _REFERENCE.match(text)
    assert match is not None  # every text matches
    return match[1], match[2], match[3]
