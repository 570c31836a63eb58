"""The port, whichever sender stands below: builds a request from its operation, keeps tokens, and judges the answer.

A request that creates or destroys is sent once and never again by us: its token is made fresh beforehand, and a 401
is an answer like any other.  Everything else may be sent a second time after a 401; a read also after a short pause
that the cloud asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

import orjson

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.limits import Circuit, CircuitOpen, Pace, retry_after
from roadstead.cloud.logins import (
    SCOPE_WORDS,
    foreign_trait,
    login_of,
    region_credential,
    service_root,
    service_url,
)
from roadstead.cloud.operations import Operation, operation
from roadstead.cloud.paging import BrokenList, MarkerGone, Query, takes_limit, whole_list
from roadstead.cloud.port import Answer, Call, CloudError, Scope, Verdict
from roadstead.cloud.sending import Access, Login, NotSent, Outgoing, RawAnswer, Sender, Unanswered
from roadstead.cloud.settings import CloudSettings
from roadstead.cloud.verdicts import NO_ANSWER, error_of, verdict

LOGIN = Operation("identity", "token.create", "POST", "/auth/tokens")
_TEXT_LIMIT = 2000
_T = TypeVar("_T", bound="RawAnswer | Access")


@dataclass(frozen=True)
class RequestNote:
    """One HTTP request, for metrics (openstack_api_*) and spans; bears no ids, only the path's template.

    status 0: no answer.  seconds: on the monotonic clock.
    """

    service: str
    verb: str
    method: str
    template: str
    status: int
    seconds: float
    scope: str
    region: str
    request_id: str | None
    verdict: Verdict | None


@dataclass(frozen=True)
class _Held:
    login: Login
    access: Access


@dataclass(frozen=True)
class _Refusal:
    """A login that was refused lately; asked again only after a pause, or with another credential."""

    login: Login
    error: CloudError
    until: float


@dataclass
class _Run:
    """One call on its way."""

    call: Call
    op: Operation
    path: str
    ends: float
    started_at: datetime
    requests: int = 0
    replayed: bool = False
    repeats: int = 0
    request_id: str | None = None
    status: int = 0


class CloudEngine:
    """`Cloud` over a Sender.  Safe for many calls at once on one loop; bounds are per region."""

    def __init__(
        self,
        sender: Sender,
        keyring: Keyring,
        clock: Clock,
        settings: CloudSettings | None = None,
        *,
        on_request: Callable[[RequestNote], None] | None = None,
        trace_headers: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        self._sender = sender
        self.keyring = keyring
        self._clock = clock
        self.settings = settings or CloudSettings()
        self._on_request = on_request
        self._trace_headers = trace_headers
        self._held: dict[Scope, _Held] = {}
        self._refused: dict[Scope, _Refusal] = {}
        self._renewing: dict[Scope, asyncio.Lock] = {}
        self._paces: dict[str, Pace] = {}
        self._circuits: dict[str, Circuit] = {}
        self.skews: dict[str, float] = {}
        """Seconds by which a region's clock was ahead of ours, by its last token or the date of its last answer."""

    # ---------------------------------------------------------------- the port

    async def call(self, call: Call) -> Answer:
        """Perform one operation; see `Cloud`."""
        op = operation(call.service, call.verb)
        deadline = self.settings.call_deadline if call.deadline is None else call.deadline
        run = _Run(call, op, "", self._clock.monotonic() + deadline, self._clock.now())
        query = _query(call.args.get("query"))
        if op.listing is not None:
            value: Any = await self._list(run, op.listing, query)
        else:
            raw = await self._exchange(run, query)
            value = self._value(run, raw)
        return Answer(value, run.status, run.request_id, run.started_at, run.requests)

    async def access(self, scope: Scope) -> Access:
        """The scope's token and catalog, for checks.  Raises CloudError as `call` does."""
        call = Call(scope, LOGIN.service, LOGIN.verb)
        ends = self._clock.monotonic() + self.settings.call_deadline
        run = _Run(call, LOGIN, LOGIN.path, ends, self._clock.now())
        try:
            return (await self._access(run)).access
        except NotSent as refused:
            raise CloudError(refused.verdict, call, text=refused.text) from None

    async def close(self) -> None:
        await self._sender.close()

    # ---------------------------------------------------------------- lists

    async def _list(self, run: _Run, listing: str, query: Query) -> list[Any]:
        limit = self.settings.page_limit if takes_limit(run.op.service, run.op.verb) else None

        async def fetch(page: Query) -> Any:
            try:
                return self._json(run, await self._exchange(run, page))
            except CloudError as error:
                if error.status in (400, 404) and _blames_marker(page, error.text):
                    raise MarkerGone from error
                raise

        try:
            return await whole_list(
                fetch,
                listing,
                query,
                limit=limit,
                pages_max=self.settings.pages_max,
                restarts=self.settings.list_restarts,
            )
        except BrokenList as broken:
            raise CloudError(
                Verdict.CONSISTENCY, run.call, status=run.status, text=str(broken), request_id=run.request_id
            ) from None

    # ---------------------------------------------------------------- one exchange

    async def _exchange(self, run: _Run, query: Query) -> RawAnswer:
        """Send, and send again where that is allowed, until there is a 2xx.  Raises CloudError for all else."""
        while True:
            try:
                held, raw = await self._send(run, query)
            except CircuitOpen as circuit:
                raise CloudError(
                    Verdict.UNAVAILABLE, run.call, text=str(circuit), retry_after=circuit.left
                ) from None
            except NotSent as refused:
                raise CloudError(refused.verdict, run.call, text=refused.text) from None
            except Unanswered as silence:
                raise CloudError(verdict(run.op, NO_ANSWER, None, ""), run.call, text=str(silence)) from None
            # A list of versions is answered "multiple choices" by some services.
            if 200 <= raw.status < 300 or (run.op.unversioned and raw.status == 300):
                return raw
            error = self._judge(run, raw)
            if not await self._may_repeat(run, held, error):
                raise error

    async def _may_repeat(self, run: _Run, held: _Held, error: CloudError) -> bool:
        if error.verdict is Verdict.UNAUTHORIZED:
            if self._held.get(run.call.scope) is held:
                del self._held[run.call.scope]
            once = run.op.creates or run.op.destructive or run.call.guard is not None
            if once or run.replayed:
                return False
            run.replayed = True
            return True
        if error.verdict is Verdict.THROTTLED:
            error.retry_after = error.retry_after or self.settings.throttle_default
            self._pace(run.call.scope.region).hold(error.retry_after)
            run.repeats += 1
            return not run.op.writes and run.repeats <= self.settings.throttle_repeats and self._can_wait(run)
        return False

    async def _send(self, run: _Run, query: Query) -> tuple[_Held, RawAnswer]:
        region = run.call.scope.region
        await self._keep_pace(run)
        with self._circuit(region).attempt() as attempt:
            try:
                held = await self._access(run)
                credential = region_credential(self.keyring, region)
                base = service_url(run.op.service, held.login, credential, held.access)
                base = service_root(base) if run.op.unversioned else base
                run.path = run.path or _path(run, held.access)
                request = Outgoing(
                    region,
                    run.op.method,
                    base + run.path,
                    query,
                    run.call.args.get("json"),
                    self._headers(run.op, held.access),
                    run.call.guard,
                    self._left(run),
                )
                raw = await self._noted(run, run.op, self._sender.send(held.login, request))
            except NotSent as refused:
                attempt.reached = False if refused.connecting else None
                raise
            except Unanswered:
                attempt.reached = False
                raise
            attempt.reached = True
            return held, raw

    async def _noted(self, run: _Run, op: Operation, sending: Awaitable[_T]) -> _T:
        """Await one transport call, count it and tell the listener how it went."""
        begun = self._clock.monotonic()
        own = op is run.op  # a login is shared by many calls and counts for none
        if own and run.requests == 0:
            run.started_at = self._clock.now()
        status, request_id, means = 0, None, None
        try:
            raw = await sending
            run.requests += own
            if isinstance(raw, RawAnswer):
                status, request_id = raw.status, raw.request_id
                self._note_date(run.call.scope.region, raw)
                if not 200 <= raw.status < 300:
                    means = verdict(
                        op, raw.status, *error_of(raw.body), retry_after(raw.headers, self._clock.now())
                    )
            else:
                status = 201
            if own:
                run.status, run.request_id = status, request_id
            return raw
        except NotSent as refused:
            means = refused.verdict
            raise
        except Unanswered:
            run.requests += own
            means = verdict(op, NO_ANSWER, None, "")
            raise
        finally:
            if self._on_request is not None:
                scope = run.call.scope
                seconds = self._clock.monotonic() - begun
                self._on_request(
                    RequestNote(
                        op.service, op.verb, op.method, op.path, status, seconds,
                        SCOPE_WORDS[type(scope)], scope.region, request_id, means,
                    )
                )  # fmt: skip

    def _judge(self, run: _Run, raw: RawAnswer) -> CloudError:
        kind, text = error_of(raw.body)
        pause = retry_after(raw.headers, self._clock.now())
        return CloudError(
            verdict(run.op, raw.status, kind, text, pause),
            run.call,
            status=raw.status,
            text=text[:_TEXT_LIMIT],
            request_id=raw.request_id,
            retry_after=pause or None,
        )

    # ---------------------------------------------------------------- tokens

    async def _access(self, run: _Run) -> _Held:
        """The scope's token with enough life left; one caller renews while the others wait.

        Raises NotSent or Unanswered as a sender does, CloudError for what Keystone refused.
        """
        scope = run.call.scope
        login = login_of(self.keyring, scope)
        held = self._fresh(scope, login)
        if held is not None:
            return held
        renewing = self._renewing.setdefault(scope, asyncio.Lock())
        if renewing.locked():
            await self._wait_for(renewing, run)
        async with renewing:
            login = login_of(self.keyring, scope)
            held = self._fresh(scope, login)
            if held is None:
                held = await self._log_in(run, scope, login)
            return held

    async def _wait_for(self, renewing: asyncio.Lock, run: _Run) -> None:
        """Wait for another caller's login, no longer than this call may take."""
        try:
            async with asyncio.timeout(self._left(run)), renewing:
                return
        except TimeoutError:
            raise NotSent(Verdict.UNAVAILABLE, "another call's login took too long") from None

    def _fresh(self, scope: Scope, login: Login) -> _Held | None:
        held = self._held.get(scope)
        if held is None or held.login != login:
            return None
        margin = timedelta(seconds=self.settings.token_margin)
        return held if held.access.expires_at - self._clock.now() > margin else None

    async def _log_in(self, run: _Run, scope: Scope, login: Login) -> _Held:
        refused = self._refused.get(scope)
        if refused is not None and refused.login == login and self._clock.monotonic() < refused.until:
            raise NotSent(refused.error.verdict, refused.error.text)
        self._held.pop(scope, None)
        try:
            answer = await self._noted(run, LOGIN, self._sender.login(login, self._left(run)))
        except Unanswered as silence:
            # The call itself did not leave, whatever became of the login.
            raise NotSent(
                Verdict.UNAVAILABLE, f"no answer to the login: {silence}", connecting=True
            ) from None
        if isinstance(answer, RawAnswer):
            raise self._refuse(run, scope, login, answer)
        region = region_credential(self.keyring, scope.region)
        foreign = foreign_trait(scope, login, region, answer)
        if foreign is not None:
            error = CloudError(Verdict.WRONG_CLOUD, run.call, text=foreign)
            self._remember(scope, login, error)
            raise NotSent(Verdict.WRONG_CLOUD, foreign)
        self._refused.pop(scope, None)
        if answer.issued_at is not None:
            self.skews[scope.region] = (answer.issued_at - self._clock.now()).total_seconds()
        held = _Held(login, answer)
        self._held[scope] = held
        return held

    def _refuse(self, run: _Run, scope: Scope, login: Login, raw: RawAnswer) -> NotSent:
        kind, text = error_of(raw.body)
        pause = retry_after(raw.headers, self._clock.now())
        means = verdict(LOGIN, raw.status, kind, text, pause)
        if means is Verdict.THROTTLED:
            self._pace(scope.region).hold(pause or self.settings.throttle_default)
        if means in (Verdict.UNAUTHORIZED, Verdict.FORBIDDEN):
            self._remember(
                scope, login, CloudError(means, run.call, status=raw.status, text=text[:_TEXT_LIMIT])
            )
        # Whatever Keystone answered, the call itself did not leave.
        if means not in (Verdict.UNAUTHORIZED, Verdict.FORBIDDEN, Verdict.THROTTLED):
            means = Verdict.UNAVAILABLE
        return NotSent(means, f"the login was refused ({raw.status}): {text[:_TEXT_LIMIT]}")

    def _remember(self, scope: Scope, login: Login, error: CloudError) -> None:
        until = self._clock.monotonic() + self.settings.refused_login_pause
        self._refused[scope] = _Refusal(login, error, until)

    # ---------------------------------------------------------------- limits

    def _pace(self, region: str) -> Pace:
        return self._paces.setdefault(region, Pace(self._clock))

    def _circuit(self, region: str) -> Circuit:
        made = self._circuits.get(region)
        if made is None:
            made = Circuit(self._clock, self.settings.circuit_failures, self.settings.circuit_open)
            self._circuits[region] = made
        return made

    def is_shut(self, region: str) -> bool:
        """Whether the region's circuit is open: a condition on the Region, nothing for other regions."""
        return self._circuit(region).is_open

    def _can_wait(self, run: _Run) -> bool:
        pause = self._pace(run.call.scope.region).left()
        return pause <= self.settings.throttle_wait and pause < run.ends - self._clock.monotonic()

    async def _keep_pace(self, run: _Run) -> None:
        """Wait out the cloud's pause when it is short, else end the call as THROTTLED without asking."""
        pace = self._pace(run.call.scope.region)
        while (pause := pace.left()) > 0:
            if not self._can_wait(run):
                raise CloudError(
                    Verdict.THROTTLED, run.call, text="the cloud's pause is on", retry_after=pause
                )
            await self._clock.sleep(pause)

    def _left(self, run: _Run) -> float:
        """Seconds left of the call.  NotSent when there are none."""
        left = run.ends - self._clock.monotonic()
        if left <= 0:
            raise NotSent(Verdict.UNAVAILABLE, "the call's time was over before it could be sent")
        return left

    # ---------------------------------------------------------------- bytes

    def _headers(self, op: Operation, access: Access) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "roadstead", "X-Auth-Token": access.token}
        # Asked which versions there are, no service should choke on the one that we hope for.
        service = "" if op.unversioned else op.service
        if service == "compute":
            headers["OpenStack-API-Version"] = f"compute {self.settings.nova_microversion}"
        elif service == "placement":
            headers["OpenStack-API-Version"] = "placement 1.22"
        elif service == "baremetal":
            headers["OpenStack-API-Version"] = "baremetal 1.11"
            headers["X-OpenStack-Ironic-API-Version"] = "1.11"
        if self._trace_headers is not None:
            headers.update(self._trace_headers())
        return headers

    def _json(self, run: _Run, raw: RawAnswer) -> Any:
        try:
            return orjson.loads(raw.body)
        except orjson.JSONDecodeError:
            self._malformed(run, raw, "the answer is no JSON")

    def _value(self, run: _Run, raw: RawAnswer) -> Any:
        """The answer's payload: the object in its envelope, else the whole body, None where there is none."""
        if run.op.envelope is None:
            if not raw.body.strip() or (
                run.op.destructive and not raw.body.lstrip().startswith((b"{", b"["))
            ):
                return None
            return self._json(run, raw)
        body = self._json(run, raw)
        if not isinstance(body, dict) or not isinstance(body.get(run.op.envelope), dict):
            self._malformed(run, raw, f"the answer has no {run.op.envelope!r}")
        return body[run.op.envelope]

    def _malformed(self, run: _Run, raw: RawAnswer, text: str) -> NoReturn:
        # The cloud said yes: what it did has been done, only what came of it is not known.
        means = Verdict.UNKNOWN if run.op.creates or run.op.destructive else Verdict.CONSISTENCY
        raise CloudError(means, run.call, status=raw.status, text=text, request_id=raw.request_id)

    def _note_date(self, region: str, raw: RawAnswer) -> None:
        said = raw.headers.get("date")
        if said:
            try:
                self.skews[region] = (parsedate_to_datetime(said) - self._clock.now()).total_seconds()
            except (ValueError, TypeError):
                self.skews.pop(region, None)


def _path(run: _Run, access: Access) -> str:
    """The operation's path with everything filled in and quoted.  NotSent for an argument that is no id."""
    path = run.op.path
    for name, value in (("project_id", access.project_id), *run.call.args.items()):
        hole = f"{{{name}}}"
        if hole not in path:
            continue
        text = "" if value is None else str(value)
        if text in ("", ".", ".."):
            raise NotSent(Verdict.CONSISTENCY, f"{run.op.service} {run.op.verb} needs a value for {name}")
        path = path.replace(hole, quote(text, safe=""))
    if "{" in path:
        raise NotSent(Verdict.CONSISTENCY, f"{run.op.service} {run.op.verb} lacks an argument for {path}")
    return path


def _query(given: Mapping[str, Any] | None) -> Query:
    """Query pairs: None is left out, booleans are spelt as services read them, a list repeats its key."""
    pairs: list[tuple[str, str]] = []
    for key, value in (given or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(key, str(v).lower() if isinstance(v, bool) else str(v)) for v in values if v is not None]
    return tuple(pairs)


def _blames_marker(page: Query, text: str) -> bool:
    marker = dict(page).get("marker")
    return marker is not None and ("marker" in text.lower() or marker in text)
