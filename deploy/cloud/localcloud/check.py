"""Does the cloud let a region work?  The calls of its four credential scopes, against the real policies.

Registration makes a domain, a project and a user, as the region tools do; all later calls
use these four scopes alone:

    domain      the region's user, manager of its domain
    region      the same user in the region's own project
    principal   the user of one identity in its project: member, load-balancer_member
    privileged  the region's user as manager in the identity's project
"""

import contextlib
import secrets
import time
from collections.abc import Callable
from typing import Any

from localcloud.console import CloudError
from localcloud.rest import Answer, Scope, administrator, wait_for, with_password
from localcloud.settings import COMPUTE_HOST, Settings

NOVA, CINDER, PLACEMENT = "2.90", "3.60", "1.36"
PASSWORD = "check-only"
UNLIMITED = -1


class Check:
    """Makes calls, says how each ended and counts the unexpected ones."""

    def __init__(self) -> None:
        self.bad = 0
        self.total = 0
        self._undo: list[tuple[str, Callable[[], Any]]] = []

    def expect(self, what: str, answer: Answer, *statuses: int) -> Any:
        """Report one answer; return its body when it is as expected, else None."""
        return (
            self.report(what, answer.status in statuses, f"{answer.status} {answer.text[:160]}")
            and answer.body
        )

    def report(self, what: str, good: bool, seen: str = "") -> bool:
        self.total += 1
        self.bad += not good
        print(f"{'ok  ' if good else 'FAIL'} {what}{'' if good else f': {seen}'}", flush=True)
        return good

    def becomes(self, what: str, look: Callable[[], str], wanted: str, broken: str = "ERROR") -> bool:
        """Wait for a state; a broken one ends the wait."""
        seen = ""

        def settled() -> bool:
            nonlocal seen
            seen = look()
            return seen.upper() in (wanted.upper(), broken)

        with contextlib.suppress(CloudError):
            wait_for(settled, what, limit=60.0)
        return self.report(what, seen.upper() == wanted.upper(), f"is {seen!r}")

    def later(self, what: str, undo: Callable[[], Any]) -> None:
        """Remember how to take something away again; the last made goes first."""
        self._undo.append((what, undo))

    def clean(self) -> None:
        """Undo everything; what cannot be undone counts as a failure."""
        for what, undo in reversed(self._undo):
            try:
                undo()
            except CloudError as error:
                self.report(f"clean up: {what}", False, str(error))


def run(settings: Settings) -> bool:
    """Make all calls and print one line each; True when every one answered as expected."""
    begun = time.monotonic()
    check = Check()
    try:
        scopes = _Scopes(settings, check)
        _quotas(check, scopes)
        network = _networks(check, scopes)
        _images(check, scopes)
        _servers(check, scopes, network)
        _volumes(check, scopes)
        _load_balancer(check, scopes, network)
    except CloudError as error:
        check.report("go on after that", False, str(error))
    finally:
        check.clean()
    print(f"{check.total - check.bad} passed, {check.bad} failed ({time.monotonic() - begun:.0f} s)")
    return check.bad == 0


