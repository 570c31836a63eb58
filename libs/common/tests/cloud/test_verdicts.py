"""The verdict table against the answers that real services were measured to give."""

import json
from typing import Any

import pytest

from roadstead.cloud.operations import OPERATIONS, operation
from roadstead.cloud.port import Verdict
from roadstead.cloud.verdicts import NO_ANSWER, error_of, safe_text, verdict


def nova(kind: str, message: str, code: int = 400) -> dict[str, object]:
    return {kind: {"code": code, "message": message}}


def neutron(kind: str, message: str = "words") -> dict[str, object]:
    return {"NeutronError": {"type": kind, "message": message, "detail": ""}}


def keystone(code: int, message: str) -> dict[str, object]:
    return {"error": {"code": code, "title": "Title", "message": message}}


def octavia(message: str) -> dict[str, object]:
    return {"faultcode": "Client", "faultstring": message, "debuginfo": None}


MEASURED = [
    # service, verb, status, body, verdict
    ("compute", "server.rebuild", 400, nova("badRequest", "Cannot find image for rebuild"), Verdict.IMAGE_NOT_FOUND),
    ("compute", "server.rebuild", 400, nova("badRequest", "Image 1 is not active."), Verdict.REFUSED),
    ("compute", "server.rebuild", 409, nova("conflictingRequest", "Cannot 'rebuild' instance"), Verdict.BUSY),
    ("compute", "server.create", 400, nova("badRequest", "Cannot find image for rebuild"), Verdict.REFUSED),
    ("compute", "server.create", 400, nova("badRequest", "Invalid key_name provided."), Verdict.REFUSED),
    ("compute", "server.create", 409, nova("conflictingRequest", "Port 1 is still in use."), Verdict.CONFLICT),
    (
        "compute", "server.create", 403,
        nova("forbidden", "Quota exceeded for instances: Requested 1, but already used 8 of 1 instances"),
        Verdict.QUOTA,
    ),
    ("compute", "server.create", 403, nova("forbidden", "Policy doesn't allow x to be performed."), Verdict.FORBIDDEN),
    ("compute", "server.get", 404, nova("itemNotFound", "Instance 1 could not be found."), Verdict.GONE),
    ("compute", "server.detail", 404, nova("itemNotFound", "Something could not be found."), Verdict.UNAVAILABLE),
    ("compute", "server.get", 404, nova("itemNotFound", "The resource could not be found."), Verdict.UNAVAILABLE),
    ("compute", "server.action", 409, nova("conflictingRequest", "Cannot 'reboot' instance"), Verdict.CONFLICT),
    (
        "compute", "attachment.create", 400,
        nova("badRequest", "Invalid volume: volume 1 is already attached to instances: 2"), Verdict.EXISTS,
    ),
    ("compute", "attachment.create", 409, nova("conflictingRequest", "Cannot 'attach_volume'"), Verdict.CONFLICT),
    ("compute", "attachment.create", 404, nova("itemNotFound", "Volume 1 could not be found."), Verdict.GONE),
    (
        "compute", "attachment.delete", 400,
        nova("badRequest", "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. Volume "
             "status must be 'in-use' and attach_status must be 'attached' to detach. Currently: detaching"),
        Verdict.BUSY,
    ),
    (
        "compute", "attachment.delete", 404,
        nova("itemNotFound", "Instance 1 is not attached to volume 2"), Verdict.GONE,
    ),
    ("compute", "keypair.create", 409, nova("conflictingRequest", "Key pair 'x' already exists."), Verdict.EXISTS),
    ("compute", "server.detail", 406, nova("x", "Version 2.999 is not supported by the API."), Verdict.NOT_SUPPORTED),
    ("network", "port.create", 409, neutron("OverQuota", "Quota exceeded for resources: ['port']."), Verdict.QUOTA),
    ("network", "network.delete", 409, neutron("NetworkInUse"), Verdict.IN_USE),
    ("network", "subnet.delete", 409, neutron("SubnetInUse"), Verdict.IN_USE),
    ("network", "router.delete", 409, neutron("RouterInUse"), Verdict.IN_USE),
    ("network", "securitygroup.delete", 409, neutron("SecurityGroupInUse"), Verdict.IN_USE),
    ("network", "router.remove_interface", 409, neutron("RouterInterfaceInUseByFloatingIP"), Verdict.IN_USE),
    ("network", "router.remove_interface", 404, neutron("RouterInterfaceNotFoundForSubnet"), Verdict.GONE),
    ("network", "rule.create", 409, neutron("SecurityGroupRuleExists"), Verdict.EXISTS),
    ("network", "floatingip.update", 409, neutron("FloatingIPPortAlreadyAssociated"), Verdict.EXISTS),
    ("network", "network.create", 409, neutron("VlanIdInUse"), Verdict.CONFLICT),
    ("network", "port.create", 409, neutron("IpAddressInUse"), Verdict.CONFLICT),
    ("network", "port.create", 404, neutron("NetworkNotFound"), Verdict.GONE),
    ("network", "port.get", 404, neutron("HTTPNotFound", "Not here"), Verdict.UNAVAILABLE),
    ("network", "network.create", 400, neutron("InvalidInput"), Verdict.REFUSED),
    ("network", "port.update", 412, neutron("RevisionNumberConstraintFailed"), Verdict.CONFLICT),
    (
        "network", "router.add_interface", 400,
        neutron("BadRequest", "Bad router request: Cidr 10.0.0.0/24 of subnet a-1 overlaps with cidr 10.0.0.0/24 of "
                "subnet a-1."),
        Verdict.EXISTS,
    ),
    (
        "network", "router.add_interface", 400,
        neutron("BadRequest", "Bad router request: Cidr 10.0.0.0/24 of subnet a-1 overlaps with cidr 10.0.0.0/24 of "
                "subnet a-12."),
        Verdict.REFUSED,
    ),
    ("network", "quota.put", 403, neutron("PolicyNotAuthorized", "(rule:update_quota) is disallowed"), Verdict.FORBIDDEN),
    (
        "block-storage", "volume.create", 413,
        nova("overLimit", "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'."),
        Verdict.QUOTA,
    ),
    (
        "block-storage", "volume.create", 413,
        nova("overLimit", "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot"), Verdict.QUOTA,
    ),
    ("block-storage", "volume.create", 413, nova("overLimit", "Request is too large."), Verdict.REFUSED),
    (
        "block-storage", "volume.delete", 400,
        nova("badRequest", "Invalid volume: Volume status must be available or error or error_restoring"),
        Verdict.IN_USE,
    ),
    ("block-storage", "volume.delete", 404, nova("itemNotFound", "Volume 1 could not be found."), Verdict.GONE),
    ("identity", "project.create", 409, keystone(409, "Conflict occurred attempting to store project"), Verdict.EXISTS),
    ("identity", "grant.put", 409, keystone(409, "Conflict occurred"), Verdict.EXISTS),
    ("identity", "grant.put", 404, keystone(404, "Could not find project: 1."), Verdict.GONE),
    ("identity", "user.delete", 409, keystone(409, "Conflict occurred"), Verdict.CONFLICT),
    ("identity", "user.delete", 403, keystone(403, "You are not authorized to perform the action"), Verdict.FORBIDDEN),
    ("identity", "project.get", 401, keystone(401, "The request requires authentication."), Verdict.UNAUTHORIZED),
    ("load-balancer", "loadbalancer.delete", 409, octavia("Invalid state PENDING_CREATE of loadbalancer"), Verdict.BUSY),
    ("load-balancer", "pool.create", 409, octavia("Load Balancer 1 is immutable and cannot be updated."), Verdict.BUSY),
    ("load-balancer", "loadbalancer.create", 409, octavia("The VIP IP address is already in use: 1"), Verdict.CONFLICT),
    (
        "load-balancer", "listener.create", 409,
        octavia("Another Listener on this Load Balancer is already using protocol TCP and protocol_port 80"),
        Verdict.CONFLICT,
    ),
    ("load-balancer", "loadbalancer.create", 501, octavia("Provider 'ovn' does not support it"), Verdict.NOT_SUPPORTED),
    ("load-balancer", "loadbalancer.create", 400, octavia("Provider 'nope' is not enabled."), Verdict.REFUSED),
    ("load-balancer", "loadbalancer.create", 403, octavia("Quota has been met for resources: Pool"), Verdict.QUOTA),
    (
        "load-balancer", "loadbalancer.delete", 400,
        octavia("Validation failure: Cannot delete Load Balancer 1 - it has children"), Verdict.IN_USE,
    ),
    (
        "network", "port.create", 409,
        neutron("IpAddressGenerationFailure", "No more IP addresses available on network 1."), Verdict.EXHAUSTED,
    ),
    (
        "network", "router.create", 409,
        neutron("IpAddressGenerationFailure", "No more IP addresses available on network 1."), Verdict.EXHAUSTED,
    ),
    (
        "network", "floatingip.create", 409,
        neutron("IpAddressGenerationFailure", "No more IP addresses available on network 1."), Verdict.EXHAUSTED,
    ),
    (
        "network", "floatingip.create", 400,
        neutron("ExternalIpAddressExhausted", "Unable to find any IP address on external network 1."),
        Verdict.EXHAUSTED,
    ),
    (
        "network", "network.create", 409,
        neutron("NoNetworkAvailable", "Unable to create the network. No tenant network is available for allocation."),
        Verdict.EXHAUSTED,
    ),
    ("network", "subnet.create", 409, neutron("SubnetAllocationError", "Failed to allocate subnet"), Verdict.EXHAUSTED),
    ("network", "port.create", 409, neutron("IpAddressAlreadyAllocated"), Verdict.CONFLICT),
    (
        "compute", "server.create", 500,
        nova("computeFault", "No valid host was found. There are not enough hosts available.", 500),
        Verdict.EXHAUSTED,
    ),
    (
        "compute", "server.create", 400, nova("badRequest", "No valid host was found for the request"),
        Verdict.EXHAUSTED,
    ),
    (
        "block-storage", "volume.create", 500,
        nova("computeFault", "No valid backend was found. No weighed backends available", 500), Verdict.EXHAUSTED,
    ),
    (
        "load-balancer", "loadbalancer.create", 500,
        octavia("No more IP addresses available on network 1."), Verdict.EXHAUSTED,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("service", "verb", "status", "body", "expected"), MEASURED)
def test_measured_answers_get_their_verdict(
    service: Any, verb: Any, status: Any, body: Any, expected: Any
) -> None:
    kind, text = error_of(json.dumps(body).encode())
    assert verdict(operation(service, verb), status, kind, text) is expected


def test_every_operation_and_status_has_a_verdict() -> None:
    for op in OPERATIONS.values():
        for status in (NO_ANSWER, *range(100, 600)):
            found = verdict(op, status, None, "words")
            assert isinstance(found, Verdict)
            if 100 <= status < 400:
                assert found is Verdict.CONSISTENCY


@pytest.mark.parametrize("status", [NO_ANSWER, 408, 500, 502, 503, 504])
def test_silence_and_5xx_never_deny_a_create_or_a_delete(status: Any) -> None:
    """A create behind a 503 may exist (OC-21): only a look-up can tell."""
    for op in OPERATIONS.values():
        found = verdict(op, status, None, "upstream")
        if op.creates or op.destructive:
            assert found is Verdict.UNKNOWN, op
        elif not op.writes:
            assert found is Verdict.UNAVAILABLE, op
    assert verdict(operation("compute", "quota.put"), NO_ANSWER, None, "") is Verdict.UNKNOWN
    assert verdict(operation("compute", "quota.put"), 503, None, "") is Verdict.UNAVAILABLE


def test_gone_needs_the_services_own_word() -> None:
    get = operation("image", "image.get")
    said = b"<html><body>No image found with ID 1</body></html>"
    assert verdict(get, 404, *error_of(said)) is Verdict.GONE
    for proof_of_nothing in (b"", b"<html><body>404 Not Found</body></html>", b"404 page not found"):
        assert verdict(get, 404, *error_of(proof_of_nothing)) is Verdict.UNAVAILABLE


def test_no_list_of_a_whole_service_is_ever_gone() -> None:
    for op in OPERATIONS.values():
        if op.listing and "{" not in op.path:
            assert verdict(op, 404, "itemNotFound", "Instance 1 could not be found.") is Verdict.UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "pause", "expected"),
    [
        (429, None, Verdict.THROTTLED),
        (429, 7.0, Verdict.THROTTLED),
        (413, 7.0, Verdict.THROTTLED),
        (413, None, Verdict.REFUSED),
        (413, 0.0, Verdict.REFUSED),
    ],
)
def test_slow_down_is_told_from_too_large(status: Any, pause: Any, expected: Any) -> None:
    assert verdict(operation("compute", "server.detail"), status, "overLimit", "slow", pause) is expected


