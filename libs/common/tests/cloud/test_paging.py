"""The pager against lists cut in every style, with rows that come, go and repeat."""

from typing import Any

import pytest

from roadstead.cloud.paging import BrokenList, MarkerGone, read_page, takes_limit, whole_list
from roadstead.cloud.port import Call, CloudError, Verdict

SIZE = 2


class Shelf:
    """A service that holds rows and pages them in one style."""

    def __init__(self, style: str, count: int) -> None:
        self.style = style
        self.rows = [{"id": f"row-{n}"} for n in range(count)]
        self.asked: list[dict[str, str]] = []

    async def fetch(self, query: Any) -> Any:
        asked = dict(query)
        self.asked.append(asked)
        start = 0
        if "marker" in asked:
            found = [i for i, row in enumerate(self.rows) if row["id"] == asked["marker"]]
            if not found:
                raise MarkerGone
            start = found[0] + 1
        page = self.rows[start : start + SIZE]
        body: dict[str, Any] = {"things": page}
        if len(page) == SIZE and self.style != "marker":
            href = f"https://inside.invalid:1/v2/things?limit={SIZE}&name=a%20b&marker={page[-1]['id']}"
            if self.style == "links":
                body["things_links"] = [{"rel": "previous", "href": "x"}, {"rel": "next", "href": href}]
            elif self.style == "odd links":
                body["thing_links"] = [{"rel": "next", "href": href}]
            elif self.style == "keystone":
                body["links"] = {"next": href, "self": "x", "previous": None}
            else:
                body["next"] = href
        return body

    async def all(self, **bounds: Any) -> Any:
        given = {"limit": SIZE, "pages_max": 1100, "restarts": 3, **bounds}
        return await whole_list(self.fetch, "things", (("name", "a b"),), **given)


STYLES = ["links", "odd links", "keystone", "next", "marker"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 101, 2000, 2001])
async def test_oc_34_every_row_once_whatever_the_style(style: Any, count: Any) -> None:
    shelf = Shelf(style, count)
    assert await shelf.all() == [{"id": f"row-{n}"} for n in range(count)]
    assert all(asked["name"] == "a b" for asked in shelf.asked), "a page lost the filter"


@pytest.mark.parametrize("style", STYLES)
async def test_oc_34_a_vanished_marker_starts_the_list_again(
    style: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(style, 5)
    plain = shelf.fetch

    async def losing(query: Any) -> Any:
        if len(shelf.asked) == 1:
            shelf.rows = [row for row in shelf.rows if row["id"] != "row-1"]
        return await plain(query)

    monkeypatch.setattr(shelf, "fetch", losing)
    assert [row["id"] for row in await shelf.all()] == ["row-0", "row-2", "row-3", "row-4"]


async def test_markers_that_vanish_for_ever_end_in_an_error() -> None:
    async def fetch(query: Any) -> Any:
        if any(key == "marker" for key, _ in query):
            raise MarkerGone
        return {"things": [{"id": "a"}, {"id": "b"}]}

    with pytest.raises(BrokenList, match="too fast"):
        await whole_list(fetch, "things", (), limit=2, pages_max=10, restarts=3)


async def test_oc_34_a_repeated_next_page_ends_in_an_error() -> None:
    async def fetch(query: Any) -> Any:
        return {"things": [{"id": "a"}], "things_links": [{"rel": "next", "href": "?marker=a"}]}

    with pytest.raises(BrokenList, match="circle"):
        await whole_list(fetch, "things", (), limit=None, pages_max=10, restarts=3)


async def test_a_list_without_end_is_bounded() -> None:
    count = 0

    async def fetch(query: Any) -> Any:
        nonlocal count
        count += 1
        return {"things": [{"id": str(count)}], "next": f"?marker={count}"}

    with pytest.raises(BrokenList, match="more than 7 pages"):
        await whole_list(fetch, "things", (), limit=None, pages_max=7, restarts=3)
    assert count == 7


async def test_a_row_that_moved_between_pages_counts_once_as_read_last() -> None:
    pages = iter(
        [
            {"things": [{"id": "a", "v": 1}, {"id": "b"}], "next": "?marker=b"},
            {"things": [{"id": "a", "v": 2}]},
        ]
    )

    async def fetch(query: Any) -> Any:
        return next(pages)

    found = await whole_list(fetch, "things", (), limit=None, pages_max=9, restarts=0)
    assert found == [{"id": "a", "v": 2}, {"id": "b"}]


async def test_more_rows_than_asked_for_means_that_the_limit_was_ignored() -> None:
    async def fetch(query: Any) -> Any:
        return {"things": [{"id": str(n)} for n in range(5)]}

    assert len(await whole_list(fetch, "things", (), limit=2, pages_max=9, restarts=0)) == 5


@pytest.mark.parametrize("body", [{}, {"things": None}, {"things": {}}, [], None, {"other": []}])
def test_a_body_without_the_list_is_no_empty_list(body: Any) -> None:
    with pytest.raises(BrokenList):
        read_page(body, "things", (), None)


def test_a_list_that_the_service_cut_is_an_error() -> None:
    with pytest.raises(BrokenList, match="cut"):
        read_page({"users": [], "truncated": True}, "users", (), None)


def test_keypairs_come_out_of_their_wrappers() -> None:
    page = read_page({"keypairs": [{"keypair": {"name": "a"}}]}, "keypairs", (), None)
    assert page.rows == [{"name": "a"}]


@pytest.mark.parametrize(
    ("service", "verb", "expected"),
    [
        ("compute", "server.detail", True),
        ("compute", "servergroup.list", False),
        ("compute", "attachment.list", False),
        ("identity", "project.list", False),
        ("network", "port.list", True),
        ("load-balancer", "pool.list", True),
        ("load-balancer", "versions", False),
        ("image", "image.list", True),
    ],
)
def test_only_lists_that_know_a_limit_are_given_one(service: Any, verb: Any, expected: Any) -> None:
    assert takes_limit(service, verb) is expected


async def test_the_engine_counts_pages_and_restarts_on_a_vanished_marker(
    bench: Any, principal: Any, answer: Any
) -> None:
    page = {
        "servers": [{"id": "a"}],
        "servers_links": [{"rel": "next", "href": "http://x/servers?marker=a&limit=3"}],
    }
    lost = {"badRequest": {"code": 400, "message": "marker [a] not found"}}
    rest = {"servers": [{"id": "b"}]}
    bench.sender.script = [answer(200, page), answer(400, lost), answer(200, rest)]
    got = await bench.make(page_limit=3).call(Call(principal, "compute", "server.detail"))
    assert got.value == [{"id": "b"}]
    assert got.requests == 3
    assert [dict(sent.query).get("marker") for sent in bench.sender.sent] == [None, "a", None]
    assert all(dict(sent.query)["limit"] == "3" for sent in bench.sender.sent)


async def test_a_failing_page_fails_the_list(bench: Any, principal: Any, answer: Any) -> None:
    page = {"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": "?marker=a"}]}
    bench.sender.script = [answer(200, page), answer(503)]
    with pytest.raises(CloudError) as caught:
        await bench.make().call(Call(principal, "compute", "server.detail"))
    assert caught.value.verdict is Verdict.UNAVAILABLE


async def test_a_list_in_a_circle_is_a_consistency_error(bench: Any, principal: Any, answer: Any) -> None:
    page = {"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": "?marker=a"}]}
    bench.sender.script = [answer(200, page)] * 3
    with pytest.raises(CloudError) as caught:
        await bench.make().call(Call(principal, "compute", "server.detail"))
    assert caught.value.verdict is Verdict.CONSISTENCY
