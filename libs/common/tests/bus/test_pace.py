"""How a service's consumers are set up: the pace of redelivery, and what is handled in order."""

from dataclasses import replace

import pytest
from nats.aio.msg import Msg

from roadstead.bus.durable import Durable
from roadstead.bus.pull import Delivery
from roadstead.service_streams import Streams

from .conftest import Rig

DELIVERY = Delivery("spec.x", b"", {}, "SPEC", 1, 1, 1, 0, 0, Msg(_client=None))  # type: ignore[arg-type]  # never answered


@pytest.mark.parametrize(("pace", "seconds"), [(1.0, 30.0), (0.1, 3.0), (0.01, 1.0), (2.0, 60.0)])
async def test_ack_wait_is_paced_and_never_below_a_second(pace: float, seconds: float) -> None:
    rig = Rig("nats://127.0.0.1:1")
    rig.assembly.platform = replace(rig.assembly.platform, pace=pace)
    streams = Streams(rig.assembly, rig.bus, in_hand=1, start=rig.start)
    assert streams.durables
    assert {durable.settings.ack_wait for durable in streams.durables} == {seconds}


async def test_messages_about_one_id_are_handled_in_order_whatever_project_they_name() -> None:
    """Two projects' specs of one id: the first is to have it."""
    rig = Rig("nats://127.0.0.1:1")
    streams = Streams(rig.assembly, rig.bus, in_hand=1, start=rig.start)

    def lanes(durable: Durable, *subjects: str) -> set[str]:
        return {durable._lane_of(replace(DELIVERY, subject=subject)) for subject in subjects}

    for durable in streams.durables:
        assert len(lanes(durable, "spec.r.a.volume.x", "spec.r.b.volume.x", "spec.q.b.volume.x")) == 1
        assert len(lanes(durable, "spec.r.a.volume.x", "spec.r.a.volume.y", "spec.r.a.server.x")) == 3
        assert len(lanes(durable, "spec.x", "spec.y")) == 2
