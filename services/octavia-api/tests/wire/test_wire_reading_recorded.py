"""Bodies of the recorded exchanges: those that the original refused while reading are refused with its status and text."""

import json
from collections import Counter
from typing import Literal

import pytest

from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.resources.member.wire import read_batch
from roadstead_octavia.wire.columns import to_row
from roadstead_octavia.wire.read import read

from .recorded import Exchange, exchanges, needs_recordings, words

pytestmark = needs_recordings
OPTIONS = Options()
# What the original says while it reads.
READING = ("Invalid input for field", "Unknown a", "Unknown mimetype", "Missing argument", "Request is not")
WITHOUT_BODY = ("failover", "config")


def bodies() -> list[Exchange]:
    return [
        exchange
        for exchange in exchanges()
        if exchange.method in ("POST", "PUT")
        and exchange.segments[-1] not in WITHOUT_BODY
        and (exchange.resource.post if exchange.method == "POST" else exchange.resource.put) is not None
    ]


def outcome(exchange: Exchange) -> tuple[int, str]:
    """Status and text of the refusal, or (0, "")."""
    method: Literal["POST", "PUT"] = "POST" if exchange.method == "POST" else "PUT"
    try:
        if method == "PUT" and exchange.segments[-1] == "members":
            read_batch(exchange.body, exchange.content_type, OPTIONS)
        else:
            read(exchange.resource, exchange.body, exchange.content_type, method=method, options=OPTIONS)
    except ApiError as refusal:
        return refusal.status, refusal.text
    return 0, ""


def recorded_text(exchange: Exchange) -> str:
    try:
        return str(json.loads(exchange.answer)["faultstring"])
    except (ValueError, KeyError, TypeError):
        return exchange.answer


def test_every_recorded_refusal_of_reading_is_given_with_its_text() -> None:
    counts: Counter[int] = Counter()
    for exchange in bodies():
        text = recorded_text(exchange)
        if exchange.status in (400, 415) and text.startswith(READING):
            status, ours = outcome(exchange)
            assert (status, words(ours)) == (exchange.status, words(text)), exchange.where
            counts[status] += 1
    assert counts[400] > 100
    assert counts[415] >= 5


def test_nothing_that_the_original_reads_is_refused() -> None:
    accepted = 0
    for exchange in bodies():
        if exchange.kind != "original-500" and not recorded_text(exchange).startswith(READING):
            assert outcome(exchange) == (0, ""), exchange.where
            accepted += 1
    assert accepted > 3000


@pytest.mark.parametrize("document", ["{}", "null", "[]", '"x"'])
def test_bodies_that_the_original_fails_at_are_400(document: str) -> None:
    found = [e for e in bodies() if e.kind == "original-500" and e.status == 500]
    assert found
    for exchange in found:
        status, _ = outcome(exchange)
        assert status in (0, 400), exchange.where
    roots = {e.resource.one: e.resource for e in found}
    for resource in roots.values():
        if resource.post is not None:
            with pytest.raises(ApiError) as caught:
                read(resource, document.encode(), "application/json", method="POST", options=OPTIONS)
            assert caught.value.status == 400


def test_values_reach_the_columns_that_the_original_wrote() -> None:
    compared = 0
    for exchange in bodies():
        if exchange.method != "PUT" or exchange.status != 200 or exchange.segments[-1] == "members":
            continue
        resource, identifier = exchange.resource, exchange.segments[-1]
        row = next((r for r in exchange.after.get(resource.table, ()) if r.get("id") == identifier), None)
        if row is None:
            continue
        body = read(resource, exchange.body, exchange.content_type, method="PUT", options=OPTIONS)
        # What null means may be an option, which some exchanges change.
        for name, value in to_row(resource, {k: v for k, v in body.items() if v is not None}).items():
            if name != "position":
                assert row[name] == value, exchange.where
                compared += 1
    assert compared > 150