def test_quota_wins_over_the_pause_that_cinder_sends_with_it() -> None:
    op = operation("block-storage", "volume.create")
    text = "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'."
    assert verdict(op, 413, "overLimit", text, 5.0) is Verdict.QUOTA


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"badRequest": {"code": 400, "message": "words"}}', ("badRequest", "words")),
        (b'{"NeutronError": {"type": "PortInUse", "message": "words"}}', ("PortInUse", "words")),
        (b'{"NeutronError": "words"}', (None, "words")),
        (b'{"error": {"code": 409, "title": "Conflict", "message": "words"}}', ("Conflict", "words")),
        (b'{"faultcode": "Client", "faultstring": "words"}', ("Client", "words")),
        (
            b'{"errors": [{"status": 400, "title": "Bad", "detail": "words", "code": "c.x"}]}',
            ("c.x", "words"),
        ),
        (b'{"error_message": "{\\"faultstring\\": \\"words\\"}"}', (None, "words")),
        (b'{"message": "words", "code": "404"}', (None, "words")),
        (b"plain words", (None, "plain words")),
        (b"[1]", (None, "[1]")),
        (b"\xff", (None, "\ufffd")),
    ],
)
def test_error_bodies_of_every_service_are_read(body: Any, expected: Any) -> None:
    assert error_of(body) == expected


def test_every_verdict_has_a_sentence_for_people() -> None:
    sentences = {safe_text(each, "compute") for each in Verdict}
    assert len(sentences) == len(Verdict)
    assert all("{" not in sentence for sentence in sentences)
    assert "block storage" in safe_text(Verdict.UNAVAILABLE, "block-storage")
    assert "cloud service" in safe_text(Verdict.UNAVAILABLE, "something-new")
