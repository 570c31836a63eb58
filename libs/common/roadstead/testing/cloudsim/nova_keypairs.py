"""Key pairs: they belong to a user, in all of the user's projects."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, answer, nothing, route
from .ids import micros
from .paging import linked
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova


class Keypairs:
    """Routes of /os-keypairs."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud

    def _owner(self, ctx: Ctx) -> str:
        other = ctx.q("user_id")
        if other is not None and other != ctx.token.user_id:
            ctx.require(ctx.is_admin, "os_compute_api:os-keypairs:index")
            return other
        return ctx.token.user_id

    @route("GET", "/v2.1/os-keypairs")
    def index(self, ctx: Ctx) -> Response:
        owner = self._owner(ctx)
        rows = [k for (user, _), k in self.nova.keypairs.items() if user == owner]

        def show(keypair: JsonObject) -> JsonObject:
            keys = ["name", "public_key", "fingerprint"] + (["type"] if ctx.version >= (2, 2) else [])
            return {"keypair": {key: keypair[key] for key in keys}}

        size = self.cloud.settings.pages.compute if ctx.version >= (2, 35) else 0
        return answer(linked(ctx, "keypairs", rows, lambda k: k["name"], show, default=size, maximum=size))

    @route("POST", "/v2.1/os-keypairs")
    def create(self, ctx: Ctx) -> Response:
        """The private part comes back only when Nova makes the pair, which 2.92 ended."""
        body = ctx.body("keypair")
        ctx.only(body, {"name", "public_key", "type", "user_id"})
        name = ctx.text(body, "name", required=True) or ""
        public_key = ctx.text(body, "public_key", max_length=16384)
        if public_key is None and ctx.version >= (2, 92):
            raise self.nova.invalid_field("keypair", body, "'public_key' is a required property")
        owner = ctx.text(body, "user_id") or ctx.token.user_id
        if owner != ctx.token.user_id:
            ctx.require(ctx.is_admin, "os_compute_api:os-keypairs:create")
        if (owner, name) in self.nova.keypairs:
            raise self.nova.conflict(f"Key pair '{name}' already exists.")
        self.nova.quotas.check_keypairs(ctx.project_id, owner)
        given = public_key or f"ssh-rsa {base64.b64encode(self.cloud.ids.hex().encode()).decode()} generated"
        keypair: JsonObject = {
            "id": len(self.nova.keypairs) + 1,
            "name": name,
            "user_id": owner,
            "type": ctx.text(body, "type", "ssh"),
            "public_key": given,
            "fingerprint": self._fingerprint(given),
            "created_at": micros(self.cloud.now),
            "updated_at": None,
            "deleted": False,
            "deleted_at": None,
        }
        self.nova.keypairs[(owner, name)] = keypair
        shown = {key: keypair[key] for key in ("name", "user_id", "type", "public_key", "fingerprint")}
        if public_key is None:
            shown["private_key"] = "-----BEGIN PRIVATE KEY-----\nsimulated\n-----END PRIVATE KEY-----\n"
        return answer({"keypair": shown}, 201 if ctx.version >= (2, 2) else 200)

    def _fingerprint(self, public_key: str) -> str:
        words = public_key.split()
        if len(words) < 2 or not words[0].startswith(("ssh-", "ecdsa-", "sk-")):
            raise self.nova.bad_request("Keypair data is invalid: failed to generate fingerprint")
        try:
            digest = hashlib.md5(base64.b64decode(words[1], validate=True), usedforsecurity=False).hexdigest()
        except ValueError:
            raise self.nova.bad_request("Keypair data is invalid: failed to generate fingerprint") from None
        return ":".join(digest[i : i + 2] for i in range(0, 32, 2))

    def _keypair(self, ctx: Ctx) -> JsonObject:
        owner = self._owner(ctx)
        keypair = self.nova.keypairs.get((owner, ctx.params["name"]))
        if keypair is None:
            raise self.nova.not_found(f"Keypair {ctx.params['name']} not found for user {owner}")
        return keypair

    @route("GET", "/v2.1/os-keypairs/{name}")
    def show(self, ctx: Ctx) -> Response:
        return answer({"keypair": dict(self._keypair(ctx))})

    @route("DELETE", "/v2.1/os-keypairs/{name}")
    def delete(self, ctx: Ctx) -> Response:
        keypair = self._keypair(ctx)
        del self.nova.keypairs[(keypair["user_id"], keypair["name"])]
        return nothing(204 if ctx.version >= (2, 2) else 202)