class _Scopes:
    """Registers a region, makes one identity by its domain scope, and holds a login of each scope."""

    def __init__(self, settings: Settings, check: Check) -> None:
        keystone = settings.url("keystone")
        name = f"check-{secrets.token_hex(4)}"
        self.admin = admin = administrator(keystone, settings.password)
        roles = {role["name"]: role["id"] for role in admin.get("identity", "/roles")["roles"]}
        domain = admin.must("POST", "identity", "/domains", {"domain": {"name": name}})["domain"]["id"]

        def remove_domain() -> None:
            admin.must("PATCH", "identity", f"/domains/{domain}", {"domain": {"enabled": False}})
            admin.must("DELETE", "identity", f"/domains/{domain}")

        check.later("domain", remove_domain)
        user = {"name": name, "domain_id": domain, "password": PASSWORD}
        region_user = admin.must("POST", "identity", "/users", {"user": user})["user"]["id"]
        project = {"project": {"name": name, "domain_id": domain}}
        region_project = admin.must("POST", "identity", "/projects", project)["project"]["id"]
        for role in ("member", "load-balancer_member", "manager"):
            admin.must("PUT", "identity", f"/domains/{domain}/users/{region_user}/roles/{roles[role]}")
            if role != "load-balancer_member":
                admin.must(
                    "PUT", "identity", f"/projects/{region_project}/users/{region_user}/roles/{roles[role]}"
                )

        login = with_password(name, PASSWORD, name)
        self.domain = Scope(keystone, login, {"domain": {"id": domain}})
        self.region = Scope(keystone, login, {"project": {"id": region_project}})

        made = self.domain.must(
            "POST", "identity", "/projects", {"project": {"name": f"identity-{name}", "domain_id": domain}}
        )
        self.project: str = made["project"]["id"]
        # Projects of a domain that goes are disabled with it, not removed.
        check.later("project", lambda: admin.must("DELETE", "identity", f"/projects/{self.project}"))
        member = {"name": f"identity-{name}", "domain_id": domain, "password": PASSWORD}
        member_user = self.domain.must("POST", "identity", "/users", {"user": member})["user"]["id"]

        def grant(who: str, role: str) -> Answer:
            path = f"/projects/{self.project}/users/{who}/roles/{roles[role]}"
            return self.domain.call("PUT", "identity", path)

        check.expect("domain: grants member", grant(member_user, "member"), 204)
        check.expect("domain: grants load-balancer_member", grant(member_user, "load-balancer_member"), 204)
        check.expect("domain: grants manager", grant(region_user, "manager"), 204)
        check.expect("domain: may not grant admin", grant(member_user, "admin"), 403)
        in_project = {"project": {"id": self.project}}
        self.principal = Scope(keystone, with_password(member["name"], PASSWORD, name), in_project)
        self.privileged = Scope(keystone, login, in_project)


def _quotas(check: Check, scopes: _Scopes) -> None:
    project, manager = scopes.project, scopes.privileged
    cores = {"quota_set": {"cores": UNLIMITED, "instances": UNLIMITED}}
    check.expect(
        "privileged: sets Nova quota",
        manager.call("PUT", "compute", f"/os-quota-sets/{project}", cores, version=NOVA), 200,
    )  # fmt: skip
    check.expect(
        "privileged: sets Neutron quota",
        manager.call("PUT", "network", f"/v2.0/quotas/{project}", {"quota": {"port": UNLIMITED}}), 200,
    )  # fmt: skip
    check.expect(
        "privileged: sets Cinder quota",
        manager.call("PUT", "block-storage", f"/os-quota-sets/{project}", {"quota_set": {"volumes": UNLIMITED}}), 200,
    )  # fmt: skip


def _networks(check: Check, scopes: _Scopes) -> str:
    """A VLAN network, read back; a plain network with a subnet, whose id is returned."""
    manager = scopes.privileged
    vlan = 2000 + secrets.randbelow(2000)
    segment = {
        "provider:network_type": "vlan",
        "provider:physical_network": "physnet1",
        "provider:segmentation_id": vlan,
    }
    by_segment = {"network": {"name": "check-vlan", "segments": [segment]}}
    refused = scopes.principal.call("POST", "network", "/v2.0/networks", by_segment)
    check.expect("principal: may not make a VLAN network", refused, 403)
    made = check.expect(
        "privileged: makes a VLAN network", manager.call("POST", "network", "/v2.0/networks", by_segment), 201
    )
    if made:
        network = made["network"]["id"]
        check.later("VLAN network", lambda: manager.must("DELETE", "network", f"/v2.0/networks/{network}"))
        seen = manager.get("network", f"/v2.0/networks/{network}")["network"].get("provider:segmentation_id")
        check.report("privileged: reads the VLAN id back", seen == vlan, f"{seen} for {vlan}")
    plain = manager.must("POST", "network", "/v2.0/networks", {"network": {"name": "check"}})["network"]["id"]
    check.later("network", lambda: manager.must("DELETE", "network", f"/v2.0/networks/{plain}"))
    subnet = {"name": "check", "network_id": plain, "ip_version": 4, "cidr": "10.77.0.0/24"}
    return str(manager.must("POST", "network", "/v2.0/subnets", {"subnet": subnet})["subnet"]["id"])


