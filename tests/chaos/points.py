"""Named points of a service's work, and what is done to its own process when an armed one is reached.

The store, the cloud and the broker of a service are wrapped; each operation has a point before and one after it, and a call to
the cloud one while it is under way.  A test arms a point by putting a file into a folder; the first process that reaches it for
the resource named in the file takes the file away and then kills (or stops) itself.  So nothing in the product knows of it.
"""

import asyncio
import contextlib
import inspect
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

import nats.aio.msg

from roadstead.assembly import Platform
from roadstead.store.api import Store

UNDER_WAY = 0.4  # seconds after which a call counts as under way; the cloud must be slower than that
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
RULES = {
    "ingest", "refuse_unread", "observe", "reference_add", "reference_remove", "granted", "intend",
    "save_record", "set_aside", "finish", "pause", "tell",
}  # fmt: skip


@dataclass(frozen=True)
class Arm:
    """One wish.  point: a pattern of point names; match: a text that stands in what the operation is about."""

    name: str
    point: str
    match: str
    service: str
    action: str = "kill"

    def put(self, folder: Path) -> None:
        fresh = folder / f"{self.name}.new"
        fresh.write_text(json.dumps(asdict(self)))
        fresh.rename(folder / f"{self.name}.arm")

    def hit(self, folder: Path) -> int | None:
        """The process that it hit, None while it waits."""
        try:
            return int((folder / f"{self.name}.hit").read_text() or 0) or None
        except (FileNotFoundError, ValueError):
            return None


class Points:
    """The armed points of one process."""

    def __init__(self, service: str, folder: Path) -> None:
        self._service = service
        self._folder = folder
        self._seen: dict[str, Arm] = {}

    def _armed(self) -> Iterator[tuple[Path, Arm]]:
        for entry in os.scandir(self._folder):
            if not entry.name.endswith(".arm"):
                continue
            arm = self._seen.get(entry.name)
            if arm is None:
                with contextlib.suppress(FileNotFoundError):
                    arm = self._seen[entry.name] = Arm(**json.loads(Path(entry.path).read_text()))
            if arm is not None and arm.service == self._service:
                yield Path(entry.path), arm

    def reached(self, point: str, about: Callable[[], str]) -> None:
        """Ends (or stops) the process here when this point is armed for what the operation is about."""
        text: str | None = None
        for path, arm in self._armed():
            if not fnmatchcase(point, arm.point):
                continue
            text = about() if text is None else text
            if arm.match not in text:
                continue
            hit = path.with_suffix(".hit")
            try:
                path.rename(hit)  # one process alone succeeds
            except FileNotFoundError:
                continue
            hit.write_text(str(os.getpid()))
            os.kill(os.getpid(), SIGNALS[arm.action])

    @contextlib.contextmanager
    def around(self, point: str, about: Callable[[], str]) -> Iterator[None]:
        """Points before and after; after only when nothing was raised."""
        self.reached(f"{point}.before", about)
        yield
        self.reached(f"{point}.after", about)


def wrapped(platform: Platform, points: Points) -> Platform:
    """The same platform with points in it."""
    _point_acknowledgements(points)
    return replace(
        platform,
        store=cast(Store, PointedStore(platform.store, points)),
        cloud=PointedCloud(platform.cloud, points),
        broker=PointedBroker(platform.broker, points),
    )


class PointedStore:
    """`store.<rule>`: the transaction of one rule; an intent and the end of a pass also name their write."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def change(self, key: Any, rule: Any, known: Any = None) -> Any:
        given = inspect.getclosurevars(rule).nonlocals
        with self._points.around(f"store.{name_of(rule, given)}", lambda: f"{key} {given}"):
            return await self._inner.change(key, rule, known)

    async def change_document(self, name: str, rule: Any) -> Any:
        with self._points.around(f"store.document.{name.split('.')[0]}", lambda: name):
            return await self._inner.change_document(name, rule)

    async def claim(self, *args: Any, **options: Any) -> Any:
        leases = await self._inner.claim(*args, **options)
        if leases:
            self._points.reached("store.claim.after", lambda: str(leases))
        return leases

    async def outbox_take(self, limit: int, seconds: float) -> Any:
        self._taken = await self._inner.outbox_take(limit, seconds)
        return self._taken

    async def outbox_done(self, ids: Any) -> None:
        with self._points.around("store.outbox_done", lambda: str([i.outgoing.subject for i in self._taken])):
            await self._inner.outbox_done(ids)


def name_of(rule: Any, given: Mapping[str, Any]) -> str:
    """What a rule handed to the store is, from the function that it calls."""
    if callable(given.get("rule")):  # the caller chose between two
        return str(given["rule"].__name__)
    code = getattr(rule, "__code__", None)
    name = next((n for n in code.co_names if n in RULES), rule.__name__) if code else type(rule).__name__
    if name == "intend":
        return f"intend.{given['writes'][-1]['verb']}"
    if name == "finish":
        verbs = [w["verb"] for w in given["end"].writes]
        return f"finish.{verbs[-1]}" if verbs else "finish"
    return str(name)


class PointedCloud:
    """`cloud.<service>.<verb>`; `.during` while the answer of a slow call is waited for."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def call(self, call: Any) -> Any:
        name = f"cloud.{call.service}.{call.verb}"

        def about() -> str:
            return f"{call.args} {call.scope}"

        self._points.reached(f"{name}.before", about)
        during = asyncio.get_running_loop().call_later(
            UNDER_WAY, self._points.reached, f"{name}.during", about
        )
        try:
            answer = await self._inner.call(call)
        finally:
            during.cancel()
        self._points.reached(f"{name}.after", about)
        return answer


class PointedBroker:
    """`publish.<word>`, `purge.<stream>`, `request.<subject>`."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> Any:
        with self._points.around(f"publish.{subject.split('.')[0]}", lambda: subject):
            return await self._inner.publish(subject, payload, headers)

    async def purge(self, stream: str, subject: str, **limits: Any) -> None:
        with self._points.around(f"purge.{stream}", lambda: subject):
            await self._inner.purge(stream, subject, **limits)

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Any:
        with self._points.around(f"request.{subject}", lambda: str(payload)):
            return await self._inner.request(subject, payload)


def _point_acknowledgements(points: Points) -> None:
    """`ack.<word>`; the acknowledgement is the client library's, and the one thing that is replaced in place."""
    message: Any = nats.aio.msg.Msg
    plain = message.ack

    async def ack(self: Any) -> None:
        with points.around(f"ack.{self.subject.split('.')[0]}", lambda: str(self.subject)):
            await plain(self)

    message.ack = ack
