"""The time until an unacknowledged message comes again keeps the pace of the loop."""

from dataclasses import replace

import pytest

from roadstead.service_streams import Streams

from .conftest import Rig


@pytest.mark.parametrize(("pace", "seconds"), [(1.0, 30.0), (0.1, 3.0), (0.01, 1.0), (2.0, 60.0)])
async def test_ack_wait_is_paced_and_never_below_a_second(pace: float, seconds: float) -> None:
    rig = Rig("nats://127.0.0.1:1")
    rig.assembly.platform = replace(rig.assembly.platform, pace=pace)
    streams = Streams(rig.assembly, rig.bus, in_hand=1, start=rig.start)
    assert streams.durables
    assert {durable.settings.ack_wait for durable in streams.durables} == {seconds}
