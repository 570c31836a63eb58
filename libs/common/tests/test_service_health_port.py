"""A health port that somebody else has."""

import asyncio
import socket

import structlog

from roadstead.service_health import HealthServer, Readiness, health_app
from roadstead.service_tasks import Supervisor
from roadstead.telemetry.metrics import Meters


async def test_a_taken_health_port_is_one_line_and_is_tried_again() -> None:
    meters = Meters()
    supervisor = Supervisor(meters)
    with socket.create_server(("127.0.0.1", 0)) as taken, structlog.testing.capture_logs() as said:
        port = taken.getsockname()[1]
        app = health_app(Readiness(), meters)
        supervisor.start("health", lambda: HealthServer(app, "127.0.0.1", port).run_until_cancelled())
        for _ in range(1000):
            if said:
                break
            await asyncio.sleep(0.01)
        await supervisor.stop_all()
    assert [(line["log_level"], line["task"], line["again_in"]) for line in said] == [
        ("error", "health", 0.5)
    ]
    assert f"port {port} of 127.0.0.1 cannot be bound" in said[0]["reason"]
    assert "exc_info" not in said[0]
