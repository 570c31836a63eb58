"""How a simulated service is written: routes, the call's context, errors in the service's own shape.

A service is a class with handlers marked by `@route`; the handler takes a `Ctx` and
returns a `Response` or raises an `ApiError` made by the service's error methods. A large
service is split into parts (any object with routed methods) given to `include`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .tokens import Token
from .wire import Request, Response

if TYPE_CHECKING:
    from .cloud import Cloud

JsonObject = dict[str, Any]
Handler = Callable[["Ctx"], Response]
_H = TypeVar("_H", bound=Callable[..., Response])

TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 409: "Conflict", 410: "Gone", 412: "Precondition Failed",
    413: "Request Entity Too Large", 415: "Unsupported Media Type", 500: "Internal Server Error",
    501: "Not Implemented", 503: "Service Unavailable",
}  # fmt: skip


class ApiError(Exception):
    """An answer that refuses the call; it becomes the Response as it stands."""

    def __init__(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = headers or {}


class Refused(Exception):
    """A cross-service call that cannot be done; the calling service words the HTTP answer.

    `reason` is one of not_found, conflict, quota, invalid; `message` is the callee's text.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def route(method: str, path: str, *, auth: bool = True) -> Callable[[_H], _H]:
    """Mark a method as the handler of `method path`; {name} in the path matches one segment.

    A handler may carry several routes. With `auth` a call without a valid token is 401.
    """

    def mark(handler: _H) -> _H:
        routes: list[tuple[str, str, bool]] = handler.__dict__.setdefault("cloudsim_routes", [])
        routes.append((method, path, auth))
        return handler

    return mark


@dataclass(slots=True)
class _Route:
    segments: tuple[str, ...]
    names: tuple[tuple[int, str], ...]
    literals: tuple[tuple[int, str], ...]
    handler: Handler
    auth: bool


