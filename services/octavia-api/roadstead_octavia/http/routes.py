"""Every route as data, and what is served under which prefix.

`ROUTES` is the whole API: documents, tests and the router are made from it.  An operation's name is `<resource>.<function>`: what runs
is `list_` and `show` of `resources/generic.py`, or the function of that name in `resources/<resource>/operations.py`, which has the
last word when it is there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

EVERYWHERE = ("/v2/lbaas", "/v2.0/lbaas", "/v2", "/v2.0")
AMPHORA = ("/v2/octavia", "/v2.0/octavia")
DISCOVERY = ("/", "/v2", "/v2.0", "/v2/lbaas", "/v2.0/lbaas", "/v2/octavia", "/v2.0/octavia")
HEALTH = "/healthcheck"

# Arguments of a query that list calls understand beside their filters.
PAGING = frozenset(("limit", "marker", "page_reverse", "sort", "sort_key", "sort_dir", "fields"))
TAGS = ("tags", "tags-any", "not-tags", "not-tags-any")


@dataclass(frozen=True)
class Route:
    """One operation.

    path: below the prefix, `{...}` stands for one segment.  rules: policy rules that may be asked, without their common prefix.
    arguments: names that the query may have; None: any, they are filters or ignored.  parent: table and noun of the row that the first
    id must name.  takes: the form of the body that is read (`POST`, `PUT`), None: a body is not looked at.
    """

    operation: str
    method: str
    path: str
    success: int
    rules: tuple[str, ...]
    takes: str | None = None
    arguments: frozenset[str] | None = field(default_factory=frozenset)
    parent: tuple[str, str] | None = None
    prefixes: tuple[str, ...] = EVERYWHERE

    @property
    def resource(self) -> str:
        return self.operation.partition(".")[0]

    @property
    def function(self) -> str:
        name = self.operation.partition(".")[2]
        return "list_" if name == "list" else name

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))


ANY = None
POOL = ("pool", "Pool")
POLICY = ("l7policy", "L7Policy")


def _crud(
    resource: str,
    path: str,
    rule: str,
    *,
    key: str = "id",
    parent: tuple[str, str] | None = None,
    is_global: bool = True,
    delete: frozenset[str] = frozenset(),
    more: tuple[str, ...] = (),
) -> Iterator[Route]:
    """The five usual operations.  more: rules beside post and put that depend on the body."""
    item = f"{path}/{{{key}}}"
    read = (f"{rule}:get_all-global", f"{rule}:get_all") if is_global else (f"{rule}:get_all",)
    post = (f"{rule}:post", *(f"{rule}:post:{m}" for m in more))
    put = (f"{rule}:put", *(f"{rule}:put:{m}" for m in more))
    yield Route(f"{resource}.list", "GET", path, 200, read, arguments=ANY, parent=parent)
    yield Route(f"{resource}.create", "POST", path, 201, post, takes="POST", parent=parent)
    yield Route(f"{resource}.show", "GET", item, 200, (f"{rule}:get_one",), arguments=ANY, parent=parent)
    yield Route(f"{resource}.update", "PUT", item, 200, put, takes="PUT", parent=parent)
    yield Route(
        f"{resource}.delete", "DELETE", item, 204, (f"{rule}:delete",), arguments=delete, parent=parent
    )


def _load_balancer() -> Iterator[Route]:
    path, rule = "/loadbalancers", "loadbalancer"
    yield from _crud(rule, path, rule, delete=frozenset(("cascade",)), more=("vip_sg_ids",))
    for name in ("status", "statuses"):
        yield Route(f"loadbalancer.{name}", "GET", f"{path}/{{id}}/{name}", 200, ("loadbalancer:get_status",))
    yield Route("loadbalancer.stats", "GET", f"{path}/{{id}}/stats", 200, ("loadbalancer:get_stats",))
    yield Route(
        "loadbalancer.failover", "PUT", f"{path}/{{id}}/failover", 202, ("loadbalancer:put_failover",)
    )


def _member() -> Iterator[Route]:
    path = "/pools/{pool_id}/members"
    yield from _crud("member", path, "member", parent=POOL, is_global=False)
    yield Route(
        "member.batch",
        "PUT",
        path,
        202,
        ("member:post", "member:put", "member:delete"),
        takes="PUT",
        arguments=frozenset(("additive_only",)),
        parent=POOL,
    )


def _quota() -> Iterator[Route]:
    item = "/quotas/{project_id}"
    yield Route("quota.list", "GET", "/quotas", 200, ("quota:get_all-global", "quota:get_all"), arguments=ANY)
    yield Route("quota.show", "GET", item, 200, ("quota:get_one",))
    yield Route("quota.default", "GET", f"{item}/default", 200, ("quota:get_defaults",))
    yield Route("quota.update", "PUT", item, 202, ("quota:put",), takes="PUT")
    yield Route("quota.delete", "DELETE", item, 202, ("quota:delete",))


def _provider() -> Iterator[Route]:
    yield Route("provider.list", "GET", "/providers", 200, ("provider:get_all",), arguments=ANY)
    for name, rule in (
        ("flavor_capabilities", "provider-flavor:get_all"),
        ("availability_zone_capabilities", "provider-availability-zone:get_all"),
    ):
        yield Route(f"provider.{name}", "GET", f"/providers/{{provider}}/{name}", 200, (rule,), arguments=ANY)


def _amphora() -> Iterator[Route]:
    path, item = "/amphorae", "/amphorae/{id}"
    for operation, method, at, success, rule, arguments in (
        ("list", "GET", path, 200, "get_all", ANY),
        ("show", "GET", item, 200, "get_one", ANY),
        ("delete", "DELETE", item, 204, "delete", frozenset()),
        ("stats", "GET", f"{item}/stats", 200, "get_stats", frozenset()),
        ("config", "PUT", f"{item}/config", 202, "put_config", frozenset()),
        ("failover", "PUT", f"{item}/failover", 202, "put_failover", frozenset()),
    ):
        yield Route(
            f"amphora.{operation}",
            method,
            at,
            success,
            (f"amphora:{rule}",),
            arguments=arguments,
            prefixes=AMPHORA,
        )


def _all() -> Iterator[Route]:
    yield from _load_balancer()
    yield from _crud("listener", "/listeners", "listener")
    yield Route("listener.stats", "GET", "/listeners/{id}/stats", 200, ("listener:get_stats",))
    yield from _crud("pool", "/pools", "pool")
    yield from _member()
    yield from _crud("healthmonitor", "/healthmonitors", "healthmonitor")
    yield from _crud("l7policy", "/l7policies", "l7policy")
    yield from _crud("l7rule", "/l7policies/{l7policy_id}/rules", "l7rule", parent=POLICY, is_global=False)
    yield from _quota()
    yield from _provider()
    for resource, path, key in (
        ("flavor", "flavors", "id"),
        ("flavorprofile", "flavorprofiles", "id"),
        ("availability_zone", "availabilityzones", "name"),
        ("availability_zone_profile", "availabilityzoneprofiles", "id"),
    ):
        rule = "flavor-profile" if resource == "flavorprofile" else resource.replace("_", "-")
        yield from _crud(resource, f"/{path}", rule, key=key, is_global=False)
    yield from _amphora()


ROUTES: tuple[Route, ...] = tuple(_all())
BY_OPERATION = {route.operation: route for route in ROUTES}


def entries() -> Iterator[tuple[str, str]]:
    """(method, path) of everything that is served, discovery included."""
    for route in ROUTES:
        for prefix in route.prefixes:
            yield route.method, prefix + route.path
    for path in DISCOVERY:
        yield "GET", path
    yield "GET", HEALTH
    yield "HEAD", HEALTH
