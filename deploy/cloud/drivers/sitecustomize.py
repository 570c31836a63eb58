"""Loaded first by every Python process of the cloud; changes two things that no setting can.

octavia-lib keeps the paths of the driver agent's sockets fixed below /var/run: ours move
into the cloud's home.  Nova loads compute drivers from its own package only: ours is lent
to it under the name nova.virt.pretended.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


class _LentDriver(importlib.abc.MetaPathFinder):
    """Finds nova.virt.pretended in the file beside this one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "nova.virt.pretended":
            return None
        return importlib.util.spec_from_file_location(fullname, Path(__file__).with_name("nova_virt.py"))


def _move_octavia_sockets(directory: str) -> None:
    from octavia_lib.api.drivers import driver_lib

    # The three parameters of __init__ are the sockets, in this order.
    driver_lib.DriverLibrary.__init__.__defaults__ = tuple(
        f"{directory}/octavia-{kind}.sock" for kind in ("status", "stats", "get")
    )


if os.environ.get("ROADSTEAD_CLOUD_OCTAVIA_SOCKETS"):
    _move_octavia_sockets(os.environ["ROADSTEAD_CLOUD_OCTAVIA_SOCKETS"])
if os.environ.get("ROADSTEAD_CLOUD_NOVA_DRIVER"):
    sys.meta_path.insert(0, _LentDriver())
