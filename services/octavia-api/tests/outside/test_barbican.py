"""Barbican asked over HTTP: whose token does what, and that a reference leads nowhere but to it."""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud
from roadstead.testing.cloudsim.http import Front
from roadstead_octavia.errors import ApiError
from roadstead_octavia.outside.barbican import Barbican, Reference, Unreadable, parsed
from roadstead_octavia.outside.service import ServiceUser

from .test_material import a_certificate, a_pkcs12, key_pem, pem

TENANT = "token-of-a-tenant"


class KeyManager:
    """A Barbican of a few rules: the tenant's token may do all to `owned`; the service reads what lists it."""

    def __init__(self) -> None:
        self.secrets: dict[str, bytes] = {}
        self.containers: dict[str, dict[str, str]] = {}
        self.readers: dict[str, list[str]] = {}
        self.owned: set[str] = set()
        self.requests: list[str] = []
        self.delay = 0.0
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                manager.answer(self, None)

            def do_PATCH(self) -> None:
                length = int(self.headers["content-length"])
                manager.answer(self, json.loads(self.rfile.read(length)))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def keep(self, payload: bytes, *, owned: bool = True) -> str:
        identifier = str(uuid.uuid4())
        self.secrets[identifier] = payload
        if owned:
            self.owned.add(identifier)
        return f"http://elsewhere.invalid:9311/v1/secrets/{identifier}"

    def hold(self, **parts: str) -> str:
        identifier = str(uuid.uuid4())
        self.containers[identifier] = parts
        self.owned.add(identifier)
        return f"http://elsewhere.invalid:9311/v1/containers/{identifier}"

    def answer(self, request: BaseHTTPRequestHandler, body: Any) -> None:
        time.sleep(self.delay)
        _, _, kind, identifier, *rest = request.path.split("/")
        is_tenant = request.headers["x-auth-token"] == TENANT
        self.requests.append(
            f"{'tenant' if is_tenant else 'service'} {request.command} {kind} {'/'.join(rest)}"
        )
        readers = self.readers.setdefault(identifier, [])
        status, answer = 200, b"{}"
        if (is_tenant and identifier not in self.owned) or (not is_tenant and not readers):
            status = 403
        elif rest == ["acl"] and body is not None:
            self.readers[identifier] = body["read"]["users"]
        elif rest == ["acl"]:
            answer = json.dumps({"read": {"users": readers, "project-access": True}}).encode()
        elif rest == ["payload"] and identifier in self.secrets:
            answer = self.secrets[identifier]
        elif kind == "containers" and identifier in self.containers:
            parts = self.containers[identifier].items()
            answer = json.dumps({"secret_refs": [{"name": n, "secret_ref": r} for n, r in parts]}).encode()
        else:
            status = 404
        with contextlib.suppress(BrokenPipeError):
            request.send_response(status)
            request.send_header("content-length", str(len(answer)))
            request.end_headers()
            request.wfile.write(answer)


@pytest.fixture
def front() -> Iterator[Front]:
    with Front(Cloud()) as started:
        yield started


@pytest.fixture
def manager() -> Iterator[KeyManager]:
    made = KeyManager()
    yield made
    made.close()


@contextlib.contextmanager
def asking(front: Front, manager: KeyManager, **more: Any) -> Iterator[Barbican]:
    password = front.cloud.settings.admin_password
    user = ServiceUser(
        front.auth_url, "admin", password, "admin", interface="public", **{"timeout": 5.0, **more}
    )
    made = Barbican(user, endpoint=manager.url)
    try:
        yield made
    finally:
        made.close()


async def test_the_caller_grants_and_the_service_reads(front: Front, manager: KeyManager) -> None:
    reference = manager.keep(a_pkcs12(a_certificate()))
    with asking(front, manager) as keys:
        assert await keys.unreadable([reference], TENANT) == [reference]
        await keys.grant(reference, TENANT)
        await keys.grant(reference, TENANT)
        assert await keys.unreadable([reference], TENANT) == []
        tls, sni = await keys.bundles(reference, [reference], TENANT)
    assert tls is not None
    assert tls["primary_cn"] == "www.example.com"
    assert list(sni) == [tls]
    assert manager.requests.count("tenant PATCH secrets acl") == 1
    assert "tenant GET secrets payload" not in manager.requests


