"""Departures on the way to an operation: paths and methods that the original takes for something else (B1, B3, B4), and links (OC-04)."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .departures import Line, departure

PAGING = frozenset(("limit", "marker", "page_reverse", "sort", "sort_key", "sort_dir"))
BEHIND = re.compile(r"/v2(\.0)?(/lbaas|/octavia)?/(?!lbaas/|octavia/)[a-z0-9]+/[^/?]+/[^/?]+")
COLLECTION = re.compile(r"/v2(\.0)?(/lbaas|/octavia)?/(?!lbaas|octavia)[a-z0-9]+/?")
NOT_FOUND = {"code": 404, "title": "Not Found", "description": ""}


@departure("http-path-is-no-field")
def _a_segment_behind_an_object_is_not_a_field(line: Line) -> bool:
    """B1: recorded is 200 with an object that has no attributes left."""
    expected, request = line["expected"], line["request"]
    body = expected.get("body")
    empty = isinstance(body, dict) and len(body) == 1 and next(iter(body.values())) == {}
    if request["method"] != "GET" or expected["status"] != 200 or not empty or "?" in request["path"]:
        return False
    if not BEHIND.fullmatch(request["path"]):
        return False
    expected.update(status=404, body=dict(NOT_FOUND))
    return True


@departure("http-collection-methods")
def _a_collection_has_methods_of_its_own(line: Line) -> bool:
    """B3: recorded is 400 about an argument of the handler that the method would have called, or about a body for it."""
    expected, method = line["expected"], line["request"]["method"]
    text = (
        (expected.get("body") or {}).get("faultstring", "") if isinstance(expected.get("body"), dict) else ""
    )
    if method not in ("DELETE", "PUT") or expected["status"] != 400:
        return False
    on_collection = COLLECTION.fullmatch(line["request"]["path"]) and text.startswith("Invalid input for")
    if not on_collection and not re.fullmatch(r'Missing argument: "[a-z_]*(id|name)"', text):
        return False
    expected.update(status=405, body={"code": 405, "title": "Method Not Allowed", "description": ""})
    allow = line["actual"]["headers"].get("allow")
    if allow is not None and method not in allow:
        expected["headers"]["allow"] = allow
    return True


@departure("http-titles")
def _a_missing_row_in_a_path_is_not_found(line: Line) -> bool:
    """B4: recorded is 404 with the title of 400."""
    body = line["expected"].get("body")
    if not isinstance(body, dict) or (body.get("code"), body.get("title")) != (404, "Bad Request"):
        return False
    body["title"] = "Not Found"
    return True


@departure("http-links-keep-filters")
def _links_keep_what_the_list_was_narrowed_by(line: Line) -> bool:
    """OC-04: recorded links forget filters, tags and fields."""
    kept = [
        (name, value)
        for name, value in parse_qsl(urlsplit(line["request"]["path"]).query, keep_blank_values=True)
        if name not in PAGING
    ]
    body, ours = line["expected"].get("body"), line["actual"].get("body")
    if not kept or not isinstance(body, dict) or not isinstance(ours, dict):
        return False
    touched = False
    for name, links in body.items():
        if name.endswith("_links") and isinstance(links, list) and len(links) == len(ours.get(name) or ()):
            for link, own in zip(links, ours[name], strict=True):
                touched = _same_but_for(kept, link, own) or touched
    return touched


def _same_but_for(kept: list[tuple[str, str]], link: dict[str, Any], own: dict[str, Any]) -> bool:
    """Take our link for the recorded one when it only has what was kept on top."""
    recorded, ours = (urlsplit(one["href"]) for one in (link, own))
    more = [pair for pair in parse_qsl(ours.query, keep_blank_values=True) if pair[0] not in PAGING]
    plain = [pair for pair in parse_qsl(ours.query, keep_blank_values=True) if pair[0] in PAGING]
    if (recorded.path, parse_qsl(recorded.query), kept) != (ours.path, plain, more) or link["rel"] != own[
        "rel"
    ]:
        return False
    link["href"] = own["href"]
    return True
