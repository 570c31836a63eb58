"""The rules about what is refused below a load balancer explain those refusals and nothing else."""

import copy
import json
from typing import Any

import pytest

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


def a_refused(method: str, path: str, body: Any, text: str, status: int, was: int = 201) -> Any:
    ours = {"faultcode": "Client", "faultstring": text, "debuginfo": None}
    line = a_line(method, path, was, ours)
    line["actual"]["status"] = status
    line["request"]["body"] = json.dumps(body)
    return line


POOLS, BATCH = "/v2/lbaas/pools", "/v2/lbaas/pools/1/members"
FIT = "Validation failure: The pool protocol 'HTTP' is invalid while the listener protocol is 'UDP'."
VERSIONS = "Validation failure: Invalid TLS versions: x"
SUBNET = "Validation failure: The subnet of member 7 cannot be changed."
TAKEN = "Another member on this pool is already using ip fe80:0::1 on protocol_port 80"


@pytest.mark.parametrize(
    ("identifier", "method", "path", "body", "text", "status"),
    [
        ("pool-own-listener", "POST", POOLS, {"pool": {"listener_id": "2"}}, "Listener 2 not found.", 404),
        ("pool-fits-listener", "POST", POOLS, {"pool": {"protocol": "HTTP"}}, FIT, 400),
        (
            "pool-that-goes",
            "PUT",
            "/v2/lbaas/listeners/1",
            {"listener": {"default_pool_id": "3"}},
            "Pool 3 not found.",
            404,
        ),
        (
            "deleted-listener",
            "POST",
            "/v2/lbaas/l7policies",
            {"l7policy": {"listener_id": "2"}},
            "Listener 2 not found.",
            404,
        ),
        ("tls-always-checked", "POST", POOLS, {"pool": {"tls_versions": ["x"]}}, VERSIONS, 400),
        ("member-subnet-fixed", "PUT", BATCH, {"members": [{}, {"subnet_id": "5"}]}, SUBNET, 400),
        ("member-canonical-address", "POST", BATCH, {"member": {"address": "fe80:0::1"}}, TAKEN, 409),
    ],
)
def test_what_the_original_carries_out_and_we_refuse(
    identifier: str, method: str, path: str, body: Any, text: str, status: int
) -> None:
    assert explained(a_refused(method, path, body, text, status)) == [identifier]
    assert explained(a_refused(method, path, {"x": {"name": "a"}}, text, status)) is None
    assert explained(a_refused(method, path, body, f"More than {text}", status)) is None
    assert explained(a_refused(method, path, body, text, 418)) is None
    assert explained(a_refused(method, path, body, text, status, was=403)) is None
