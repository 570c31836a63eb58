"""The sender to a real cloud: openstacksdk connections in bounded worker threads.

The library blocks, so each region has a share of threads and no call waits longer than its deadline; a thread counts as
running until it returns, whoever has stopped waiting for it.  The library repeats nothing, follows nothing and logs in
only when told: those are decisions, and they are made above.
"""

import asyncio
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar

import requests
import urllib3.exceptions
from keystoneauth1 import exceptions as ka_exceptions
from keystoneauth1 import session as ka_session
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.identity import v3
from openstack.connection import Connection

from roadstead.cloud.port import Verdict
from roadstead.cloud.sending import Access, Login, NotSent, Outgoing, RawAnswer, Unanswered
from roadstead.cloud.settings import CloudSettings

_BODY_LIMIT = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_LEAST_TIME = 0.05  # a request with less time left would only be doubted
_T = TypeVar("_T")

# Faults that happen before the first byte of the request is on the wire.
_NEVER_LEFT = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.ProxyError,
    requests.exceptions.ConnectTimeout,
    requests.exceptions.ProxyError,
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    ssl.SSLCertVerificationError,
)


class _Ticket:
    """Settles whether bytes left before the caller gave up; asked on the sending thread and on the loop."""

    def __init__(self, guard: Callable[[], bool] | None = None) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._left = False
        self._abandoned = False

    def leave(self) -> None:
        """The last moment before sending.  NotSent when nobody waits any more or the guard refuses."""
        with self._lock:
            if self._abandoned:
                raise NotSent(Verdict.UNAVAILABLE, "nobody waits for the request any more")
            if self._guard is not None and not self._guard():
                raise NotSent(Verdict.LEASE_LOST)
            self._left = True

    def abandon(self) -> bool:
        """Give up; True when nothing had left, and then nothing will."""
        with self._lock:
            self._abandoned = not self._left
            return self._abandoned


class _Share:
    """One region's threads and its pool of HTTP connections."""

    def __init__(self, region: str, settings: CloudSettings) -> None:
        self.threads = ThreadPoolExecutor(settings.threads_per_region, thread_name_prefix=f"cloud-{region}")
        self.http = requests.Session()
        # Identities share the sockets and must not share cookies.
        self.http.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = ka_session.TCPKeepAliveAdapter(pool_maxsize=settings.threads_per_region, max_retries=0)
        self.http.mount("http://", adapter)
        self.http.mount("https://", adapter)


@dataclass(frozen=True)
class _Client:
    """One scope's connection with the plugin that logs it in."""

    connection: Connection
    plugin: v3.Password


class SdkSender:
    """A Sender to real clouds.  Use on one loop; `close` ends its threads when they return."""

    def __init__(self, settings: CloudSettings | None = None) -> None:
        self._settings = settings or CloudSettings()
        self._shares: dict[str, _Share] = {}
        self._clients: OrderedDict[Login, _Client] = OrderedDict()
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}

    def running(self, region: str) -> int:
        """Threads of the region that are busy now, those whose caller gave up included."""
        with self._lock:
            return self._running.get(region, 0)

    async def login(self, login: Login, deadline: float) -> Access | RawAnswer:
        client = self._client(login)
        return await self._in_thread(
            login.region, deadline, _Ticket(), lambda ticket: _log_in(client, ticket)
        )

    async def send(self, login: Login, request: Outgoing) -> RawAnswer:
        client = self._client(login)
        ends = time.monotonic() + request.deadline
        connect = self._settings.connect_timeout
        return await self._in_thread(
            request.region,
            request.deadline,
            _Ticket(request.guard),
            lambda ticket: _send(client, request, ticket, ends, connect),
        )

    async def close(self) -> None:
        self._clients.clear()
        for share in self._shares.values():
            share.threads.shutdown(wait=False, cancel_futures=True)
            share.http.close()
        self._shares.clear()

    # ---------------------------------------------------------------- clients

    def _share(self, region: str) -> _Share:
        made = self._shares.get(region)
        if made is None:
            made = self._shares[region] = _Share(region, self._settings)
        return made

    def _client(self, login: Login) -> _Client:
        """The scope's client; another version of its credential is another client."""
        found = self._clients.get(login)
        if found is None:
            plugin = v3.Password(
                login.auth_url,
                user_id=login.user_id,
                password=login.password,
                project_id=login.project_id,
                domain_id=login.domain_id,
                reauthenticate=False,
            )
            session = ka_session.Session(
                auth=plugin,
                session=self._share(login.region).http,
                verify=self._settings.ca_file or True,
                timeout=self._settings.call_deadline,
                redirect=False,
            )
            found = self._clients[login] = _Client(Connection(session=session, app_name="roadstead"), plugin)
            while len(self._clients) > self._settings.clients_max:
                self._clients.popitem(last=False)
        self._clients.move_to_end(login)
        return found

    # ---------------------------------------------------------------- threads

    async def _in_thread(
        self, region: str, deadline: float, ticket: _Ticket, work: Callable[[_Ticket], _T]
    ) -> _T:
        future = self._share(region).threads.submit(self._counted, region, ticket, work)
        waiting = asyncio.wrap_future(future)
        # Nobody may be left to fetch the result; that is no fault to report.
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.wait_for(asyncio.shield(waiting), deadline)
        except TimeoutError:
            if ticket.abandon():
                future.cancel()
                raise NotSent(Verdict.UNAVAILABLE, "no thread of the region came free in time") from None
            raise Unanswered("no answer within the deadline") from None
        except asyncio.CancelledError:
            if ticket.abandon():
                future.cancel()
            raise

    def _counted(self, region: str, ticket: _Ticket, work: Callable[[_Ticket], _T]) -> _T:
        with self._lock:
            self._running[region] = self._running.get(region, 0) + 1
        try:
            return work(ticket)
        finally:
            with self._lock:
                self._running[region] -= 1


