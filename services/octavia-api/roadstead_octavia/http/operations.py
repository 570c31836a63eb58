"""Which function answers a route: a resource's own, else the generic one."""

import importlib
from collections.abc import Mapping
from functools import partial
from types import ModuleType

from roadstead_octavia.call import Operation
from roadstead_octavia.http.routes import ROUTES, Route
from roadstead_octavia.resources import generic
from roadstead_octavia.wire.describe import Resource

PACKAGE = "roadstead_octavia.resources"
GENERIC = {"list_": generic.list_, "show": generic.show}


class NoSuchOperation(Exception):
    """Routes that nothing answers; the text names them."""


def resource_of(name: str) -> Resource:
    """The description of that name."""
    described: Resource = importlib.import_module(f"{PACKAGE}.{name}.wire").RESOURCE
    return described


def load() -> Mapping[str, Operation]:
    """Function by operation name, for every route.  NoSuchOperation."""
    found = {route.operation: function for route in ROUTES if (function := _function(route)) is not None}
    missing = [route.operation for route in ROUTES if route.operation not in found]
    if missing:
        raise NoSuchOperation(f"nothing answers {', '.join(missing)}")
    return found


def load_what_is_there() -> Mapping[str, Operation]:
    """The same without those that are missing; a request for one of them is answered with 501."""
    return {route.operation: function for route in ROUTES if (function := _function(route)) is not None}


def _function(route: Route) -> Operation | None:
    own: Operation | None = getattr(_operations(route.resource), route.function, None)
    if own is not None:
        return own
    common = GENERIC.get(route.function)
    return None if common is None else partial(common, resource=resource_of(route.resource))


def _operations(resource: str) -> ModuleType | None:
    name = f"{PACKAGE}.{resource}.operations"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
