"""Whatever is sent, reading gives a body or a refusal with a status of 4xx and a text that can be sent."""

import json
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.resources.member.wire import read_batch
from roadstead_octavia.wire.columns import new_row, to_row
from roadstead_octavia.wire.describe import Body, Field, Kind
from roadstead_octavia.wire.read import NoBody, put_values, read
from roadstead_octavia.wire.url import is_path, is_url

from .recorded import RESOURCES

OPTIONS = Options()
TYPES = (
    "application/json",
    "text/xml",
    "application/x-www-form-urlencoded",
    "",
    None,
    "a/b",
    "multipart/form-data",
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(("HTTP", "6a0a707c-45ef-4758-b533-e55adddba8ce", "192.0.2.1", "10.0.0.0/8", "/x", "http://a/", "200", "\ud800", "\0"))
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(("POST", "PUT"))
NAMES = sorted(name for name, resource in RESOURCES.items() if resource.put is not None)


def values_of(field: Field, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that often fit the field."""
    if field.kind is Kind.OBJECT and isinstance(field.of, Body):
        return bodies_of(field.of, depth + 1) | SCALARS
    if field.kind is Kind.ARRAY and isinstance(field.of, Field):
        return st.lists(values_of(field.of, depth), max_size=2) | SCALARS
    if field.kind is Kind.MAPPING:
        return st.dictionaries(st.text(max_size=5), SCALARS, max_size=2) | SCALARS
    fitting = st.sampled_from(field.choices) if field.choices else st.nothing()
    return fitting | SCALARS


def bodies_of(body: Body, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    if depth > 4:
        return st.just({})
    fields = {name: _later(field, depth) for name, field in body.fields.items()}
    required = {name: strategy for name, strategy in fields.items() if body.fields[name].required}
    return st.fixed_dictionaries(required, optional={n: s for n, s in fields.items() if n not in required})


def _later(field: Field, depth: int) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: values_of(field, depth))


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, Any]:
    name, method = draw(st.sampled_from(NAMES)), draw(st.sampled_from(("POST", "PUT")))
    resource = RESOURCES[name]
    body = resource.put if method == "PUT" or resource.post is None else resource.post
    assert body is not None
    return name, "POST" if body is resource.post else "PUT", {resource.one: draw(bodies_of(body))}


def refused(refusal: ApiError) -> None:
    assert refusal.status in (400, 415)
    refusal.text.encode("utf-8")


def attempt(name: str, method: str, body: bytes, content_type: str | None) -> dict[str, Any] | None:
    """Read; the values, or None after checking the refusal."""
    verb: Literal["POST", "PUT"] = "PUT" if method == "PUT" or RESOURCES[name].post is None else "POST"
    try:
        found = read(RESOURCES[name], body, content_type, method=verb, options=OPTIONS)
        return None if isinstance(found, NoBody) else dict(found)
    except ApiError as refusal:
        refused(refusal)
        return None


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), METHODS, st.binary(max_size=60), st.sampled_from(TYPES))
def test_any_bytes_of_any_type_are_refused_or_read(
    name: str, method: str, body: bytes, content_type: str | None
) -> None:
    attempt(name, method, body, content_type)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), METHODS, JSON)
def test_any_document_is_refused_or_read(name: str, method: str, document: Any) -> None:
    attempt(name, method, json.dumps(document).encode(), "application/json")
    attempt(name, method, json.dumps({RESOURCES[name].one: document}).encode(), "application/json")
    try:
        read_batch(json.dumps({"members": document}).encode(), "application/json", OPTIONS)
    except ApiError as refusal:
        refused(refusal)


@settings(max_examples=200, deadline=None)
@given(requests())
def test_what_was_read_can_be_stored_and_is_read_the_same_again(request: tuple[str, str, Any]) -> None:
    name, method, document = request
    values = attempt(name, method, json.dumps(document).encode(), "application/json")
    if values is None:
        return
    json.dumps(values, ensure_ascii=False).encode("utf-8")
    resource = RESOURCES[name]
    again = attempt(name, method, json.dumps({resource.one: values}).encode(), "application/json")
    if method == "PUT":
        assert again == values
        to_row(resource, put_values(resource, values, OPTIONS))
    else:
        assert resource.post is not None
        assert again is not None
        assert {k: v for k, v in again.items() if v is not None} == {
            k: v for k, v in values.items() if v is not None
        }
        assert all(
            isinstance(v, (str, int, float, dict, type(None)))
            for v in new_row(resource.post, values).values()
        )


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=20))
def test_any_text_is_a_url_or_not(text: str) -> None:
    for candidate in (text, f"http://{text}", f"http://h/{text}", f"/{text}"):
        if is_url(candidate):
            assert candidate.startswith(("http://", "https://"))
        if is_path(candidate):
            assert candidate.startswith("/")
            assert not any(character.isspace() for character in candidate)
