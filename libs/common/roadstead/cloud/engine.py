"""The port, whichever sender stands below: builds a request from its operation, keeps tokens, and judges the answer.

A request that creates or destroys is sent once and never again by us: its token is made fresh beforehand, and a 401
is an answer like any other.  Everything else may be sent a second time after a 401; a read also after a short pause
that the cloud asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn
from urllib.parse import quote

import orjson

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.journal import Journal, RequestNote
from roadstead.cloud.limits import CircuitOpen, Limits, retry_after
from roadstead.cloud.logins import region_credential, service_root, service_url
from roadstead.cloud.operations import Operation, operation
from roadstead.cloud.paging import BrokenList, MarkerGone, Query, takes_limit, whole_list
from roadstead.cloud.port import Answer, Call, CloudError, Scope, Verdict
from roadstead.cloud.sending import Access, Login, NotSent, Outgoing, RawAnswer, Sender, Unanswered
from roadstead.cloud.settings import CloudSettings
from roadstead.cloud.tokens import LOGIN, Held, Tokens
from roadstead.cloud.verdicts import NO_ANSWER, error_of, verdict

__all__ = ["CloudEngine", "RequestNote"]

_TEXT_LIMIT = 2000


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
        on_circuit: Sequence[Callable[[str, bool], None]] = (),
    ) -> None:
        """on_circuit: told of each region whose circuit opens (True) or closes; listeners may be added later."""
        self._sender = sender
        self.keyring = keyring
        self._clock = clock
        self.settings = settings or CloudSettings()
        self._trace_headers = trace_headers
        self._journal = Journal(clock, on_request)
        self._on_circuit = on_circuit
        self._limits = Limits(
            clock, self.settings.circuit_failures, self.settings.circuit_open, self._circuit_moved
        )
        self._tokens = Tokens(sender, keyring, clock, self.settings, self._journal, self._limits)

    @property
    def skews(self) -> Mapping[str, float]:
        """Seconds by which each region's clock is ahead of ours, as last heard."""
        return self._journal.skews

    def is_shut(self, region: str) -> bool:
        """Whether the region's circuit is open: a condition on the Region, nothing for other regions."""
        return self._limits.circuit(region).is_open

    def _circuit_moved(self, region: str, shut: bool) -> None:
        for listener in self._on_circuit:
            listener(region, shut)

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
        try:
            ends = self._clock.monotonic() + self.settings.call_deadline
            return (await self._tokens.get(scope, ends)).access
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
                    Verdict.UNAVAILABLE, run.call, text=str(circuit), retry_after=circuit.left, silent=True
                ) from None
            except NotSent as refused:
                raise CloudError(
                    refused.verdict, run.call, text=refused.text, silent=refused.connecting
                ) from None
            except Unanswered as silence:
                means = verdict(run.op, NO_ANSWER, None, "")
                raise CloudError(means, run.call, text=str(silence), silent=True) from None
            if run.op.succeeds(raw.status):
                return raw
            error = self._judge(run, raw)
            if not await self._may_repeat(run, held, error):
                raise error

    async def _may_repeat(self, run: _Run, held: Held, error: CloudError) -> bool:
        if error.verdict is Verdict.UNAUTHORIZED:
            self._tokens.drop(run.call.scope, held)
            once = run.op.creates or run.op.destructive or run.call.guard is not None
            if once or run.replayed:
                return False
            run.replayed = True
            return True
        if error.verdict is Verdict.THROTTLED:
            error.retry_after = error.retry_after or self.settings.throttle_default
            self._limits.pace(run.call.scope.region).hold(error.retry_after)
            run.repeats += 1
            return not run.op.writes and run.repeats <= self.settings.throttle_repeats and self._can_wait(run)
        return False

    async def _send(self, run: _Run, query: Query) -> tuple[Held, RawAnswer]:
        region = run.call.scope.region
        await self._keep_pace(run)
        with self._limits.circuit(region).attempt() as attempt:
            try:
                held = await self._tokens.get(run.call.scope, run.ends)
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
                raw = await self._sent(run, held.login, request)
            except NotSent as refused:
                attempt.reached = False if refused.connecting else None
                raise
            except Unanswered:
                attempt.reached = False
                raise
            attempt.reached = True
            return held, raw

    async def _sent(self, run: _Run, login: Login, request: Outgoing) -> RawAnswer:
        """One request on the wire, counted for the call."""
        if run.requests == 0:
            run.started_at = self._clock.now()
        try:
            raw = await self._journal.watch(run.op, run.call.scope, self._sender.send(login, request))
        except Unanswered:
            run.requests += 1
            raise
        run.requests += 1
        run.status, run.request_id = raw.status, raw.request_id
        return raw

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

    # ---------------------------------------------------------------- limits

    def _can_wait(self, run: _Run) -> bool:
        pause = self._limits.pace(run.call.scope.region).left()
        return pause <= self.settings.throttle_wait and pause < run.ends - self._clock.monotonic()

    async def _keep_pace(self, run: _Run) -> None:
        """Wait out the cloud's pause when it is short, else end the call as THROTTLED without asking."""
        pace = self._limits.pace(run.call.scope.region)
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
