"""The rule about objects under change explains that refusal and nothing else."""

import copy
from typing import Any

from .departures import explain

PATH = "/v2/lbaas/pools/1"
REFUSED = {
    "faultcode": "Client",
    "faultstring": "Pool 1 is immutable and cannot be updated.",
    "debuginfo": None,
}


def a_line(method: str, path: str, status: int, ours: dict[str, Any], **more: Any) -> Any:
    def side(code: int, body: Any, changes: list[Any]) -> dict[str, Any]:
        calls = [{"method": "pool_update", "args": []} for _ in changes]
        headers = {"content-type": "application/json"}
        return {"status": code, "body": body, "headers": headers, "provider_calls": calls, "changes": changes}

    return {
        "request": {"method": method, "path": path},
        "expected": side(status, {"pool": {"id": "1"}}, [["pool", "put", {"id": "1"}]]),
        "actual": {**side(409, ours, []), **more},
    }


def explained(line: Any) -> list[str] | None:
    return explain(copy.deepcopy(line), lambda a, b: bool(a == b))


def test_a_change_of_an_object_under_change_is_refused_c9() -> None:
    assert explained(a_line("PUT", PATH, 200, REFUSED)) == ["object-under-change"]
    assert explained(a_line("DELETE", PATH, 204, REFUSED)) == ["object-under-change"]


def test_a_refusal_that_names_another_object_is_not_explained() -> None:
    load_balancer = {**REFUSED, "faultstring": "Load Balancer 2 is immutable and cannot be updated."}
    assert explained(a_line("PUT", PATH, 200, load_balancer)) is None
    assert explained(a_line("PUT", "/v2/lbaas/pools/2", 200, REFUSED)) is None


def test_a_refusal_that_writes_all_the_same_is_not_explained() -> None:
    assert explained(a_line("PUT", PATH, 200, REFUSED, changes=[["pool", "put", {"id": "1"}]])) is None


def test_what_the_original_refused_too_is_compared() -> None:
    assert explained(a_line("PUT", PATH, 400, REFUSED)) is None
