"""Documents, over both stores: made, changed and removed by one writer after the other."""

import asyncio
from datetime import datetime
from typing import Any

from roadstead.store.api import Store

from .conftest import HandClock


async def test_a_document_is_made_changed_and_removed(store: Store) -> None:
    assert await store.document("d") is None
    assert await store.change_document("d", lambda d, _n: ({"n": 1}, d)) is None
    assert await store.change_document("d", lambda d, _n: ({"n": 2}, d)) == {"n": 1}
    assert await store.document("d") == {"n": 2}
    assert await store.document("other") is None
    assert await store.change_document("d", lambda d, _n: (None, "gone")) == "gone"
    assert await store.document("d") is None
    assert await store.change_document("d", lambda d, _n: (None, d)) is None


async def test_a_document_that_was_handed_out_is_a_copy(store: Store) -> None:
    await store.change_document("d", lambda _d, _n: ({"list": [1]}, None))
    got: Any = await store.document("d")
    got["list"].append(2)

    def impure(document: Any, _now: datetime) -> Any:
        document["list"].append(3)
        return document, None

    await store.change_document("d", impure)
    assert await store.document("d") == {"list": [1]}


async def test_thirty_writers_of_one_document_lose_no_update(
    store: Store, replica: Store, clock: HandClock
) -> None:
    def count(document: Any, now: datetime) -> Any:
        assert now == clock.moment
        number = (document or {"n": 0})["n"] + 1
        return {"n": number}, number

    results = await asyncio.gather(
        *(s.change_document("d", count) for _ in range(15) for s in (store, replica))
    )
    assert sorted(results) == list(range(1, 31))
    assert await store.document("d") == {"n": 30}
