"""The rules about paths, methods and links explain what they are for, and nothing else."""

import copy
from typing import Any

from .departures import explain

URL = "http://localhost/v2/lbaas/pools"


def a_line(
    method: str, path: str, expected: tuple[int, Any], actual: tuple[int, Any], allow: str = ""
) -> Any:
    def side(answer: tuple[int, Any], **headers: str) -> dict[str, Any]:
        given = {"content-type": "application/json", **headers}
        return {"status": answer[0], "body": answer[1], "headers": given, "provider_calls": [], "changes": []}

    ours = side(actual, allow=allow) if allow else side(actual)
    return {"request": {"method": method, "path": path}, "expected": side(expected), "actual": ours}


def explained(line: Any) -> list[str] | None:
    return explain(copy.deepcopy(line), lambda a, b: bool(a == b))


def fault(text: str) -> dict[str, Any]:
    return {"faultcode": "Client", "faultstring": text, "debuginfo": None}


def routed(code: int, title: str, description: str = "") -> dict[str, Any]:
    return {"code": code, "title": title, "description": description}


GONE = (404, routed(404, "Not Found"))
NO_METHOD = (405, routed(405, "Method Not Allowed"))


def test_a_segment_behind_an_object_is_404_b1() -> None:
    line = a_line("GET", "/v2/lbaas/pools/x/nonsense", (200, {"pool": {}}), GONE)
    assert explained(line) == ["http-path-is-no-field"]
    for path, body in (
        ("/v2/lbaas/pools/x", {"pool": {}}),
        ("/v2/lbaas/pools/x/nonsense", {"pool": {"id": "x"}}),
        ("/v2/lbaas/pools/x?fields=nonsense", {"pool": {}}),
    ):
        assert explained(a_line("GET", path, (200, body), GONE)) is None


def test_a_method_that_a_collection_has_not_is_405_b3() -> None:
    recorded = (400, fault('Missing argument: "id"'))
    assert explained(a_line("DELETE", "/v2/pools", recorded, NO_METHOD, "GET, POST")) == [
        "http-collection-methods"
    ]
    # An answer that allows what it refuses is no better than the recorded one.
    assert explained(a_line("DELETE", "/v2/pools", recorded, NO_METHOD, "DELETE, GET")) is None
    recorded = (400, fault('Missing argument: "pool_"'))
    assert explained(a_line("PUT", "/v2/pools", recorded, NO_METHOD, "GET, POST")) is None


def test_the_title_of_404_is_its_own_b4() -> None:
    recorded, ours = (
        routed(404, "Bad Request", "Pool x not found."),
        routed(404, "Not Found", "Pool x not found."),
    )
    assert explained(a_line("GET", "/v2/pools/x/members", (404, recorded), (404, ours))) == ["http-titles"]
    other = routed(404, "Not Found", "Pool y not found.")
    assert explained(a_line("GET", "/v2/pools/x/members", (404, recorded), (404, other))) is None


def a_list(query: str) -> tuple[int, Any]:
    return 200, {"pools": [], "pools_links": [{"rel": "next", "href": f"{URL}?{query}"}]}


def test_links_keep_filters_and_nothing_but_what_was_asked_oc_04() -> None:
    path = "/v2/lbaas/pools?limit=1&name=a%26b&tags=x"
    recorded = a_list("limit=1&marker=m")
    assert explained(a_line("GET", path, recorded, a_list("limit=1&marker=m&name=a%26b&tags=x"))) == [
        "http-links-keep-filters"
    ]
    for wrong in (
        "limit=1&marker=n&name=a%26b&tags=x",
        "limit=1&marker=m&name=b",
        "limit=2&marker=m&name=a%26b&tags=x",
    ):
        assert explained(a_line("GET", path, recorded, a_list(wrong))) is None
