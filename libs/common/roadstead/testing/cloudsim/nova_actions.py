"""Actions on servers: rebuild with its compare-and-set, power, resize, snapshot, lock, consoles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .base import Ctx, JsonObject, Refused, answer, nothing, route
from .nova_boot import is_uuid
from .nova_state import PAUSED, RUNNING, SHUTDOWN, SUSPENDED, VM_STATES, Action, Server
from .wire import Response

if TYPE_CHECKING:
    from .nova import Nova

_REBUILD_FIELDS = frozenset(
    {
        "imageRef", "name", "metadata", "adminPass", "OS-DCF:diskConfig", "preserve_ephemeral", "personality",
        "accessIPv4", "accessIPv6", "description", "key_name", "user_data", "trusted_image_certificates", "hostname",
    }
)  # fmt: skip


class Actions:
    """Routes of /servers/{id}/action and of the consoles."""

    def __init__(self, nova: Nova) -> None:
        self.nova = nova
        self.cloud = nova.cloud
        self._verbs: dict[str, Callable[[Ctx, Server, JsonObject], Response]] = {
            "rebuild": self.rebuild,
            "reboot": self.reboot,
            "os-stop": self.stop,
            "os-start": self.start,
            "pause": self._switch("pause", "pausing", "paused", PAUSED),
            "unpause": self._switch("unpause", "unpausing", "active", RUNNING),
            "suspend": self._switch("suspend", "suspending", "suspended", SUSPENDED),
            "resume": self._switch("resume", "resuming", "active", RUNNING),
            "resize": self.resize,
            "confirmResize": self.confirm_resize,
            "revertResize": self.revert_resize,
            "createImage": self.create_image,
            "lock": self.lock,
            "unlock": self.unlock,
            "os-resetState": self.reset_state,
            "os-getConsoleOutput": self.console_output,
            "os-getVNCConsole": self.vnc_console,
            "addSecurityGroup": self.security_group,
            "removeSecurityGroup": self.security_group,
        }

    # --------------------------------------------------------------- record

    def note(self, ctx: Ctx, server: Server, action: str) -> None:
        """One more entry of the server's history."""
        now = self.cloud.now
        request_id = f"req-{self.cloud.ids.uuid()}"
        server.actions.append(Action(action, request_id, ctx.token.user_id, ctx.project_id, now, now))

    def finish(self, server: Server, error: str | None = None) -> None:
        """The last entry has ended, with `error` badly."""
        if server.actions:
            last = server.actions[-1]
            last.finished, last.updated, last.message = True, self.cloud.now, "Error" if error else None

    @route("POST", "/v2.1/servers/{id}/action")
    def act(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        body = ctx.json()
        if not isinstance(body, dict) or len(body) != 1:
            raise self.nova.bad_request("Malformed request body")
        verb, given = next(iter(body.items()))
        do = self._verbs.get(verb)
        if do is None:
            raise self.nova.bad_request(f"There is no such action: {verb}")
        return do(ctx, server, given if isinstance(given, dict) else {})

    # -------------------------------------------------------------- rebuild

    def rebuild(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        """Image reference and task change together, before the 202: a reader sees both or neither."""
        ctx.only(given, _REBUILD_FIELDS)
        ref = ctx.text(given, "imageRef", required=True) or ""
        image_id = ref.rstrip("/").rsplit("/", 1)[-1]
        if not is_uuid(image_id):
            raise self.nova.invalid_field("imageRef", ref, f"'{ref}' is not a 'uuid'")
        self.nova.check(ctx, server, "rebuild")
        if not server.image_id:
            raise self.nova.bad_request(
                "Unable to rebuild with a different image for a volume-backed server."
            )
        self.nova.boot.usable_image(ctx, image_id, server.flavor, "Cannot find image for rebuild")
        if ctx.version >= (2, 54) and given.get("key_name") is not None:
            name = ctx.text(given, "key_name") or ""
            if (ctx.token.user_id, name) not in self.nova.keypairs:
                raise self.nova.bad_request("Invalid key_name provided.")
            server.key_name = name
        if given.get("metadata") is not None:
            server.metadata = self.nova.boot.metadata(ctx, ctx.mapping(given, "metadata"))
        server.name = ctx.text(given, "name", server.name) or server.name
        if ctx.version >= (2, 57) and "user_data" in given:
            server.user_data = ctx.text(given, "user_data", max_length=65535)
        self.note(ctx, server, "rebuild")
        self.start_rebuild(server, image_id, False)
        shown = self.nova.views.full(ctx, server) | {
            "adminPass": given.get("adminPass") or self.cloud.ids.hex()[:12]
        }
        return answer({"server": shown}, 202, Location=self.nova.views.links("servers", server.id)[0]["href"])

    def start_rebuild(self, server: Server, image_id: str, fail: bool) -> None:
        """The write of a rebuild and its phases; `fail` decides its end beforehand."""
        stopped = server.vm_state == "stopped"
        server.image_id = image_id
        self.nova.begin(server, "rebuilding")
        durations = self.cloud.settings.durations

        def finished(now: Server, reason: str | None) -> None:
            outcome = self.cloud.outcome("server_rebuild", now.name)
            if fail or outcome is not None or reason is not None:
                message = (outcome.message if outcome else reason) or f"Failed to rebuild instance {now.id}."
                self.nova.fail(
                    now, message, outcome.code if outcome else 500, outcome.detail if outcome else ""
                )
                self.finish(now, message)
                return
            now.task_state, now.launched_at = None, self.cloud.now
            now.vm_state, now.power_state = ("stopped", SHUTDOWN) if stopped else ("active", RUNNING)
            self.nova.recovered(now)
            self.finish(now)

        def spawning(now: Server) -> None:
            now.task_state = "rebuild_spawning"
            order = self.nova.obey(now, "rebuild", "spawn")
            seconds = durations.rebuild_spawn + order.seconds
            self.nova.step(now, seconds, lambda later: finished(later, order.reason))

        def block_devices(now: Server) -> None:
            now.task_state = "rebuild_block_device_mapping"
            self.nova.step(now, durations.rebuild_block_device, spawning)

        self.nova.step(server, durations.rebuild_start, block_devices)

    # ---------------------------------------------------------------- power

    def reboot(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        """A hard reboot is taken in ERROR too and ends ACTIVE."""
        kind = str(given.get("type") or "").upper()
        if kind not in ("SOFT", "HARD"):
            raise self.nova.invalid_field(
                "type", given.get("type"), f"{given.get('type')!r} is not one of SOFT, HARD"
            )
        hard = kind == "HARD"
        self.nova.check(ctx, server, "reboot_hard" if hard else "reboot")
        self.note(ctx, server, "reboot")
        self.nova.begin(server, "rebooting_hard" if hard else "rebooting")

        def done(now: Server) -> None:
            outcome = self.cloud.outcome("server_reboot", now.name)
            if outcome is not None:
                self.nova.fail(now, outcome.message or "reboot failed", outcome.code)
                self.finish(now, outcome.message or "reboot failed")
                return
            now.vm_state, now.task_state, now.power_state = "active", None, RUNNING
            self.nova.recovered(now)
            self.finish(now)

        self.nova.step(server, self.cloud.settings.durations.server_reboot, done)
        return nothing(202)

    def stop(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        return self._power(ctx, server, "stop", "powering-off", "stopped", SHUTDOWN)

    def start(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        return self._power(ctx, server, "start", "powering-on", "active", RUNNING)

    def _power(self, ctx: Ctx, server: Server, word: str, task: str, vm_state: str, power: int) -> Response:
        self.nova.check(ctx, server, word)
        self.note(ctx, server, word)
        self.nova.begin(server, task)

        def done(now: Server) -> None:
            now.vm_state, now.task_state, now.power_state = vm_state, None, power
            self.nova.recovered(now)
            self.finish(now)

        durations = self.cloud.settings.durations
        self.nova.step(server, durations.server_stop if word == "stop" else durations.server_start, done)
        return nothing(202)

    def _switch(
        self, word: str, task: str, vm_state: str, power: int
    ) -> Callable[[Ctx, Server, JsonObject], Response]:
        # Not a closure: a cloud whose state is kept over a restart must consist of what pickle can name.
        return partial(self._switched, word, task, vm_state, power)

    def _switched(
        self, word: str, task: str, vm_state: str, power: int, ctx: Ctx, server: Server, _given: JsonObject
    ) -> Response:
        return self._power(ctx, server, word, task, vm_state, power)

    # --------------------------------------------------------------- resize

    def resize(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        flavor = self.nova.flavors.get(str(given.get("flavorRef")))
        if flavor is None:
            raise self.nova.bad_request(f"Flavor {given.get('flavorRef')} could not be found.")
        self.nova.check(ctx, server, "resize")
        if flavor["id"] == server.flavor["id"]:
            raise self.nova.bad_request("When resizing, instances must change flavor!")
        self.note(ctx, server, "resize")
        self.nova.begin(server, "resize_prep")

        def done(now: Server) -> None:
            now.old_flavor, now.flavor = now.flavor, dict(flavor)
            now.vm_state, now.task_state = "resized", None
            self.finish(now)

        self.nova.step(server, self.cloud.settings.durations.server_resize, done)
        return nothing(202)

    def confirm_resize(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        self.nova.check(ctx, server, "confirmResize")
        self.note(ctx, server, "confirmResize")
        self.nova.begin(server, None)
        server.vm_state, server.old_flavor = "active", None
        self.finish(server)
        return nothing(204)

    def revert_resize(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        self.nova.check(ctx, server, "revertResize")
        self.note(ctx, server, "revertResize")
        self.nova.begin(server, "resize_reverting")

        def done(now: Server) -> None:
            now.flavor, now.old_flavor = now.old_flavor or now.flavor, None
            now.vm_state, now.task_state = "active", None
            self.finish(now)

        self.nova.step(server, self.cloud.settings.durations.server_resize, done)
        return nothing(202)

    # ------------------------------------------------------------- snapshot

    def create_image(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        """The image is there at once, queued, with the metadata; it becomes active later."""
        name = ctx.text(given, "name", required=True) or ""
        metadata = self.nova.boot.metadata(ctx, ctx.mapping(given, "metadata"))
        self.nova.check(ctx, server, "createImage")
        glance = self.cloud.glance
        base = glance.image(server.image_id) if server.image_id else None
        properties: JsonObject = {
            "instance_uuid": server.id,
            "base_image_ref": server.image_id,
            "image_type": "snapshot",
            "owner_id": server.project_id,
            "user_id": ctx.token.user_id,
        } | metadata
        try:
            image_id = glance.snapshot_create(
                name, server.project_id, ctx.token.user_id, properties, server.flavor["disk"], base
            )
        except Refused as refused:
            raise self.nova.error(403 if refused.reason == "quota" else 400, refused.message) from None
        self.note(ctx, server, "createImage")
        self.nova.begin(server, "image_snapshot")

        def uploaded(now: Server) -> None:
            now.task_state = None
            self.finish(now)

        duration = self.cloud.settings.durations.server_snapshot
        # The image ends on its own: it outlives a server that is deleted meanwhile.
        failed = self.cloud.outcome("server_snapshot", server.name) is not None
        size = 2**20 * 16
        self.cloud.later(duration, lambda: glance.snapshot_finish(image_id, size, error=failed))
        self.nova.step(server, duration, uploaded)
        if ctx.version >= (2, 45):
            return answer({"image_id": image_id}, 202)
        location = f"{self.cloud.settings.base_url}/compute/v2.1/images/{image_id}"
        return Response(202, {"Location": location})

    # ------------------------------------------------------------ the rest

    def lock(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        server.locked, server.locked_reason = True, ctx.text(given, "locked_reason")
        return nothing(202)

    def unlock(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        server.locked, server.locked_reason = False, None
        return nothing(202)

    def reset_state(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        ctx.require(ctx.is_admin, "os_compute_api:os-admin-actions:reset_state")
        state = str(given.get("state"))
        if state not in VM_STATES & {"active", "error"}:
            raise self.nova.invalid_field("state", state, f"{state!r} is not one of active, error")
        self.nova.begin(server, None)
        server.vm_state = state
        return nothing(202)

    def security_group(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        raise self.nova.error(501, "Security groups of a server are changed on its ports here.")

    def console_output(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        if server.vm_state == "building":
            raise self.nova.conflict(f"Instance {server.id} is not ready")
        length = ctx.integer(given, "length", None, low=-1)
        lines = [f"[    {n}.000000] {server.hostname} console line {n}" for n in range(20)]
        if length is not None and length >= 0:
            lines = lines[-length:] if length else []
        return answer({"output": "\n".join(lines)})

    def vnc_console(self, ctx: Ctx, server: Server, given: JsonObject) -> Response:
        kind = str(given.get("type"))
        return answer({"console": {"type": kind, "url": self._console_url(server, kind)}})

    def _console_url(self, server: Server, kind: str) -> str:
        if kind not in self.cloud.settings.console_types:
            raise self.nova.bad_request(f"Unavailable console type {kind}.")
        if server.launched_at is None:
            raise self.nova.conflict(f"Instance {server.id} is not ready")
        return f"{self.cloud.settings.base_url}/vnc_auto.html?path=%3Ftoken%3D{self.cloud.ids.uuid()}"

    @route("POST", "/v2.1/servers/{id}/remote-consoles")
    def remote_console(self, ctx: Ctx) -> Response:
        server = self.nova.own_server(ctx)
        body = ctx.body("remote_console")
        kind = ctx.text(body, "type", required=True) or ""
        url = self._console_url(server, kind)
        return answer({"remote_console": {"protocol": body.get("protocol"), "type": kind, "url": url}})
