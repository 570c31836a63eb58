"""How every process of ours lives: until a signal, with a known exit status, and with an ending whose steps are bounded.

A database that is not there yet is waited for.  SIGTERM or SIGINT sets `stopping`; a second one ends the process at once.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from enum import IntEnum
from typing import Any

import structlog

from roadstead.bus.connection import BusOptions
from roadstead.bus.failures import BusRefused
from roadstead.bus.streams import release
from roadstead.bus.tasks import end_all
from roadstead.service_health import CannotListen
from roadstead.settings import BadSettings, Settings
from roadstead.store.api import SchemaBehind, StoreUnavailable
from roadstead.telemetry.traces import Tracing, start_tracing

OPEN_AGAIN = 2.0

Step = tuple[str, Callable[[], Awaitable[Any]], float]


class Exit(IntEnum):
    """Exit statuses; 1 is a fault of the program."""

    DONE = 0
    FAULT = 1
    SETTINGS = 2
    SCHEMA = 3
    BUS = 4


class Life:
    """One process's.  name: of the logger that its lines are told to."""

    def __init__(self, name: str) -> None:
        self.stopping = asyncio.Event()
        self._log = structlog.get_logger(name)

    def listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self.stopping.is_set():
            os._exit(Exit.FAULT)  # asked twice: at once, leases run out by themselves
        self._log.info("stopping; a second signal ends it at once")
        self.stopping.set()

    async def lived(self, work: Callable[[], Awaitable[Exit]], end: Callable[[], Awaitable[None]]) -> Exit:
        """The exit status of the work, after its end; what it raises is told, and becomes one."""
        log = self._log
        try:
            status = await work()
        except SchemaBehind as error:
            log.critical("the database schema is behind", reason=str(error))
            status = Exit.SCHEMA
        except BusRefused as error:
            log.critical("the broker refused us", reason=str(error))
            status = Exit.BUS
        except (BadSettings, CannotListen) as error:
            log.critical("the settings cannot be", reason=str(error))
            status = Exit.SETTINGS
        except Exception:
            log.exception("the service failed")
            status = Exit.FAULT
        finally:
            await end()
        self._log.info("stopped", status=int(status))
        return status

    async def or_stop(self, work: Awaitable[None]) -> bool:
        """Whether the work was done before the process was told to stop.  Raises what the work raises."""
        task = asyncio.ensure_future(work)
        stop = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            task.result()
            return True
        await end_all((task,))
        return False

    async def opened(self, open_database: Callable[[], Awaitable[None]]) -> None:
        """Waits for a database that is not there; SchemaBehind at once."""
        while True:
            try:
                await open_database()
            except (StoreUnavailable, OSError) as error:
                self._log.warning("no database yet", error=str(error) or type(error).__name__)
                await asyncio.sleep(OPEN_AGAIN)
            else:
                return

    async def end_in_steps(self, steps: Iterable[Step]) -> None:
        """Each step within its seconds; one that fails does not keep the next ones from being taken."""
        log = self._log
        for name, step, seconds in steps:
            try:
                async with asyncio.timeout(seconds):
                    await step()
            except TimeoutError:
                log.warning("ending took too long", step=name, seconds=seconds)
            except Exception:
                log.exception("ending failed", step=name)


def tracing_of(name: str, settings: Settings) -> Tracing:
    """BadSettings when the file that traces go to cannot be written."""
    try:
        return start_tracing(
            name, settings.replica, release(), endpoint=settings.otlp_endpoint, file=settings.trace_file
        )
    except OSError as error:
        raise BadSettings(
            f"ROADSTEAD_TRACE_FILE: {settings.trace_file} cannot be written: {error.strerror}"
        ) from None


def bus_options(user: str, settings: Settings) -> BusOptions:
    """user: as which the broker knows the process.  BadSettings when the nkey's file cannot be read."""
    return BusOptions(
        servers=tuple(settings.nats_url),
        name=f"roadstead-{user}-{settings.replica}",
        inbox_prefix=settings.nats_inbox_prefix or f"_INBOX_{user}",
        nkey_seed=settings.nkey_seed(),
        ca_file=settings.nats_ca_file,
        replicas=settings.nats_replicas,
        publish_patience=settings.publish_patience,
        request_timeout=settings.request_timeout,
    )
