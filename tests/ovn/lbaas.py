"""The load balancer API as a client of these tests uses it: one call after the other, and waiting until nothing is pending."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

SETTLED_WITHIN = 30.0
CALL_LIMIT = 20.0
Json = dict[str, Any]
ROOTS = {
    "loadbalancers": "loadbalancer", "listeners": "listener", "pools": "pool", "healthmonitors": "healthmonitor",
}  # fmt: skip


class Refused(Exception):
    """An answer of 400 or more; `status`, and the API's own words."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Lbaas:
    """One caller."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer; path below /v2/lbaas.  Refused."""
        request = urllib.request.Request(
            f"{self.url}/v2/lbaas/{path}",
            None if body is None else json.dumps(body).encode(),
            {"X-Auth-Token": self.token, "Content-Type": "application/json", "Accept": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=CALL_LIMIT) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text else None

    def list(self, kind: str) -> list[Json]:
        found: list[Json] = self.call("GET", kind)[kind]
        return found

    def show(self, kind: str, object_id: str) -> Json:
        found: Json = self.call("GET", f"{kind}/{object_id}")[ROOTS[kind]]
        return found

    # ------------------------------------------------------------ whole steps: call, and wait for the load balancer

    def balancer(self, within: float = SETTLED_WITHIN, **values: Any) -> Json:
        """A load balancer, ACTIVE."""
        made: Json = self.call("POST", "loadbalancers", {"loadbalancer": values})["loadbalancer"]
        return self.settled(made["id"], within)

    def make(self, kind: str, load_balancer_id: str, **values: Any) -> Json:
        """A listener, pool or health monitor; returns when its load balancer is ACTIVE again."""
        if (kind == "pools" and "listener_id" not in values) or kind == "listeners":
            values["loadbalancer_id"] = load_balancer_id
        made: Json = self.call("POST", kind, {ROOTS[kind]: values})[ROOTS[kind]]
        self.settled(load_balancer_id)
        return made

    def member(self, load_balancer_id: str, pool_id: str, **values: Any) -> Json:
        made: Json = self.call("POST", f"pools/{pool_id}/members", {"member": values})["member"]
        self.settled(load_balancer_id)
        return made

    def change(self, load_balancer_id: str, path: str, root: str, **values: Any) -> None:
        self.call("PUT", path, {root: values})
        self.settled(load_balancer_id)

    def drop(self, load_balancer_id: str, path: str) -> None:
        """Delete a child, and wait for its load balancer."""
        self.call("DELETE", path)
        self.settled(load_balancer_id)

    def destroy(self, load_balancer_id: str, within: float = SETTLED_WITHIN) -> None:
        """Delete it with all that it has; returns when it is gone."""
        self.call("DELETE", f"loadbalancers/{load_balancer_id}?cascade=true")
        self._until(load_balancer_id, within, gone=True)

    def settled(self, load_balancer_id: str, within: float = SETTLED_WITHIN) -> Json:
        """The load balancer once nothing is pending; AssertionError when it ends in ERROR or takes too long."""
        found = self._until(load_balancer_id, within)
        assert found is not None
        assert found["provisioning_status"] == "ACTIVE", found
        return found

    def _until(self, load_balancer_id: str, within: float, gone: bool = False) -> Json | None:
        deadline = time.monotonic() + within
        while True:
            try:
                found = self.show("loadbalancers", load_balancer_id)
            except Refused as refusal:
                if gone and refusal.status == 404:
                    return None
                raise
            if not found["provisioning_status"].startswith("PENDING") and not gone:
                return found
            assert time.monotonic() < deadline, f"still {found['provisioning_status']} after {within} s"
            time.sleep(0.02)

    # ------------------------------------------------------------ statuses

    def operating(self, load_balancer_id: str) -> dict[str, str]:
        """Operating statuses of the whole tree, by id."""
        tree = self.call("GET", f"loadbalancers/{load_balancer_id}/status")["statuses"]["loadbalancer"]
        found: dict[str, str] = {}
        _collect(tree, found)
        return found


def _collect(node: Any, found: dict[str, str]) -> None:
    if isinstance(node, dict):
        if "id" in node and "operating_status" in node:
            found[node["id"]] = node["operating_status"]
        for value in node.values():
            _collect(value, found)
    elif isinstance(node, list):
        for value in node:
            _collect(value, found)