def _images(check: Check, scopes: _Scopes) -> None:
    wanted = {"name": "check", "disk_format": "raw", "container_format": "bare", "visibility": "public"}
    refused = scopes.principal.call("POST", "image", "/v2/images", wanted)
    check.expect("principal: may not make a public image", refused, 403)
    made = check.expect(
        "region: makes a public image", scopes.region.call("POST", "image", "/v2/images", wanted), 201
    )
    if made:
        path = f"/v2/images/{made['id']}"
        check.expect("region: deletes its image", scopes.region.call("DELETE", "image", path), 204)


def _servers(check: Check, scopes: _Scopes, subnet: str) -> None:
    """A plain server of the principal, one pinned by the privileged scope, and what the preflight asks."""
    member, manager = scopes.principal, scopes.privileged
    providers = manager.call("GET", "placement", "/resource_providers", version=PLACEMENT)
    body = check.expect("privileged: lists resource providers", providers, 200)
    pin = body["resource_providers"][0]["name"] if body else COMPUTE_HOST
    image = member.get("image", "/v2/images?name=debian-12")["images"][0]["id"]
    flavors = member.get("compute", "/flavors")["flavors"]
    flavor = next(f["id"] for f in flavors if f["name"] == "small")
    network = manager.get("network", f"/v2.0/subnets/{subnet}")["subnet"]["network_id"]
    plain = {"name": "check", "imageRef": image, "flavorRef": flavor, "networks": [{"uuid": network}]}
    pinned = {**plain, "name": "check-pinned", "networks": "none", "hypervisor_hostname": pin}

    def create(scope: Scope, server: dict[str, Any]) -> Answer:
        return scope.call("POST", "compute", "/servers", {"server": server}, version=NOVA)

    check.expect("principal: may not pin a server", create(member, pinned), 403)
    for what, scope, server in (
        ("principal: makes a server", member, plain),
        ("privileged: pins a server", manager, pinned),
    ):
        made = check.expect(what, create(scope, server), 202)
        if made:
            _watch_server(check, scope, str(server["name"]), f"/servers/{made['server']['id']}")


def _watch_server(check: Check, scope: Scope, name: str, path: str) -> None:
    def remove() -> None:
        scope.must("DELETE", "compute", path)
        wait_for(lambda: scope.call("GET", "compute", path).status == 404, f"server {name} to go")

    check.later(f"server {name}", remove)
    check.becomes(
        f"server {name} is ACTIVE", lambda: str(scope.get("compute", path)["server"]["status"]), "ACTIVE"
    )


def _volumes(check: Check, scopes: _Scopes) -> None:
    member = scopes.principal
    for what, orders, state in (
        ("volume is available", {}, "available"),
        ("volume that is told to fail is in error", {"lab:create": "fail"}, "error"),
    ):
        wanted = {"volume": {"name": "check", "size": 1, "metadata": orders}}
        made = member.must("POST", "block-storage", "/volumes", wanted, version=CINDER)
        _watch_volume(check, member, what, f"/volumes/{made['volume']['id']}", state)


def _watch_volume(check: Check, scope: Scope, what: str, path: str, state: str) -> None:
    def remove() -> None:
        scope.must("DELETE", "block-storage", path)
        wait_for(lambda: scope.call("GET", "block-storage", path).status == 404, "volume to go")

    check.later("volume", remove)
    broken = "" if state == "error" else "ERROR"
    check.becomes(what, lambda: str(scope.get("block-storage", path)["volume"]["status"]), state, broken)


def _load_balancer(check: Check, scopes: _Scopes, subnet: str) -> None:
    member = scopes.principal
    wanted = {"loadbalancer": {"name": "check", "vip_subnet_id": subnet}}
    answer = member.call("POST", "load-balancer", "/v2/lbaas/loadbalancers", wanted)
    made = check.expect("principal: makes a load balancer", answer, 201)
    if not made:
        return
    path = f"/v2/lbaas/loadbalancers/{made['loadbalancer']['id']}"

    def remove() -> None:
        member.must("DELETE", "load-balancer", f"{path}?cascade=true")
        wait_for(lambda: member.call("GET", "load-balancer", path).status == 404, "load balancer to go")

    check.later("load balancer", remove)
    check.becomes(
        "load balancer is ACTIVE",
        lambda: str(member.get("load-balancer", path)["loadbalancer"]["provisioning_status"]), "ACTIVE",
    )  # fmt: skip
