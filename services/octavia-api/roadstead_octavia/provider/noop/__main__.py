"""`python -m roadstead_octavia.provider.noop`: the noop provider as a process.

The broker is found as by every service (`ROADSTEAD_NATS_...`).  For tests: `ROADSTEAD_NOOP_NAME`, `..._DELAY` (seconds), `..._FAIL` and
`..._SILENT` (methods, or `*`, separated by commas), `..._REFUSE` (METHOD:CLASS, likewise).
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping

import structlog
import uvloop

from roadstead.bus.connection import Bus, BusOptions
from roadstead.bus.failures import BusRefused
from roadstead.bus.rights import inbox_of, provider_user
from roadstead.bus.tasks import end_all
from roadstead.logs import start_logging
from roadstead.settings import BadSettings, Settings, load_settings
from roadstead_octavia.provider.noop.driver import REFUSALS, Manner
from roadstead_octavia.provider.noop.process import NoopProvider
from roadstead_octavia.provider.rpc import NAME

PREFIX = "ROADSTEAD_NOOP_"
log = structlog.get_logger("roadstead.octavia.noop")


def manner_of(environment: Mapping[str, str]) -> Manner:
    """BadSettings, one line, for what cannot be."""

    def listed(name: str) -> list[str]:
        return [part.strip() for part in environment.get(PREFIX + name, "").split(",") if part.strip()]

    try:
        delay = float(environment.get(f"{PREFIX}DELAY") or 0)
    except ValueError:
        raise BadSettings(f"{PREFIX}DELAY: give a number of seconds") from None
    refuses = {}
    for part in listed("REFUSE"):
        method, _, kind = part.partition(":")
        if kind not in REFUSALS:
            raise BadSettings(f"{PREFIX}REFUSE: give METHOD:CLASS with a class of {', '.join(REFUSALS)}")
        refuses[method] = kind
    return Manner(delay, frozenset(listed("FAIL")), frozenset(listed("SILENT")), refuses)


async def serve(
    settings: Settings, name: str, manner: Manner, provider: type[NoopProvider] = NoopProvider
) -> None:
    """Until SIGTERM or SIGINT."""
    user = provider_user(name)
    bus = Bus(
        BusOptions(
            tuple(settings.nats_url),
            f"roadstead-{user}-{settings.replica}",
            inbox_prefix=settings.nats_inbox_prefix or inbox_of(user),
            nkey_seed=settings.nkey_seed(),
            ca_file=settings.nats_ca_file,
        )
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def work() -> None:
        await bus.connect()
        await provider(bus, name, manner).run()

    tasks = [asyncio.create_task(work()), asyncio.create_task(stop.wait())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_all(tasks)
        await bus.close()


def main(provider: type[NoopProvider] = NoopProvider) -> int:
    try:
        settings = load_settings()
        name = os.environ.get(f"{PREFIX}NAME") or "noop"
        if not NAME.match(name):
            raise BadSettings(f"{PREFIX}NAME: letters, digits, _ and - only")
        manner = manner_of(os.environ)
    except BadSettings as error:
        sys.stderr.write(f"noop: {error}\n")
        return 2
    start_logging("noop", settings.replica, level=settings.log_level, form=settings.log_format)
    try:
        uvloop.run(serve(settings, name, manner, provider))
    except BusRefused as error:
        log.critical("the broker refused us", reason=str(error))
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