@dataclass(slots=True)
class Ctx:
    """One call as its handler sees it."""

    cloud: Cloud
    service: Service
    request: Request
    maybe_token: Token | None
    now: datetime
    params: dict[str, str] = field(default_factory=dict)
    version: tuple[int, int] = (0, 0)
    """The negotiated microversion; (0, 0) where the service has none."""

    # ---------------------------------------------------------------- who

    @property
    def token(self) -> Token:
        """The caller's token; 401 without one."""
        if self.maybe_token is None:
            raise self.service.unauthorized()
        return self.maybe_token

    @property
    def project_id(self) -> str:
        """The project of the token's scope; empty for other scopes."""
        return self.token.project_id or ""

    @property
    def is_admin(self) -> bool:
        return self.token.is_admin

    def has_role(self, role: str) -> bool:
        """True when the token carries the role, implied roles included."""
        return role in self.token.roles

    def may(self, rule: str) -> bool:
        """True for the cloud administrator, and for a manager where the rule is widened."""
        token = self.token
        return token.is_admin or ("manager" in token.roles and rule in self.cloud.settings.policy_overrides)

    def require(self, allowed: bool, rule: str) -> None:
        """Refuse with the service's policy error unless `allowed`."""
        if not allowed:
            raise self.service.policy_error(rule)

    def owns(self, project_id: str | None) -> bool:
        """True when an object of that project is within the caller's reach (administrators reach all)."""
        return self.token.is_admin or (project_id is not None and project_id == self.token.project_id)

    # -------------------------------------------------------------- query

    def q(self, name: str, default: str | None = None) -> str | None:
        """The last value of a query parameter."""
        found = default
        for key, value in self.request.query:
            if key == name:
                found = value
        return found

    def q_all(self, name: str) -> list[str]:
        """Every value of a query parameter, in order."""
        return [value for key, value in self.request.query if key == name]

    def q_flag(self, name: str, default: bool | None = None) -> bool | None:
        """A boolean query parameter; 400 for anything that is none."""
        value = self.q(name)
        if value is None:
            return default
        known = {"true": True, "1": True, "yes": True, "on": True, "t": True,
                 "false": False, "0": False, "no": False, "off": False, "f": False}  # fmt: skip
        if value.lower() not in known:
            raise self.service.bad_request(f"Invalid input for {name}. Reason: '{value}' is not a boolean.")
        return known[value.lower()]

    # --------------------------------------------------------------- body

    def json(self) -> Any:
        """The body as JSON; 400 in the service's shape when it is none."""
        try:
            return json.loads(self.request.body)
        except ValueError:
            raise self.service.malformed_body() from None

    def document(self) -> JsonObject:
        """The body as an object; 400 for any other JSON value."""
        value = self.json()
        if not isinstance(value, dict):
            raise self.service.malformed_body()
        return value

    def body(self, root: str) -> JsonObject:
        """The object under the body's root key."""
        value = self.json()
        if not isinstance(value, dict) or not isinstance(value.get(root), dict):
            raise self.service.missing_root(root)
        found: JsonObject = value[root]
        return found

    def only(self, obj: JsonObject, allowed: Iterable[str]) -> None:
        """Refuse keys outside `allowed`, in the service's words."""
        unknown = sorted(set(obj) - set(allowed))
        if unknown:
            raise self.service.unknown_fields(unknown)

    def text(
        self,
        obj: JsonObject,
        key: str,
        default: str | None = None,
        *,
        required: bool = False,
        max_length: int = 255,
    ) -> str | None:
        """A text field, or the default when absent; null counts as absent."""
        value = self._field(obj, key, required)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.service.invalid_field(key, value, f"{value!r} is not of type 'string'")
        if len(value) > max_length:
            raise self.service.invalid_field(key, value, f"{value!r} is too long")
        return value

    def integer(
        self,
        obj: JsonObject,
        key: str,
        default: int | None = None,
        *,
        required: bool = False,
        low: int | None = None,
        high: int | None = None,
    ) -> int | None:
        """A whole number (a text of digits is accepted, as the services do), or the default."""
        value = self._field(obj, key, required)
        if value is None:
            return default
        if isinstance(value, str) and value.lstrip("-").isdigit():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.service.invalid_field(key, value, f"{value!r} is not of type 'integer'")
        if low is not None and value < low:
            raise self.service.invalid_field(key, value, f"{value} is less than the minimum of {low}")
        if high is not None and value > high:
            raise self.service.invalid_field(key, value, f"{value} is greater than the maximum of {high}")
        return value

    def flag(self, obj: JsonObject, key: str, default: bool = False) -> bool:
        """A boolean field, or the default."""
        value = self._field(obj, key, False)
        if value is None:
            return default
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise self.service.invalid_field(key, value, f"{value!r} is not of type 'boolean'")
        return value

    def objects(self, obj: JsonObject, key: str, default: list[JsonObject] | None = None) -> list[JsonObject]:
        """A list of objects, or the default."""
        value = self._field(obj, key, False)
        if value is None:
            return default if default is not None else []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.service.invalid_field(key, value, f"{value!r} is not a list of objects")
        return value

    def texts(self, obj: JsonObject, key: str, default: list[str] | None = None) -> list[str]:
        """A list of texts, or the default."""
        value = self._field(obj, key, False)
        if value is None:
            return default if default is not None else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.service.invalid_field(key, value, f"{value!r} is not a list of strings")
        return value

    def mapping(self, obj: JsonObject, key: str, default: JsonObject | None = None) -> JsonObject:
        """An object, or the default."""
        value = self._field(obj, key, False)
        if value is None:
            return default if default is not None else {}
        if not isinstance(value, dict):
            raise self.service.invalid_field(key, value, f"{value!r} is not of type 'object'")
        return value

    def _field(self, obj: JsonObject, key: str, required: bool) -> Any:
        value = obj.get(key)
        if value is None and required:
            raise self.service.missing_field(key)
        return value


