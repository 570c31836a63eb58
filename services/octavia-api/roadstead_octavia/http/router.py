"""From a path and a method to a route: a tree of segments, walked once.

What is not there is refused as the original's router does: 405 with the methods of the whole resource when it has no such method at all,
with those of the path when only the path has not, 404 otherwise.  Outside of the API's prefixes a 404 has no description.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from roadstead_octavia.http.faults import RoutingError
from roadstead_octavia.http.routes import EVERYWHERE, ROUTES, Route

RENDERERS = (".json", ".xml")


@dataclass
class Node:
    """A segment of the tree.  resource: methods of the node and its items together, of the nearest node above that has any."""

    children: dict[str, "Node"] = field(default_factory=dict)
    item: "Node | None" = None
    routes: dict[str, Route] = field(default_factory=dict)

    @property
    def methods(self) -> frozenset[str]:
        own = frozenset(self.routes)
        return own | frozenset(self.item.routes) if self.item is not None else own


@dataclass(frozen=True)
class Found:
    """ids: what stood in the place of `{...}`, in order.  as_xml: the path ended in `.xml`."""

    route: Route
    ids: tuple[str, ...]
    as_xml: bool


def _tree(prefix: str) -> Node:
    top = Node()
    for route in ROUTES:
        if prefix not in route.prefixes:
            continue
        node = top
        for segment in route.segments:
            if segment.startswith("{"):
                node.item = node.item or Node()
                node = node.item
            else:
                node = node.children.setdefault(segment, Node())
        node.routes[route.method] = route
    return top


_PREFIXES: Mapping[str, Node] = {
    prefix: _tree(prefix) for prefix in ("/v2/octavia", "/v2.0/octavia", *EVERYWHERE)
}


def find(method: str, path: str) -> Found:
    """RoutingError 404 or 405.  path: decoded, as it came."""
    if "\0" in path:
        raise RoutingError(404, "")
    prefix, rest = _split(path)
    as_xml = False
    for ending in RENDERERS:
        if rest.endswith(ending):
            rest, as_xml = rest[: -len(ending)], ending == ".xml"
            break
    return Found(*_walk(method, _PREFIXES[prefix], rest.removesuffix("/").split("/")), as_xml)


def _split(path: str) -> tuple[str, str]:
    """The prefix, and what follows it without its slash."""
    _, version, *rest = path.split("/", 3) if path.startswith("/") else ("", "")
    if version not in ("v2", "v2.0") or not rest or not rest[0]:
        raise RoutingError(404, None)
    if rest[0] in ("lbaas", "octavia"):
        return f"/{version}/{rest[0]}", rest[1] if len(rest) > 1 else ""
    return f"/{version}", "/".join(rest)


def _walk(method: str, top: Node, segments: list[str]) -> tuple[Route, tuple[str, ...]]:
    node, ids = top, []
    methods: frozenset[str] = frozenset()  # of the resource that the path is in
    for segment in segments:
        named = node.children.get(segment)
        if named is not None:
            node = named
            methods = node.methods
        elif node.item is not None and segment:
            node = node.item
            ids.append(segment)
        elif methods and method not in methods:
            raise not_allowed(methods)
        else:
            raise RoutingError(404, "")
    route = node.routes.get(method)
    if route is None:
        if node is top:
            raise RoutingError(404, "")
        # Methods that no path of the resource has are refused for the resource.
        raise not_allowed(frozenset(node.routes) if method in methods and node.routes else methods)
    return route, tuple(ids)


def not_allowed(methods: frozenset[str]) -> RoutingError:
    return RoutingError(405, "", headers=(("Allow", ", ".join(sorted(methods))),))
