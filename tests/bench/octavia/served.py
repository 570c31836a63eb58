"""`python -m tests.bench.octavia.served`: one replica as `python -m roadstead_octavia` is, beside a network that answers at once.

With PROFILE set to a file the time spent in this process is written there when it ends.
"""

import cProfile
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import uvloop

from roadstead.settings import load_settings
from roadstead_octavia.db.port import Row
from roadstead_octavia.http.operations import load
from roadstead_octavia.outside.absent import NoNetwork
from roadstead_octavia.process import Process
from roadstead_octavia.settings import load_octavia_settings
from tests.bench.octavia.wanted import NETWORK, SUBNET


class InstantNetwork(NoNetwork):
    """Every subnet is in the one network that there is."""

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        if kind == "subnets":
            return {"id": identifier, "network_id": NETWORK, "cidr": "192.0.2.0/24", "ip_version": 4}
        return {"id": identifier, "subnets": [SUBNET], "subnet_ids": [SUBNET], "port_security_enabled": True}

    async def has_qos(self) -> bool:
        return True

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        raise NotImplementedError("the noop provider makes ports")


async def _serve() -> int:
    process = Process(load_settings(), load_octavia_settings(), network=InstantNetwork(), operations=load())
    return await process.main()


def main() -> int:
    file = os.environ.get("PROFILE")
    if not file:
        return uvloop.run(_serve())
    profile = cProfile.Profile(time.process_time)
    try:
        return profile.runcall(uvloop.run, _serve())
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    sys.exit(main())
