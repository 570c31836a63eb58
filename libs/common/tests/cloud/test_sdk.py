"""The sender to real clouds against a socket that misbehaves: threads, deadlines, and what a fault proves."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from roadstead.cloud.port import Verdict
from roadstead.cloud.sdk import SdkSender
from roadstead.cloud.sending import Access, Login, NotSent, Outgoing, RawAnswer, Unanswered
from roadstead.cloud.settings import CloudSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(30)]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nX-Openstack-Request-Id: req-9\r\n\r\n{}"


class Door:
    """A TCP server that runs `behave(socket, request bytes)` for each request."""

    def __init__(self, behave: Callable[[socket.socket, bytes], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        self._behave = behave
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                more = client.recv(65536)
                if not more:
                    return
                data += more
            head, _, body = data.partition(b"\r\n\r\n")
            sizes = [
                line.split(b":")[1]
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ]
            while len(body) < int(sizes[0] if sizes else 0):
                body += client.recv(65536)
            self.requests.append(head + b"\r\n\r\n" + body)
            self._behave(client, data)
        except OSError:
            return

    def close(self) -> None:
        self._listener.close()
        for client in self._open:
            client.close()


@pytest.fixture
def door() -> Iterator[Callable[..., Door]]:
    made: list[Door] = []

    def make(behave: Callable[[socket.socket, bytes], None]) -> Door:
        made.append(Door(behave))
        return made[-1]

    yield make
    for each in made:
        each.close()


def answering(data: bytes) -> Callable[[socket.socket, bytes], None]:
    def behave(client: socket.socket, _: bytes) -> None:
        client.sendall(data)
        client.close()

    return behave


def silent(client: socket.socket, _: bytes) -> None:
    time.sleep(20)


def login_at(url: str, **changes: Any) -> Login:
    return Login("r1", (1,), f"{url}/v3", "u1", "secret", **{"project_id": "p1", **changes})


def post(url: str, **changes: Any) -> Outgoing:
    return Outgoing("r1", "POST", f"{url}/servers", json={"a": None}, **{"deadline": 5.0, **changes})


async def send(sender: SdkSender, url: str, **changes: Any) -> RawAnswer:
    return await sender.send(login_at(url), post(url, **changes))


async def test_a_request_travels_as_it_was_built(door: Any) -> None:
    there = door(answering(OK))
    sender = SdkSender()
    query = (("name", "^a$"), ("f", "1"), ("f", "2"))
    raw = await send(sender, there.url, query=query, headers={"X-Auth-Token": "t", "traceparent": "00-1"})
    assert (raw.status, raw.body, raw.request_id) == (200, b"{}", "req-9")
    head, _, body = there.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /servers?name=%5Ea%24&f=1&f=2 HTTP/1.1")
    assert b"X-Auth-Token: t" in head
    assert b"traceparent: 00-1" in head
    assert json.loads(body) == {"a": None}
    await sender.close()


@pytest.mark.parametrize("status", [300, 301, 302, 307, 401, 404, 500, 503])
async def test_nothing_is_followed_or_repeated(door: Any, status: int) -> None:
    there = door(answering(b"HTTP/1.1 %d X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n" % status))
    sender = SdkSender()
    assert (await send(sender, there.url)).status == status
    assert len(there.requests) == 1
    await sender.close()


async def test_a_shut_door_proves_that_nothing_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    sender = SdkSender()
    with pytest.raises(NotSent) as caught:
        await send(sender, url)
    assert (caught.value.verdict, caught.value.connecting) == (Verdict.UNAVAILABLE, True)
    await sender.close()


async def test_a_name_that_nobody_knows_proves_that_nothing_left() -> None:
    sender = SdkSender()
    with pytest.raises(NotSent) as caught:
        await send(sender, "http://no-such-host.invalid")
    assert caught.value.connecting
    await sender.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"garbage\r\n\r\n",
    ],
)
async def test_half_an_answer_is_no_answer(door: Any, answer: bytes) -> None:
    there = door(answering(answer))
    sender = SdkSender()
    with pytest.raises(Unanswered):
        await send(sender, there.url)
    assert len(there.requests) == 1
    await sender.close()


async def test_plain_text_behind_https_is_no_answer_and_no_crash(door: Any) -> None:
    there = door(answering(OK))
    sender = SdkSender()
    with pytest.raises((NotSent, Unanswered)):
        await send(sender, there.url.replace("http:", "https:"), deadline=1.0)
    await sender.close()


async def test_a_dripping_answer_ends_at_the_deadline_and_frees_its_thread(door: Any) -> None:
    def drip(client: socket.socket, _: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _n in range(200):
            client.sendall(b"1\r\n \r\n")
            time.sleep(0.05)

    there = door(drip)
    sender = SdkSender()
    begun = time.monotonic()
    with pytest.raises(Unanswered):
        await send(sender, there.url, deadline=0.4)
    assert time.monotonic() - begun < 1.5
    for _ in range(40):
        if sender.running("r1") == 0:
            break
        await asyncio.sleep(0.05)
    assert sender.running("r1") == 0
    await sender.close()


async def test_a_region_never_uses_more_than_its_share_of_threads(door: Any) -> None:
    there = door(silent)
    sender = SdkSender(CloudSettings(threads_per_region=3))
    results = await asyncio.gather(
        *(send(sender, there.url, deadline=0.5) for _ in range(10)), return_exceptions=True
    )
    assert sum(isinstance(each, Unanswered) for each in results) == 3
    never = [each for each in results if isinstance(each, NotSent)]
    assert {each.verdict for each in never} == {Verdict.UNAVAILABLE}
    assert len(never) == 7
    assert len(there.requests) == 3
    await sender.close()


async def test_one_regions_silence_leaves_another_region_alone(door: Any) -> None:
    dead, alive = door(silent), door(answering(OK))
    sender = SdkSender(CloudSettings(threads_per_region=1))
    waiting = [asyncio.create_task(send(sender, dead.url, deadline=3.0)) for _ in range(4)]
    await asyncio.sleep(0.1)
    begun = time.monotonic()
    other = Login("r2", (1,), f"{alive.url}/v3", "u", "p", project_id="p")
    assert (await sender.send(other, Outgoing("r2", "GET", f"{alive.url}/x", deadline=2.0))).status == 200
    assert time.monotonic() - begun < 1.0
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await sender.close()


async def test_a_cancelled_call_that_waits_for_a_thread_is_never_sent(door: Any) -> None:
    there = door(silent)
    sender = SdkSender(CloudSettings(threads_per_region=1))
    first = asyncio.create_task(send(sender, there.url, deadline=0.6))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(send(sender, there.url, deadline=5.0))
    await asyncio.sleep(0.1)
    second.cancel()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert isinstance(results[0], Unanswered)
    assert isinstance(results[1], asyncio.CancelledError)
    await asyncio.sleep(0.5)
    assert len(there.requests) == 1
    await sender.close()


async def test_the_guard_is_asked_on_the_sending_thread_when_its_turn_comes(door: Any) -> None:
    """A request that queued behind another must ask after the wait, not before it."""

    def slow(client: socket.socket, _: bytes) -> None:
        time.sleep(0.4)
        client.sendall(OK)
        client.close()

    there = door(slow)
    sender = SdkSender(CloudSettings(threads_per_region=1))
    holds = True
    threads: list[str] = []

    def guard() -> bool:
        threads.append(threading.current_thread().name)
        return holds

    first = asyncio.create_task(send(sender, there.url, guard=guard))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(send(sender, there.url, guard=guard))
    await asyncio.sleep(0.1)
    holds = False
    assert (await first).status == 200
    with pytest.raises(NotSent) as caught:
        await second
    assert caught.value.verdict is Verdict.LEASE_LOST
    assert len(there.requests) == 1
    assert all(name.startswith("cloud-r1") for name in threads)
    await sender.close()


async def test_a_login_is_read_and_a_refused_one_handed_on(door: Any) -> None:
    token = {
        "token": {
            "user": {"id": "u1", "name": "n", "domain": {"id": "d", "name": "d"}},
            "project": {"id": "p1", "name": "p", "domain": {"id": "d1", "name": "d"}},
            "roles": [{"id": "1", "name": "member"}],
            "expires_at": "2026-01-01T01:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "methods": ["password"],
            "catalog": [{"type": "compute", "name": "nova", "endpoints": []}],
        }
    }
    data = json.dumps(token).encode()
    there = door(
        answering(
            b"HTTP/1.1 201 OK\r\nX-Subject-Token: tok\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)
        )
    )
    sender = SdkSender()
    access = await sender.login(login_at(there.url), 5.0)
    assert isinstance(access, Access)
    assert (access.token, access.user_id, access.project_id, access.project_domain_id) == (
        "tok",
        "u1",
        "p1",
        "d1",
    )
    assert access.roles == {"member"}
    assert access.expires_at.isoformat() == "2026-01-01T01:00:00+00:00"
    assert access.issued_at is not None
    assert access.issued_at.isoformat() == "2026-01-01T00:00:00+00:00"
    assert "tok" not in repr(access)
    refusing = door(answering(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}"))
    refused = await sender.login(login_at(refusing.url), 5.0)
    assert isinstance(refused, RawAnswer)
    assert refused.status == 401
    assert len(refusing.requests) == 1
    await sender.close()


async def test_the_number_of_clients_is_bounded(door: Any) -> None:
    there = door(answering(OK))
    sender = SdkSender(CloudSettings(clients_max=3))
    for n in range(10):
        await sender.send(login_at(there.url, project_id=f"p{n}"), Outgoing("r1", "GET", f"{there.url}/x"))
    assert len(sender._clients) == 3
    await sender.close()


def test_secrets_are_not_printed() -> None:
    assert "secret" not in repr(login_at("http://x"))
