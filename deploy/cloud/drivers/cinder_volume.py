"""A volume driver without data: all that a volume is lives in Cinder's database.

Orders to fail or to be slow are obeyed from the volume's metadata or its type's extra
specs, in this order.  (The logging driver in Cinder's tree reports itself full, and the
scheduler then finds no room.)
"""

import io
from collections.abc import Mapping
from typing import Any

from cinder import context as cinder_context
from cinder import exception
from cinder.volume import driver, volume_types
from orders import Orders

CAPACITY_GB = 1_000_000


class PretendedVolumes(driver.VolumeDriver):
    """A store that is never full and never read."""

    VERSION = "1.0.0"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._orders = Orders()

    def do_setup(self, context: Any) -> None:
        """Nothing to set up."""

    def check_for_setup_error(self) -> None:
        """Nothing that could be wrong."""

    def get_volume_stats(self, refresh: bool = False) -> dict[str, Any]:
        name = self.configuration.safe_get("volume_backend_name")
        pool = {
            "pool_name": name,
            "total_capacity_gb": CAPACITY_GB,
            "free_capacity_gb": CAPACITY_GB,
            "provisioned_capacity_gb": 0,
            "reserved_percentage": 0,
            "max_over_subscription_ratio": 20.0,
            "multiattach": True,
            "thin_provisioning_support": True,
            "thick_provisioning_support": False,
            "QoS_support": False,
            "online_extend_support": True,
        }
        self._stats = {
            "volume_backend_name": name,
            "vendor_name": "Roadstead",
            "driver_version": self.VERSION,
            "storage_protocol": "pretended",
            "pools": [pool],
        }
        return self._stats

    def create_volume(self, volume: Any) -> None:
        self._obey(volume, "create")

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        self._obey(volume, "create")

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        self._obey(volume, "create")

    def copy_image_to_volume(
        self, context: Any, volume: Any, image_service: Any, image_id: str, disable_sparse: bool = False
    ) -> None:
        self._obey(volume, "create")

    def clone_image(
        self, context: Any, volume: Any, image_location: Any, image_meta: Any, image_service: Any
    ) -> tuple[dict[str, Any], bool]:
        # "Cloned": so nobody fetches the image's bytes.
        self._obey(volume, "create")
        return {}, True

    def copy_volume_to_image(self, context: Any, volume: Any, image_service: Any, image_meta: Any) -> None:
        image_service.update(context, image_meta["id"], {}, io.BytesIO(f"disk of {volume.id}".encode()))

    def delete_volume(self, volume: Any) -> None:
        self._obey(volume, "delete")

    def extend_volume(self, volume: Any, new_size: int) -> None:
        self._obey(volume, "extend")

    def create_snapshot(self, snapshot: Any) -> None:
        """A snapshot is its row."""

    def delete_snapshot(self, snapshot: Any) -> None:
        """A snapshot is its row."""

    def revert_to_snapshot(self, context: Any, volume: Any, snapshot: Any) -> None:
        """No data to turn back."""

    def retype(self, context: Any, volume: Any, new_type: Any, diff: Any, host: Any) -> bool:
        return True

    def ensure_export(self, context: Any, volume: Any) -> None:
        """Nothing is exported."""

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        """Nothing is exported."""

    def remove_export(self, context: Any, volume: Any) -> None:
        """Nothing is exported."""

    def initialize_connection(self, volume: Any, connector: Any, **kwargs: Any) -> dict[str, Any]:
        self._obey(volume, "attach")
        data = {"volume_id": volume.id, "target_lun": 1, "access_mode": "rw"}
        return {"driver_volume_type": "pretended", "data": data}

    def terminate_connection(self, volume: Any, connector: Any, **kwargs: Any) -> None:
        self._obey(volume, "detach")

    def _obey(self, volume: Any, verb: str) -> None:
        places: list[Mapping[str, str]] = [volume.metadata or {}]
        if volume.volume_type_id:
            # Read anew, so that a change of the type counts for volumes made before.
            admin = cinder_context.get_admin_context()
            places.append(volume_types.get_volume_type(admin, volume.volume_type_id)["extra_specs"])
        reason = self._orders.obey(volume.id, [verb], places)
        if reason:
            raise exception.VolumeDriverException(message=reason)