# ---------------------------------------------------------------- on the sending thread


def _log_in(client: _Client, ticket: _Ticket) -> Access | RawAnswer:
    ticket.leave()
    try:
        ref = client.plugin.get_auth_ref(client.connection.session)
        return _access(ref)
    except ka_exceptions.HttpError as error:
        if error.response is None:
            raise NotSent(Verdict.UNAVAILABLE, f"the login failed: {error}") from None
        return RawAnswer(
            error.response.status_code, headers_of(error.response), error.response.content or b""
        )
    except (
        ka_exceptions.ClientException,
        requests.exceptions.RequestException,
        ValueError,
        KeyError,
    ) as error:
        raise silence(error) from error


def _send(client: _Client, request: Outgoing, ticket: _Ticket, ends: float, connect: float) -> RawAnswer:
    left = ends - time.monotonic()
    if left < _LEAST_TIME:
        raise NotSent(Verdict.UNAVAILABLE, "no thread of the region came free in time")
    ticket.leave()
    try:
        response = client.connection.session.request(
            request.url,
            request.method,
            json=request.json,
            params=list(request.query),
            headers=dict(request.headers),
            authenticated=False,  # the token stands in the headers
            allow_reauth=False,
            raise_exc=False,
            redirect=False,
            connect_retries=0,
            status_code_retries=0,
            log=False,  # bodies hold secrets
            stream=True,
            timeout=(min(connect, left), left),
        )
        with response:
            return RawAnswer(response.status_code, headers_of(response), body_of(response, ends))
    except (
        ka_exceptions.ClientException,
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as error:
        raise silence(error) from error


def _access(ref: AccessInfoV3) -> Access:
    """The library's view of a token, as ours.  ValueError when it lacks what every token has."""
    if not ref.auth_token or not ref.user_id or ref.expires is None:
        raise ValueError("the answer to the login is no token")
    catalog = ref.service_catalog.catalog if ref.has_service_catalog() else ()
    return Access(
        token=ref.auth_token,
        user_id=ref.user_id,
        project_id=ref.project_id,
        project_domain_id=ref.project_domain_id,
        domain_id=ref.domain_id,
        roles=frozenset(ref.role_names or ()),
        expires_at=ref.expires,
        catalog=tuple(catalog),
        issued_at=ref.issued,
    )


def headers_of(response: requests.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def body_of(response: requests.Response, ends: float = float("inf")) -> bytes:
    """The whole body; a server that drips it is left at the deadline, or the thread would never come back."""
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_content(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > _BODY_LIMIT:
            raise Unanswered("the answer is too large")
        if time.monotonic() > ends:
            raise Unanswered("the answer came too slowly")
    return b"".join(chunks)


def silence(error: BaseException) -> NotSent | Unanswered:
    """What a transport fault means: nothing left, or nobody knows."""
    if any(isinstance(each, _NEVER_LEFT) for each in _causes(error)):
        return NotSent(Verdict.UNAVAILABLE, str(error), connecting=True)
    return Unanswered(str(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The fault, what it wraps and what that came from; each once."""
    waiting: list[Any] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
