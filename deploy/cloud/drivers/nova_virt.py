"""Nova's fake driver, made fit for a cloud that lasts.

Over the one in Nova's tree, the hypervisor keeps its identity and its guests over a
restart, snapshots have content, and orders to fail or to be slow are obeyed: from the
server's metadata, the image's properties or the flavor's extra specs, in this order.
"""

import io
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from nova import exception
from nova.compute import power_state, task_states, vm_states
from nova.image import glance
from nova.virt import fake
from nova.virt import node as virt_node
from orders import Orders

# Nova copies image properties here, and replaces them at a rebuild.
IMAGE_PROPERTY = "image_"


class PretendedDriver(fake.FakeDriver):
    """A hypervisor with memory but without guests."""

    capabilities: ClassVar[dict[str, bool]] = {
        **fake.FakeDriver.capabilities,
        "supports_migrate_to_same_host": True,
        "supports_image_type_qcow2": True,
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._orders = Orders()
        self._node_uuid = ""

    def init_host(self, host: str) -> None:
        super().init_host(host)
        self._node_uuid = virt_node.get_local_node_uuid()

    def get_available_resource(self, nodename: str) -> Any:
        resources = super().get_available_resource(nodename)
        if resources:
            resources["uuid"] = self._uuid(nodename)
        return resources

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        return {self._uuid(name): name for name in self.get_available_nodes()}

    def spawn(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        # Nova spawns for a rebuild as well; only the task tells them apart.
        rebuilding = instance.task_state == task_states.REBUILD_SPAWNING
        self._obey(instance, "rebuild" if rebuilding else "boot", "spawn")
        super().spawn(context, instance, *args, **kwargs)

    def destroy(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        self._obey(instance, "destroy")
        super().destroy(context, instance, *args, **kwargs)

    def get_info(self, instance: Any, use_cache: bool = True) -> Any:
        if instance.task_state not in (task_states.DELETING, task_states.REBUILDING):
            self._recall(instance)
        return super().get_info(instance, use_cache)

    def reboot(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        self._obey(instance, "power")
        self._recall(instance)
        super().reboot(context, instance, *args, **kwargs)

    def power_off(self, instance: Any, timeout: int = 0, retry_interval: int = 0) -> None:
        self._obey(instance, "power")
        self._recall(instance)
        super().power_off(instance, timeout, retry_interval)

    def power_on(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        self._obey(instance, "power")
        self._recall(instance)
        super().power_on(context, instance, *args, **kwargs)

    def snapshot(self, context: Any, instance: Any, image_id: str, update_task_state: Any) -> None:
        self._obey(instance, "snapshot")
        self._recall(instance)
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        update_task_state(
            task_state=task_states.IMAGE_UPLOADING, expected_state=task_states.IMAGE_PENDING_UPLOAD
        )
        images = glance.API()
        image = images.get(context, image_id)
        record = {
            "name": image["name"],
            "disk_format": "raw",
            "container_format": "bare",
            "status": "active",
            "properties": image.get("properties", {}),
        }
        content = io.BytesIO(f"disk of {instance.uuid}".encode())
        images.update(context, image_id, record, content, purge_props=False)

    def get_console_output(self, context: Any, instance: Any) -> bytes:
        name = instance.hostname or instance.display_name
        return f"console of {instance.uuid}\n{name} login: ".encode()

    def _obey(self, instance: Any, *verbs: str) -> None:
        places: list[Mapping[str, str]] = [
            instance.metadata or {},
            {
                key.removeprefix(IMAGE_PROPERTY): value
                for key, value in instance.system_metadata.items()
                if key.startswith(IMAGE_PROPERTY)
            },
            instance.flavor.extra_specs or {},
        ]
        reason = self._orders.obey(instance.uuid, verbs, places)
        if reason:
            raise exception.NovaException(reason)

    def _uuid(self, node: str) -> str:
        if node == self._nodes[0]:
            return self._node_uuid
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, node))

    def _recall(self, instance: Any) -> None:
        """Take up a guest that ran before this process did."""
        if instance.uuid in self.instances or instance.vm_state in (
            vm_states.BUILDING,
            vm_states.DELETED,
            None,
        ):
            return
        state = power_state.SHUTDOWN if instance.vm_state == vm_states.STOPPED else power_state.RUNNING
        flavor = instance.flavor
        self.resources.claim(vcpus=flavor.vcpus, mem=flavor.memory_mb, disk=flavor.root_gb)
        self.instances[instance.uuid] = fake.FakeInstance(instance.name, state, instance.uuid)