async def test_a_secret_that_the_caller_may_not_see_is_refused_though_the_service_can_read_it(
    front: Front, manager: KeyManager
) -> None:
    reference = manager.keep(a_pkcs12(a_certificate()), owned=False)
    manager.readers[parsed(reference).id] = ["somebody"]
    with asking(front, manager) as keys, pytest.raises(ApiError) as refused:
        await keys.grant(reference, TENANT)
    assert refused.value.text == f"Could not retrieve certificate: {reference}"


async def test_a_container_is_granted_and_read_with_its_parts(front: Front, manager: KeyManager) -> None:
    parts = {
        "certificate": manager.keep(pem(a_certificate())),
        "private_key": manager.keep(key_pem(b"secret")),
        "private_key_passphrase": manager.keep(b"secret"),
        "intermediates": manager.keep(pem(a_certificate("ca"))),
    }
    reference = manager.hold(**parts)
    with asking(front, manager) as keys:
        await keys.grant(reference, TENANT)
        tls, _ = await keys.bundles(reference, [], TENANT)
        assert tls is not None
        assert tls["private_key"] == key_pem().decode()
        assert len(tls["intermediates"]) == 1
        bare = manager.hold(certificate=parts["certificate"])
        await keys.grant(bare, TENANT)
        assert await keys.unreadable([bare], TENANT) == [bare]


async def test_what_can_be_read_and_is_no_bundle_is_told_as_such(front: Front, manager: KeyManager) -> None:
    reference = manager.keep(b"junk")
    with asking(front, manager) as keys:
        await keys.grant(reference, TENANT)
        with pytest.raises(ApiError) as refused:
            await keys.unreadable([reference], TENANT)
        assert refused.value.name == "UnreadablePKCS12"
        assert await keys.secret(reference, TENANT) == "junk"


async def test_what_cannot_be_read_is_none_or_named(front: Front, manager: KeyManager) -> None:
    missing = f"{manager.url}/v1/secrets/{uuid.uuid4()}"
    binary = manager.keep(b"\xff\xfe")
    with asking(front, manager) as keys:
        assert await keys.secret(missing, TENANT) is None
        await keys.grant(binary, TENANT)
        assert await keys.secret(binary, TENANT) is None
        with pytest.raises(ApiError, match="Could not retrieve certificate"):
            await keys.bundles(missing, [], TENANT)
        for junk in ("", "junk", "http://x/v1/orders/1", "https://elsewhere.invalid/v1/secrets/../../x"):
            with pytest.raises(ApiError):
                await keys.grant(junk, TENANT)
            assert await keys.unreadable([junk], TENANT) == [junk]


async def test_a_reference_leads_to_the_catalogued_key_manager_whatever_host_it_names(
    front: Front, manager: KeyManager
) -> None:
    reference = manager.keep(b"text")
    with asking(front, manager) as keys:
        await keys.grant(reference, TENANT)
        assert await keys.secret(reference, TENANT) == "text"
    assert reference.startswith("http://elsewhere.invalid")


async def test_a_slow_key_manager_is_not_waited_for_beyond_the_deadline(
    front: Front, manager: KeyManager
) -> None:
    reference = manager.keep(b"text")
    manager.readers[parsed(reference).id] = ["somebody"]
    manager.delay = 2.0
    with asking(front, manager, timeout=0.4) as keys:
        started = time.monotonic()
        assert await keys.secret(reference, TENANT) is None
        assert time.monotonic() - started < 1.5


def test_references_are_read_strictly() -> None:
    name = "6E0f5B5c-1111-4222-8333-0123456789ab"
    assert parsed(name) == Reference("secrets", name.lower())
    assert parsed(f"https://b/v1/containers/{name}/") == Reference("containers", name.lower())
    assert parsed(f"secrets/{name}").path == f"/secrets/{name.lower()}"
    for text in (
        "",
        "secrets/1",
        f"https://b/v1/orders/{name}",
        f"{name}/../x",
        f"secrets/{name}?x=1",
        f"secrets/{name}/acl",
    ):
        with pytest.raises(Unreadable):
            parsed(text)
