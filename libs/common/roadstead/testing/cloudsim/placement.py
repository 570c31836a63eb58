"""The simulated Placement: resource providers with inventories and traits, and the list that asks for them.

Every compute host is a provider of the standard classes; the administrator adds others (bare
metal nodes), their classes and traits. A provider whose inventory is taken is left out of the
list. A class or trait that nobody registered is a 400, as in the real service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import TITLES, ApiError, Ctx, JsonObject, Service, answer, nothing, route
from .policy import PLACEMENT_LIST_PROVIDERS
from .tables import Row, Table
from .wire import Response

if TYPE_CHECKING:
    from .cloud import Cloud

MINIMUM, MAXIMUM = (1, 0), (1, 39)
FORBIDDEN_SINCE = (1, 22)
REQUIRED_SINCE = (1, 18)
PARENTS_SINCE = (1, 14)
STANDARD_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "PCPU", "VGPU")
STANDARD_TRAITS = ("HW_CPU_X86_VMX", "STORAGE_DISK_SSD", "COMPUTE_NODE", "COMPUTE_TRUSTED_CERTS")
HOST_INVENTORY = {"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 4096}
CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]{1,248}\Z")
QUERY = {"name", "uuid", "resources", "required", "in_tree", "member_of"}
MALFORMED = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect.\n\n "
)


class Placement(Service):
    """Resource providers of the simulated cloud."""

    name = "placement"
    prefix = "placement"
    version_key = "placement"

    def __init__(self, cloud: Cloud) -> None:
        self.providers = Table("name")
        self.classes = dict.fromkeys(STANDARD_CLASSES)
        self.traits = dict.fromkeys(STANDARD_TRAITS)
        super().__init__(cloud)

    def seed(self) -> None:
        for host in self.cloud.settings.compute_hosts:
            self.add_provider(host, HOST_INVENTORY, ("COMPUTE_NODE",))

    # ------------------------------------------------------- microversions

    def prepare(self, ctx: Ctx) -> None:
        header = ctx.request.headers.get("openstack-api-version", "")
        wanted = next(
            (
                v.strip()
                for k, _, v in (p.strip().partition(" ") for p in header.split(","))
                if k == self.name
            ),
            "",
        )
        if not wanted:
            ctx.version = MINIMUM
        elif wanted == "latest":
            ctx.version = MAXIMUM
        else:
            found = re.fullmatch(r"(\d+)\.(\d+)", wanted)
            if found is None:
                raise self.error(400, f"invalid version string: {wanted}")
            ctx.version = (int(found[1]), int(found[2]))
            if not MINIMUM <= ctx.version <= MAXIMUM:
                ctx.version = (0, 0)
                raise self.error(406, f"Unacceptable version header: {wanted}")

    def decorate(self, ctx: Ctx, response: Response) -> None:
        if ctx.version != (0, 0):
            response.headers["OpenStack-API-Version"] = f"placement {ctx.version[0]}.{ctx.version[1]}"
            response.headers["Vary"] = "OpenStack-API-Version"

    # -------------------------------------------------------------- errors

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        body = {"status": status, "title": TITLES.get(status, "Error"), "detail": message}
        return ApiError(status, {"errors": [body]})

    def bad_request(self, message: str) -> ApiError:
        return self.error(400, f"{MALFORMED}{message}  ")

    def policy_error(self, rule: str) -> ApiError:
        text = f"Access was denied to this resource.\n\n Policy does not allow {rule} to be performed.  "
        return self.error(403, text)

    # ---------------------------------------------------------------- list

    @route("GET", "/resource_providers")
    def index(self, ctx: Ctx) -> Response:
        ctx.require(ctx.may(PLACEMENT_LIST_PROVIDERS), PLACEMENT_LIST_PROVIDERS)
        unknown = {key for key, _ in ctx.request.query} - QUERY
        if unknown:
            raise self.bad_request(
                "Invalid query string parameters: Additional properties are not allowed "
                f"({', '.join(repr(u) for u in sorted(unknown))} was unexpected)"
            )
        amounts = self._amounts(ctx.q("resources"))
        required, forbidden = self._traits(ctx)
        rows = [
            row
            for row in self.providers
            if ctx.q("name") in (None, row["name"])
            and ctx.q("uuid") in (None, row["id"])
            and ctx.q("in_tree") in (None, row["id"])
            and all(self._room(row, name) >= amount for name, amount in amounts.items())
            and required <= set(row["_traits"])
            and not forbidden & set(row["_traits"])
        ]
        return answer({"resource_providers": [self._show(ctx, row) for row in rows]})

    def _amounts(self, text: str | None) -> dict[str, int]:
        made: dict[str, int] = {}
        for item in text.split(",") if text else ():
            name, _, amount = item.partition(":")
            if not amount.isdigit() or int(amount) < 1:
                raise self.bad_request(
                    "Badly formed resources parameter. Expected resources query string parameter in form: "
                    f"?resources=VCPU:2,MEMORY_MB:1024. Got: {text}."
                )
            if name not in self.classes:
                raise self.bad_request(
                    f"Invalid resource class in resources parameter: No such resource class {name}."
                )
            made[name] = int(amount)
        return made

    def _traits(self, ctx: Ctx) -> tuple[set[str], set[str]]:
        required: set[str] = set()
        forbidden: set[str] = set()
        for text in ctx.q_all("required"):
            for item in text.split(","):
                if (
                    not item
                    or ctx.version < REQUIRED_SINCE
                    or (item[0] == "!" and ctx.version < FORBIDDEN_SINCE)
                ):
                    raise self.bad_request(
                        f"Invalid query string parameters: Expected 'required' parameter value of the form: "
                        f"HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: {text}"
                    )
                (forbidden if item[0] == "!" else required).add(item.lstrip("!"))
        missing = sorted((required | forbidden) - set(self.traits))
        if missing:
            raise self.bad_request(
                f'Invalid trait(s) in "required" parameter: No such trait(s): {", ".join(missing)}.'
            )
        return required, forbidden

    # ------------------------------------------- what the administrator does

    @route("POST", "/resource_providers")
    def create(self, ctx: Ctx) -> Response:
        self._admin(ctx, "create")
        body = self._object(ctx)
        name, wanted = ctx.text(body, "name", required=True) or "", ctx.text(body, "uuid")
        if self.providers.where("name", name) or wanted in self.providers:
            raise self.error(409, f"Conflicting resource provider name: {name} already exists.")
        row = self.add_provider(name, {}, (), wanted)
        return answer(self._show(ctx, row))

    @route("GET", "/resource_providers/{id}")
    def get(self, ctx: Ctx) -> Response:
        self._admin(ctx, "show")
        return answer(self._show(ctx, self._find(ctx)))

    @route("DELETE", "/resource_providers/{id}")
    def delete(self, ctx: Ctx) -> Response:
        self._admin(ctx, "delete")
        self.providers.remove(self._find(ctx)["id"])
        return nothing()

    @route("GET", "/resource_providers/{id}/inventories")
    def inventories(self, ctx: Ctx) -> Response:
        self._admin(ctx, "inventories:list")
        row = self._find(ctx)
        rows = {name: {"total": total} for name, total in row["_inventory"].items()}
        return answer({"inventories": rows, "resource_provider_generation": row["generation"]})

    @route("PUT", "/resource_providers/{id}/inventories")
    def set_inventories(self, ctx: Ctx) -> Response:
        self._admin(ctx, "inventories:update")
        row, given = self._find(ctx), ctx.mapping(self._object(ctx), "inventories")
        for name in given:
            if name not in self.classes:
                raise self.bad_request(f"Unknown resource class in inventory: No such resource class {name}.")
        totals = {name: ctx.mapping(given, name) for name in given}
        row["_inventory"] = {
            name: ctx.integer(t, "total", required=True, low=1) for name, t in totals.items()
        }
        row["generation"] += 1
        return answer({"inventories": given, "resource_provider_generation": row["generation"]})

    @route("GET", "/resource_providers/{id}/traits")
    def provider_traits(self, ctx: Ctx) -> Response:
        self._admin(ctx, "traits:list")
        row = self._find(ctx)
        return answer({"traits": list(row["_traits"]), "resource_provider_generation": row["generation"]})

    @route("PUT", "/resource_providers/{id}/traits")
    def set_provider_traits(self, ctx: Ctx) -> Response:
        self._admin(ctx, "traits:update")
        row, wanted = self._find(ctx), ctx.texts(self._object(ctx), "traits")
        missing = sorted(set(wanted) - set(self.traits))
        if missing:
            raise self.bad_request(f"No such trait {', '.join(missing)}")
        row["_traits"] = sorted(set(wanted))
        row["generation"] += 1
        return answer({"traits": row["_traits"], "resource_provider_generation": row["generation"]})

    @route("GET", "/traits")
    def list_traits(self, ctx: Ctx) -> Response:
        return answer({"traits": list(self.traits)})

    @route("PUT", "/traits/{name}")
    def add_trait(self, ctx: Ctx) -> Response:
        return self._register(ctx, "traits:update", self.traits)

    @route("GET", "/resource_classes")
    def list_classes(self, ctx: Ctx) -> Response:
        return answer({"resource_classes": [{"name": name} for name in self.classes]})

    @route("PUT", "/resource_classes/{name}")
    def add_class(self, ctx: Ctx) -> Response:
        return self._register(ctx, "resource_classes:update", self.classes)

    def _register(self, ctx: Ctx, rule: str, known: dict[str, None]) -> Response:
        self._admin(ctx, rule)
        name = ctx.params["name"]
        if CUSTOM.match(name) is None:
            raise self.bad_request(f"The name {name} must start with CUSTOM_ and use A-Z, 0-9 and _.")
        status = 204 if name in known else 201
        known[name] = None
        return nothing(status)

    # ------------------------------------------------------------- pieces

    def add_provider(
        self, name: str, inventory: Mapping[str, int], traits: Sequence[str], provider_id: str | None = None
    ) -> Row:
        """Store a provider; its classes and traits become known."""
        self.classes.update(dict.fromkeys(inventory))
        self.traits.update(dict.fromkeys(traits))
        row: Row = {
            "id": provider_id or self.cloud.ids.uuid(), "name": name, "generation": 0,
            "_inventory": dict(inventory), "_traits": sorted(set(traits)), "_taken": {},
        }  # fmt: skip
        return self.providers.add(row)

    def _object(self, ctx: Ctx) -> JsonObject:
        value = ctx.json()
        if not isinstance(value, dict):
            raise self.bad_request(f"JSON does not validate: {value!r} is not of type 'object'")
        return value

    def _room(self, row: Row, name: str) -> int:
        return int(row["_inventory"].get(name, 0)) - int(row["_taken"].get(name, 0))

    def _show(self, ctx: Ctx, row: Row) -> JsonObject:
        base = f"/placement/resource_providers/{row['id']}"
        links = [{"rel": "self", "href": base}]
        links += [{"rel": rel, "href": f"{base}/{rel}"} for rel in ("inventories", "traits")]
        made: JsonObject = {
            "uuid": row["id"], "name": row["name"], "generation": row["generation"], "links": links,
        }  # fmt: skip
        if ctx.version >= PARENTS_SINCE:
            made.update(parent_provider_uuid=None, root_provider_uuid=row["id"])
        return made

    def _find(self, ctx: Ctx) -> Row:
        row = self.providers.get(ctx.params["id"])
        if row is None:
            raise self.error(404, f"No resource provider with uuid {ctx.params['id']} found")
        return row

    def _admin(self, ctx: Ctx, what: str) -> None:
        ctx.require(ctx.is_admin, f"placement:resource_providers:{what}")

    # ---------------------------------------------------------------- rest

    def foreign(self, verb: str, object_id: str, values: JsonObject) -> JsonObject:
        """`take` or `free` amounts by resource class, `delete` a provider."""
        row = self.providers.get(object_id)
        if row is None:
            raise KeyError(object_id)
        if verb in ("take", "free"):
            sign = 1 if verb == "take" else -1
            for name, amount in values.items():
                row["_taken"][name] = max(0, row["_taken"].get(name, 0) + sign * int(amount))
        elif verb == "delete":
            self.providers.remove(object_id)
        else:
            raise ValueError(f"placement knows no foreign change {verb!r}; use take, free or delete")
        made: JsonObject = {"uuid": row["id"], "name": row["name"], "taken": dict(row["_taken"])}
        return made

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        document: dict[str, Any] = {
            "id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": "1.39",
            "links": [{"rel": "self", "href": ""}],
        }  # fmt: skip
        return answer({"versions": [document]})
