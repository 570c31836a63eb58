"""`/healthz`, `/readyz` and `/metrics` of a process.

Healthy: the process runs.  Ready: bus, database, schema and consumers are there and what others own is known.  Regions are
conditions and metrics, never readiness.
"""

import contextlib
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from roadstead.telemetry.metrics import Meters

Check = Callable[[], Awaitable[str | None]]


@dataclass
class Readiness:
    """Named checks; each tells what is wrong, None when nothing is.  `stopping`: no longer ready, whatever they say."""

    checks: dict[str, Check] = field(default_factory=dict)
    stopping: bool = False

    async def faults(self) -> Mapping[str, str]:
        """What keeps the process from being ready, by check; empty when it is."""
        if self.stopping:
            return {"process": "it is stopping"}
        found = {name: await check() for name, check in list(self.checks.items())}
        return {name: text for name, text in found.items() if text is not None}


def health_app(readiness: Readiness, meters: Meters) -> Starlette:
    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        faults = await readiness.faults()
        checks = {name: faults.get(name, "ok") for name in (*readiness.checks, *faults)}
        return JSONResponse({"ready": not faults, "checks": checks}, status_code=503 if faults else 200)

    async def metrics(_request: Request) -> Response:
        return Response(meters.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [
        Route(path, answer)
        for path, answer in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", metrics))
    ]
    return Starlette(routes=routes)


class CannotListen(OSError):
    """An address or port that cannot be had; the text names the settings to change."""


class HealthServer(uvicorn.Server):
    """The server beside the service's own loop: signals are the service's."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        super().__init__(
            uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, lifespan="off")
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def run_until_cancelled(self) -> None:
        """CannotListen."""
        try:
            await self.serve()
        except SystemExit:
            raise CannotListen(
                f"port {self.config.port} of {self.config.host} cannot be bound: it is taken, or the address is none of this machine;"
                " set ROADSTEAD_HEALTH_HOST or ROADSTEAD_HEALTH_PORT"
            ) from None
        finally:
            await self._end()

    async def _end(self) -> None:
        if self.started:
            await self.shutdown()