class Service:
    """A simulated service below one path prefix.

    Subclasses set `name` (the log's and the faults' word for it), `prefix` (first path
    segment) and the error methods where their bodies differ from Nova's.
    """

    name = ""
    prefix = ""
    version_key = ""
    """The service's word in OpenStack-API-Version; empty where there are no microversions."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._exact: dict[tuple[str, str], _Route] = {}
        self._shaped: dict[tuple[str, int], list[_Route]] = {}
        self._methods: dict[int, list[_Route]] = {}
        self.include(self)

    def include(self, part: object) -> None:
        """Take over the routed methods of `part`."""
        seen: set[str] = set()
        for cls in type(part).__mro__:
            for attribute, value in vars(cls).items():
                if attribute in seen:
                    continue
                seen.add(attribute)
                for method, path, auth in getattr(value, "__dict__", {}).get("cloudsim_routes", ()):
                    self._add(method, path, auth, getattr(part, attribute))

    def _add(self, method: str, path: str, auth: bool, handler: Handler) -> None:
        segments = tuple(path.strip("/").split("/")) if path.strip("/") else ()
        names = tuple((i, s[1:-1]) for i, s in enumerate(segments) if s.startswith("{"))
        literals = tuple((i, s) for i, s in enumerate(segments) if not s.startswith("{"))
        made = _Route(segments, names, literals, handler, auth)
        if names:
            rows = self._shaped.setdefault((method, len(segments)), [])
            rows.append(made)
            # More literal segments first: /servers/detail must win over /servers/{id}.
            rows.sort(key=lambda r: len(r.names))
        else:
            self._exact[(method, "/".join(segments))] = made
        self._methods.setdefault(len(segments), []).append(made)

    def dispatch(self, ctx: Ctx, path: str) -> Response:
        """Find the handler of the path (prefix removed) and call it."""
        method = "GET" if ctx.request.method == "HEAD" else ctx.request.method
        plain = path.strip("/")
        found = self._exact.get((ctx.request.method, plain)) or self._exact.get((method, plain))
        if found is None:
            segments = plain.split("/")
            found = self._match(ctx.request.method, segments, ctx)
            if found is None and method != ctx.request.method:
                found = self._match(method, segments, ctx)
            if found is None:
                raise self._nowhere(segments)
        if found.auth and ctx.maybe_token is None:
            raise self.unauthorized()
        self.prepare(ctx)
        return found.handler(ctx)

    def _match(self, method: str, segments: list[str], ctx: Ctx) -> _Route | None:
        for each in self._shaped.get((method, len(segments)), ()):
            if all(segments[i] == literal for i, literal in each.literals):
                ctx.params = {name: segments[i] for i, name in each.names}
                return each
        return None

    def _nowhere(self, segments: list[str]) -> ApiError:
        for each in self._methods.get(len(segments), ()):
            if all(segments[i] == literal for i, literal in each.literals):
                return self.error(405, "The method is not allowed for this resource.")
        return self.error(404, "The resource could not be found.")

    def seed(self) -> None:
        """Make the objects that a fresh cloud has; called when every service exists."""

    def dump(self) -> dict[str, list[JsonObject]]:
        """Objects by kind, each with id, name and project_id."""
        return {}

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """Do what somebody else would do behind the client's back; see /admin/foreign."""
        raise ValueError(f"{self.name} knows no foreign change {verb!r}")

    def prepare(self, ctx: Ctx) -> None:
        """Called before the handler: microversion negotiation where the service has one."""

    def decorate(self, ctx: Ctx, response: Response) -> None:
        """Called after the handler, also for refusals: the service's own headers."""

    # -------------------------------------------------------------- errors
    # Nova's and Cinder's shape; Keystone, Neutron, Glance and Octavia override `error`
    # and the texts that differ.

    _KINDS: ClassVar[dict[int, str]] = {
        400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
        406: "notAcceptable", 409: "conflictingRequest", 413: "overLimit", 415: "badMediaType",
        500: "computeFault", 501: "notImplemented", 503: "serviceUnavailable",
    }  # fmt: skip

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        """The service's error body; `kind` is the type word where the service has one."""
        word = kind or self._KINDS.get(status, "computeFault")
        return ApiError(status, {word: {"code": status, "message": message}})

    def bad_request(self, message: str) -> ApiError:
        return self.error(400, message)

    def not_found(self, message: str) -> ApiError:
        return self.error(404, message)

    def conflict(self, message: str) -> ApiError:
        return self.error(409, message)

    def policy_error(self, rule: str) -> ApiError:
        return self.error(403, f"Policy doesn't allow {rule} to be performed.")

    def malformed_body(self) -> ApiError:
        return self.bad_request("Malformed request body")

    def missing_root(self, root: str) -> ApiError:
        return self.missing_field(root)

    def missing_field(self, key: str) -> ApiError:
        return self.bad_request(f"'{key}' is a required property")

    def invalid_field(self, key: str, value: Any, reason: str) -> ApiError:
        return self.bad_request(f"Invalid input for field/attribute {key}. Value: {value}. {reason}")

    def unknown_fields(self, names: Sequence[str]) -> ApiError:
        listed = ", ".join(f"'{n}'" for n in names)
        verb = "was" if len(names) == 1 else "were"
        return self.bad_request(f"Additional properties are not allowed ({listed} {verb} unexpected)")

    def unauthorized(self) -> ApiError:
        """What the token middleware in front of every service answers."""
        uri = f"{self.cloud.settings.base_url}/identity"
        return ApiError(
            401,
            {
                "error": {
                    "code": 401,
                    "title": "Unauthorized",
                    "message": "The request you have made requires authentication.",
                }
            },
            {"WWW-Authenticate": f'Keystone uri="{uri}"'},
        )


def answer(body: Any = None, status: int = 200, **headers: str) -> Response:
    """A Response; header names are given with underscores (X_Subject_Token=...)."""
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


NO_CONTENT = 204


def nothing(status: int = NO_CONTENT) -> Response:
    """A Response without a body."""
    return Response(status)
