"""The simulator's own API below /admin: faults, log, clock, settings, foreign changes, reset, dump.

It needs no token: it is the hand of the test, not a part of the cloud. A request that
makes no sense is 400 with one line that says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from .base import JsonObject
from .faults import Fault, Outcome
from .settings import SimSettings
from .wire import Request, Response

if TYPE_CHECKING:
    from .cloud import Cloud


class Admin:
    """Answers /admin/...; see docs/cloudsim.md for the bodies."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._routes: dict[tuple[str, str], Callable[[Request, JsonObject], Any]] = {
            ("GET", "faults"): self._list_faults,
            ("POST", "faults"): self._add_fault,
            ("DELETE", "faults"): self._drop_faults,
            ("GET", "log"): self._log,
            ("DELETE", "log"): self._clear_log,
            ("GET", "clock"): self._clock,
            ("POST", "clock"): self._set_clock,
            ("GET", "settings"): self._settings,
            ("POST", "settings"): self._change_settings,
            ("POST", "foreign"): self._foreign,
            ("POST", "reset"): self._reset,
            ("GET", "dump"): self._dump,
        }

    def handle(self, request: Request, path: str) -> Response:
        """Answer a call; `path` is what follows /admin/."""
        name, _, rest = path.strip("/").partition("/")
        if (request.method, name, bool(rest)) == ("DELETE", "faults", True):
            found = self.cloud.faults.remove(rest)
            return Response(204) if found else _problem(404, f"no fault or outcome {rest} is in force")
        do = self._routes.get((request.method, name))
        if do is None or rest:
            return _problem(404, f"no admin call {request.method} /admin/{path}")
        try:
            body = json.loads(request.body) if request.body else {}
            if not isinstance(body, dict):
                return _problem(400, "the body must be a JSON object")
            return Response(200, body=do(request, body))
        except KeyError as error:
            return _problem(404, f"{error.args[0]} is not there")
        except (ValueError, TypeError) as error:
            return _problem(400, str(error))

    def no_such_service(self, request: Request) -> Response:
        """Answer for a path outside every service; the root lists what there is."""
        prefixes = [service.prefix for service in self.cloud.services]
        if request.path.strip("/") == "":
            return Response(200, body={"services": [*prefixes, "admin"]})
        return _problem(404, f"no service at {request.path}; there are /{', /'.join(prefixes)} and /admin")

    # -------------------------------------------------------------- faults

    def _list_faults(self, request: Request, body: JsonObject) -> JsonObject:
        return self.cloud.faults.as_json()

    def _add_fault(self, request: Request, body: JsonObject) -> JsonObject:
        """A body with the key `outcome` is a per-object outcome, any other a fault."""
        if "outcome" in body:
            given = body["outcome"]
            _known(given, Outcome)
            return {"id": self.cloud.faults.add_outcome(Outcome(**given))}
        _known(body, Fault)
        return {"id": self.cloud.faults.add(Fault(**body))}

    def _drop_faults(self, request: Request, body: JsonObject) -> JsonObject:
        self.cloud.faults.clear()
        return {}

    # ----------------------------------------------------------------- log

    def _log(self, request: Request, body: JsonObject) -> JsonObject:
        """Query: service, method, path, body, user, scope, project_id, status, since, writes."""
        query = dict(request.query)
        since, writes = int(query.pop("since", "0")), query.pop("writes", None)
        status = int(query["status"]) if "status" in query else None
        query.pop("status", None)
        unknown = set(query) - {"service", "method", "path", "body", "user", "scope", "project_id"}
        if unknown:
            raise ValueError(f"the log has no filter {sorted(unknown)[0]!r}")
        found = self.cloud.log.calls(since=since, status=status, **query)
        if writes is not None:
            found = [call for call in found if call.is_write]
        return {"calls": [call.as_json() for call in found], "sequence": self.cloud.sequence}

    def _clear_log(self, request: Request, body: JsonObject) -> JsonObject:
        self.cloud.log.clear()
        return {}

    # --------------------------------------------------------------- clock

    def _clock(self, request: Request, body: JsonObject) -> JsonObject:
        return {
            "now": self.cloud.clock.now().isoformat(),
            "frozen": self.cloud.clock.frozen,
            "next_change": self.cloud.next_change(),
        }

    def _set_clock(self, request: Request, body: JsonObject) -> JsonObject:
        """{"freeze": true|false}, {"advance": seconds}, {"rest": true}: in this order."""
        unknown = set(body) - {"freeze", "advance", "rest"}
        if unknown:
            raise ValueError(f"the clock takes freeze, advance and rest, not {sorted(unknown)[0]!r}")
        if body.get("freeze") is True:
            self.cloud.clock.freeze()
        elif body.get("freeze") is False:
            self.cloud.clock.thaw()
        if "advance" in body:
            self.cloud.advance(float(body["advance"]))
        if body.get("rest"):
            self.cloud.rest()
        return self._clock(request, {})

    # ------------------------------------------------------------ settings

    def _settings(self, request: Request, body: JsonObject) -> JsonObject:
        shown = asdict(self.cloud.settings)
        shown["admin_password"] = "***"
        shown["policy_overrides"] = sorted(self.cloud.settings.policy_overrides)
        return shown

    def _change_settings(self, request: Request, body: JsonObject) -> JsonObject:
        self.cloud.settings.change(body)
        return self._settings(request, {})

    # ------------------------------------------------------ state at large

    def _foreign(self, request: Request, body: JsonObject) -> JsonObject:
        """{"service": ..., "verb": ..., "id": ..., "values": {...}}."""
        services = {service.name: service for service in self.cloud.services}
        service = services.get(str(body.get("service")))
        if service is None:
            raise ValueError(f"service {body.get('service')!r} is unknown; use one of {', '.join(services)}")
        return service.foreign(str(body.get("verb")), str(body.get("id")), body.get("values") or {})

    def _reset(self, request: Request, body: JsonObject) -> JsonObject:
        if body.get("settings"):
            fresh = SimSettings()
            for each in fields(SimSettings):
                if each.name not in ("base_url", "admin_password"):
                    setattr(self.cloud.settings, each.name, getattr(fresh, each.name))
        self.cloud.reset()
        return {}

    def _dump(self, request: Request, body: JsonObject) -> JsonObject:
        return self.cloud.dump()


def _known(given: Any, shape: type) -> None:
    if not isinstance(given, dict):
        raise ValueError("the body must be a JSON object")
    unknown = set(given) - {each.name for each in fields(shape)} | ({"id", "hits"} & set(given))
    if unknown:
        raise ValueError(f"{shape.__name__.lower()} has no field {sorted(unknown)[0]!r}")


def _problem(status: int, message: str) -> Response:
    return Response(status, body={"error": message})
