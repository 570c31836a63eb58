"""The ASGI application: one request through its layers.

In this order, each of which may answer: size of the body, questions of browsers, health, versions; identity; what the client reads; the
syntax of the query; the route; arguments and body; the operation.  Every answer has a request id.  Bad input never is a 500: what is
one is a fault of ours, logged with that id.

`options`, `parts` and `identity` may be replaced between requests; a request goes by those that were there when it came.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote

import structlog
from opentelemetry.trace import SpanKind, Status, StatusCode

from roadstead.store.api import StoreUnavailable
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing, no_tracing
from roadstead_octavia.call import Answer, Call, Operation, Parts
from roadstead_octavia.db.port import Busy
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.http import faults
from roadstead_octavia.http.accept import admits_json
from roadstead_octavia.http.answers import (
    JSON,
    XML,
    Receive,
    Response,
    Scope,
    Send,
    json_response,
    send_response,
)
from roadstead_octavia.http.cors import Cors
from roadstead_octavia.http.discovery import versions
from roadstead_octavia.http.faults import RoutingError, Unauthenticated
from roadstead_octavia.http.healthcheck import HealthCheck
from roadstead_octavia.http.identity import Identity, IdentityDown
from roadstead_octavia.http.operations import load, resource_of
from roadstead_octavia.http.paging import IGNORED, asked
from roadstead_octavia.http.router import Found, find
from roadstead_octavia.http.routes import DISCOVERY, HEALTH, ROUTES, Route
from roadstead_octavia.options import Options
from roadstead_octavia.resources.member.wire import read_batch
from roadstead_octavia.wire import xml
from roadstead_octavia.wire.read import read
from roadstead_octavia.wire.write import dumps

log = structlog.get_logger("roadstead.octavia.http")
access = logging.getLogger("roadstead.octavia.access")

BODY_PATIENCE = 60.0  # seconds for a body to arrive
MOST_ARGUMENTS = 1000
TRY_AGAIN = (("Retry-After", "2"),)
HEALTH_PATHS = frozenset((HEALTH, f"/load-balancer{HEALTH}"))
OPEN_PATHS = frozenset(("/", "/load-balancer/"))
VERSION_PATHS = frozenset(path for path in DISCOVERY if path != "/")
ACCEPTED = "Only content type application/json is accepted."
TOO_LARGE = "Request is too large. Larger than max_request_body_size (%d)."


class ClientGone(Exception):
    """The client left before its request was whole."""


class App:
    """operations: function by operation name; those of the package unless given.  prefix: of all paths, taken off first."""

    def __init__(
        self,
        parts: Parts,
        options: Options,
        identity: Identity,
        *,
        operations: Mapping[str, Operation] | None = None,
        meters: Meters | None = None,
        tracing: Tracing | None = None,
        cors: Cors | None = None,
        prefix: str = "",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.parts = parts
        self.options = options
        self.identity = identity
        self.health = HealthCheck(self._ask_database)
        self._operations = load() if operations is None else operations
        self._resources = {route.resource: resource_of(route.resource) for route in ROUTES if route.takes}
        self._meters = meters
        self._tracing = tracing or no_tracing()
        self._cors = cors or Cors()
        self._prefix = prefix
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(_Request(scope, receive, self._prefix), send)

    # ------------------------------------------------------------ around a request

    async def _serve(self, request: "_Request", send: Send) -> None:
        began = self._clock()
        with self._tracing.span(request.method, request.headers, kind=SpanKind.SERVER) as span:
            try:
                response = await self._respond(request)
            except ClientGone:
                return
            template = request.template
            span.update_name(template)
            span.set_attribute("http.response.status_code", response.status)
            if response.status >= 500:
                span.set_status(Status(StatusCode.ERROR))
            more = (
                ("x-openstack-request-id", request.id),
                *self._cors.headers(request.headers.get("origin")),
            )
            await send_response(send, response, more, without_body=request.method == "HEAD")
        seconds = self._clock() - began
        if self._meters is not None:
            self._meters.count("roadstead_requests_total", subject=template, outcome=str(response.status))
            self._meters.observe("roadstead_request_seconds", seconds, subject=template)
        if access.isEnabledFor(logging.DEBUG):
            log.debug(
                "answered",
                method=request.method,
                path=request.path,
                status=response.status,
                ms=round(seconds * 1000, 2),
                request_id=request.id,
            )

    async def _respond(self, request: "_Request") -> Response:
        try:
            return await self._answer(request)
        except RoutingError as error:
            return Response(error.status, error.body(), JSON, error.headers)
        except Unauthenticated as error:
            return Response(401, faults.UNAUTHORIZED, JSON, (("WWW-Authenticate", error.challenge),))
        except IdentityDown as error:
            log.warning("the identity service cannot be asked", error=str(error), request_id=request.id)
            return Response(503, faults.IDENTITY_DOWN, JSON, TRY_AGAIN)
        except ClientGone:
            raise
        except Exception:
            log.exception("request failed", request_id=request.id, operation=request.template)
            return json_response(500, faults.fault(faults.unexpected(request.id)))

    # ------------------------------------------------------------ the layers

    async def _answer(self, request: "_Request") -> Response:
        options, parts = self.options, self.parts
        request.refuse_size(options.max_request_body_size)
        headers, method, path = request.headers, request.method, request.path
        if method == "OPTIONS":
            return self._cors.preflight(
                headers.get("origin"),
                headers.get("access-control-request-method"),
                headers.get("access-control-request-headers", ""),
            )
        if path in HEALTH_PATHS:
            return await self.health.answer(method, headers.get("accept", ""), options)
        if path in OPEN_PATHS:
            return _versions(request, options)
        caller = await self.identity.caller(headers)
        if not admits_json(headers.get("accept", "")):
            raise RoutingError(406, ACCEPTED)
        if path.removesuffix("/") in VERSION_PATHS:
            return _version(method)
        query = request.query()
        if method == "GET":
            _look_at(query, options)
        found = find(method, path)
        request.template = found.route.operation
        call = Call(
            caller=caller,
            options=options,
            parts=parts,
            ids=found.ids,
            query=query,
            url=request.url(options),
            request_id=request.id,
        )
        return await self._operate(request, found, call)

    async def _operate(self, request: "_Request", found: Found, call: Call) -> Response:
        """Run the operation; its refusals are faults, unless the row that the path goes through is not there."""
        route = found.route
        try:
            answer = await self._run(request, route, call)
        except ApiError as error:
            if route.parent is not None and error.status < 500:
                await _refuse_orphans(route.parent, call)
            return _fault(error, found.as_xml)
        except Busy:
            return _fault(refuse("ProjectBusy"), found.as_xml)
        except StoreUnavailable as error:
            log.warning("the database is away", error=str(error), request_id=request.id)
            return _fault(
                ApiError(503, "The database cannot be reached.", "Database", TRY_AGAIN), found.as_xml
            )
        except (ClientGone, RoutingError):
            raise
        except Exception:
            log.exception("operation failed", request_id=request.id, operation=route.operation)
            return _fault(faults.unexpected(request.id), found.as_xml)
        if answer.body is None:
            return Response(answer.status)
        if found.as_xml:
            return Response(answer.status, xml.dumps(answer.body), XML)
        return Response(answer.status, dumps(answer.body), JSON)

    async def _run(self, request: "_Request", route: Route, call: Call) -> Answer:
        if route.arguments is not None:
            for name, _ in call.query:
                if name not in route.arguments and name not in IGNORED:
                    raise refuse("UnknownArgument", name=name)
        if route.takes is not None:
            call = replace(call, body=await self._body(request, route, call.options))
        operation = self._operations.get(route.operation)
        if operation is None:
            raise ApiError(501, f"{route.operation} is not there yet.", "NotThere")
        return await operation(call)

    async def _body(self, request: "_Request", route: Route, options: Options) -> Mapping[str, Any]:
        body = await request.body(options.max_request_body_size)
        kind = request.headers.get("content-type")
        if route.operation == "member.batch":
            return read_batch(body, kind, options=options)
        return read(
            self._resources[route.resource],
            body,
            kind,
            method="POST" if route.takes == "POST" else "PUT",
            options=options,
        )

    async def _ask_database(self) -> None:
        await self.parts.database.row("operating_status", {"name": "ONLINE"})


class _Request:
    """What came, and what is known of it so far.  template: a name without ids, for metrics and spans."""

    __slots__ = ("_prefix", "_receive", "headers", "id", "method", "path", "scope", "template")

    def __init__(self, scope: Scope, receive: Receive, prefix: str) -> None:
        self.scope = scope
        self.id = f"req-{uuid.uuid4()}"
        self.method: str = scope["method"]
        self.template = "unrouted"
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._receive = receive
        self._prefix = prefix
        path: str = scope["path"]
        if prefix and (path == prefix or path.startswith(f"{prefix}/")):
            path = path[len(prefix) :] or "/"
        self.path = path

    def refuse_size(self, most: int) -> None:
        """RoutingError 413 for a body that says it is too large."""
        given = self.headers.get("content-length", "")
        if given.isascii() and given.isdigit() and int(given[:20]) > most:
            raise RoutingError(413, TOO_LARGE % most)

    def query(self) -> Sequence[tuple[str, str]]:
        raw: bytes = self.scope["query_string"]
        if not raw:
            return ()
        try:
            return parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_ARGUMENTS)
        except ValueError:
            raise RoutingError(400, "Too many arguments.") from None

    def base(self, options: Options) -> str:
        """What links begin with, without a slash at its end."""
        if options.api_base_uri:
            return options.api_base_uri.rstrip("/")
        host = self.headers.get("host") or ":".join(
            str(part) for part in self.scope.get("server") or ("localhost",)
        )
        return f"{self.scope.get('scheme', 'http')}://{host}{self._prefix}"

    def url(self, options: Options) -> str:
        return self.base(options) + quote(self.path)

    async def body(self, most: int) -> bytes:
        """RoutingError 413 when more comes than is let in, 408 when it does not come; ClientGone."""
        chunks, size = [], 0
        try:
            async with asyncio.timeout(BODY_PATIENCE):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    chunk: bytes = message.get("body", b"")
                    size += len(chunk)
                    if size > most:
                        raise RoutingError(413, TOO_LARGE % most)
                    chunks.append(chunk)
                    if not message.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            raise RoutingError(408, "The body did not arrive in time.", (("Connection", "close"),)) from None


# ---------------------------------------------------------------- pieces


def _look_at(query: Sequence[tuple[str, str]], options: Options) -> None:
    """Every GET keeps to the syntax of paging, whatever it asks for."""
    try:
        asked(query, options)
    except ApiError as error:
        raise RoutingError(error.status, error.text) from None


def _versions(request: _Request, options: Options) -> Response:
    if not admits_json(request.headers.get("accept", "")):
        raise RoutingError(406, ACCEPTED)
    if request.path != "/":
        raise RoutingError(404, None)
    if request.method != "GET":
        raise RoutingError(405, None, (("Allow", "GET"),))
    request.template = "versions"
    return json_response(200, versions(request.base(options)))


def _version(method: str) -> Response:
    if method != "GET":
        raise RoutingError(405, None, (("Allow", "GET"),))
    return json_response(200, "v2")


async def _refuse_orphans(parent: tuple[str, str], call: Call) -> None:
    """RoutingError 404 when the row that the path goes through is not there.

    Looked up only behind a refusal: an operation that went through has seen the row.
    """
    table, noun = parent
    if await call.parts.database.row(table, {"id": call.ids[0]}) is None:
        raise RoutingError(404, f"{noun} {call.ids[0]} not found.")


def _fault(error: ApiError, as_xml: bool) -> Response:
    if as_xml:
        return Response(error.status, xml.fault(error.faultcode, error.text), XML, error.headers)
    return json_response(error.status, faults.fault(error), error.headers)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
