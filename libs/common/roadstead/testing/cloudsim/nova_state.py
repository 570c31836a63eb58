"""A server's record, the status that follows from it, and which operation its state allows.

As in Nova a server has a vm_state (what it is), a task_state (what is being done) and a
power_state; `status` is derived from the first two and never stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .base import JsonObject

NOSTATE, RUNNING, PAUSED, SHUTDOWN, CRASHED, SUSPENDED = 0, 1, 3, 4, 6, 7

_REBUILD_TASKS = {
    "rebuilding": "REBUILD", "rebuild_block_device_mapping": "REBUILD", "rebuild_spawning": "REBUILD",
}  # fmt: skip
_RESIZE_TASKS = {
    "resize_prep": "RESIZE", "resize_migrating": "RESIZE", "resize_migrated": "RESIZE", "resize_finish": "RESIZE",
}  # fmt: skip
_REBOOT_TASKS = {
    "rebooting": "REBOOT", "reboot_pending": "REBOOT", "reboot_started": "REBOOT", "rebooting_hard": "HARD_REBOOT",
    "reboot_pending_hard": "HARD_REBOOT", "reboot_started_hard": "HARD_REBOOT",
}  # fmt: skip
# vm_state -> (status without a task that matters, statuses by task)
_STATUS: dict[str, tuple[str, dict[str, str]]] = {
    "building": ("BUILD", {}),
    "active": ("ACTIVE", _REBUILD_TASKS | _REBOOT_TASKS | _RESIZE_TASKS | {"migrating": "MIGRATING"}),
    "stopped": ("SHUTOFF", _REBUILD_TASKS | _RESIZE_TASKS),
    "resized": ("VERIFY_RESIZE", {"resize_reverting": "REVERT_RESIZE"}),
    "paused": ("PAUSED", {"migrating": "MIGRATING"}),
    "suspended": ("SUSPENDED", {}),
    "rescued": ("RESCUE", {}),
    "error": ("ERROR", _REBUILD_TASKS),
    "shelved_offloaded": ("SHELVED_OFFLOADED", {}),
    "deleted": ("DELETED", {}),
    "soft-delete": ("SOFT_DELETED", {}),
}
VM_STATES = frozenset(_STATUS)


@dataclass
class Attachment:
    """A volume at a server; `ready` once the hypervisor has it."""

    volume_id: str
    attachment_id: str
    bdm_id: str
    device: str
    tag: str | None = None
    delete_on_termination: bool = False
    ready: bool = False
    boot_index: int | None = None


@dataclass
class Nic:
    """A port of a server; `made_by_nova` ports are deleted with it, others only unbound."""

    port_id: str
    made_by_nova: bool = False


@dataclass
class Action:
    """One entry of os-instance-actions."""

    action: str
    request_id: str
    user_id: str
    project_id: str
    start: datetime
    updated: datetime
    message: str | None = None
    finished: bool = False


@dataclass
class Server:
    """All that is known of one server."""

    id: str
    name: str
    project_id: str
    user_id: str
    image_id: str
    """Empty for a server booted from a volume."""
    flavor: JsonObject
    created: datetime
    updated: datetime
    vm_state: str = "building"
    task_state: str | None = "scheduling"
    power_state: int = NOSTATE
    launched_at: datetime | None = None
    terminated_at: datetime | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    description: str | None = None
    hostname: str = ""
    host: str | None = None
    pinned_host: str | None = None
    zone: str = ""
    security_groups: list[str] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)
    wanted_networks: list[JsonObject] = field(default_factory=list)
    wanted_volumes: list[JsonObject] = field(default_factory=list)
    attachments: dict[str, Attachment] = field(default_factory=dict)
    fault: JsonObject | None = None
    locked: bool = False
    locked_reason: str | None = None
    tags: list[str] = field(default_factory=list)
    group_id: str | None = None
    disk_config: str = "MANUAL"
    old_flavor: JsonObject | None = None
    actions: list[Action] = field(default_factory=list)
    epoch: int = 0
    """Rises with every operation that starts; a step of an older operation does nothing."""

    @property
    def status(self) -> str:
        return status_of(self.vm_state, self.task_state)


def status_of(vm_state: str, task_state: str | None) -> str:
    """Nova's status for a vm_state and a task; UNKNOWN for a state that is none of Nova's."""
    base, by_task = _STATUS.get(vm_state, ("UNKNOWN", {}))
    return by_task.get(task_state or "", base)


_NO_TASK = frozenset({None})
_REBOOTABLE_TASKS = frozenset(
    {None, "rebooting", "reboot_pending", "reboot_started", "resuming", "rebooting_hard", "unpausing", "pausing", "suspending"}
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """States in which an operation is taken; `launched` asks for a first boot."""

    vm_states: frozenset[str]
    tasks: frozenset[str | None] = _NO_TASK
    launched: bool = True


def _states(*names: str) -> frozenset[str]:
    return frozenset(names)


ALLOWED: dict[str, Allowed] = {
    "rebuild": Allowed(_states("active", "stopped", "error")),
    "reboot": Allowed(_states("active")),
    "reboot_hard": Allowed(
        _states("active", "stopped", "paused", "suspended", "error"), _REBOOTABLE_TASKS, launched=False
    ),
    "stop": Allowed(_states("active", "error")),
    "start": Allowed(_states("stopped")),
    "pause": Allowed(_states("active")),
    "unpause": Allowed(_states("paused")),
    "suspend": Allowed(_states("active")),
    "resume": Allowed(_states("suspended")),
    "resize": Allowed(_states("active", "stopped")),
    "confirmResize": Allowed(_states("resized")),
    "revertResize": Allowed(_states("resized")),
    "createImage": Allowed(_states("active", "stopped", "paused", "suspended")),
    "attach_volume": Allowed(_states("active", "paused", "stopped", "resized", "shelved_offloaded")),
    "detach_volume": Allowed(
        _states("active", "paused", "suspended", "stopped", "resized", "shelved_offloaded")
    ),
    "attach_interface": Allowed(_states("active", "paused", "stopped")),
    "detach_interface": Allowed(_states("active", "paused", "stopped")),
    "update metadata": Allowed(_states("active", "paused", "suspended", "stopped"), launched=False),
    "delete metadata": Allowed(_states("active", "paused", "suspended", "stopped"), launched=False),
}


def refusal(server: Server, operation: str) -> str | None:
    """Why the operation cannot be taken now, in Nova's words; None when it can."""
    rule = ALLOWED[operation]
    word = "reboot" if operation == "reboot_hard" else operation
    if server.vm_state not in rule.vm_states:
        return f"Cannot '{word}' instance {server.id} while it is in vm_state {server.vm_state}"
    if server.task_state not in rule.tasks:
        return f"Cannot '{word}' instance {server.id} while it is in task_state {server.task_state}"
    if rule.launched and server.launched_at is None:
        return f"Instance {server.id} is in an invalid state for '{word}'"
    return None
