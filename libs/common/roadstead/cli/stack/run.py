"""`roadstead up`: one stack in this process until a signal ends it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from roadstead.cli.context import Context, write_context
from roadstead.cli.failures import UserError
from roadstead.cli.stack.build import Blueprint, simulator_region
from roadstead.cli.stack.home import SIMULATOR, Home
from roadstead.cli.stack.parts import started_at
from roadstead.cli.stack.state import StackState, end_processes, read_state, running
from roadstead.cli.stack.supervisor import Supervisor
from roadstead.clock import iso
from roadstead.testing.servers import end_leftover

LEFTOVERS_END_WITHIN = 20.0

Say = Callable[[str, str], None]
After = Callable[[Context, Blueprint], Awaitable[None]]


def refuse_second(home: Home) -> None:
    """UserError when a stack of this folder runs already."""
    state = running(home.state)
    if state is not None:
        raise UserError(
            f"it is running already (process {state.pid}, cloud {state.cloud}): `roadstead status` shows it, "
            "`roadstead down` ends it"
        )


def prepare(home: Home, cloud: str, say: Say) -> Blueprint:
    """Folders, keys and ports; what an earlier, killed run left behind is ended."""
    refuse_second(home)
    home.make()
    left = read_state(home.state)
    ended = end_processes(left.parts, LEFTOVERS_END_WITHIN) if left is not None else []
    for folder in (home.nats, home.postgres):
        if end_leftover(folder):
            ended.append(folder.name)
    if cloud == SIMULATOR:
        from roadstead.cli.stack.simulator import load  # the simulator is slow to import

        try:
            load(home.saved_cloud)
        except ValueError as error:
            raise UserError(str(error)) from None
    if ended:
        say("step", f"ended what a killed run had left: {', '.join(dict.fromkeys(ended))}")
    return Blueprint(home, cloud)


async def serve(home: Home, cloud: str, say: Say, after: After | None = None, *, bare: bool = False) -> None:
    """Start everything, keep it running until SIGINT or SIGTERM, end it in order.

    bare: broker and database alone.  after: runs once all is ready; its UserError is said and leaves the stack running.  UserError when a part cannot start.
    """
    stop = asyncio.Event()
    plan = prepare(home, cloud, say)
    pid = os.getpid()
    state = StackState(pid, started_at(pid), iso(datetime.now(UTC)), cloud)

    async def migrate() -> None:
        # Imported here because Alembic is slow to import and only `up` and `migrate` need it.
        from roadstead.store.migrate import migrate as migrate_schemas

        context = plan.context(known_region(home, cloud))
        write_context(home.context, context)
        await migrate_schemas(plan.postgres.url, plan.schemas)

    supervisor = Supervisor(plan.stages(migrate, bare=bare), state, home.state, say)
    listen(stop, supervisor)
    try:
        await first_of(stop, run(supervisor, plan, say, after))
    finally:
        say("step", "stopping; Ctrl-C again ends everything at once")
        await supervisor.down()
        home.state.unlink(missing_ok=True)


async def run(supervisor: Supervisor, plan: Blueprint, say: Say, after: After | None) -> None:
    await supervisor.up()
    watching = asyncio.create_task(supervisor.watch())
    try:
        if after is not None:
            work = asyncio.ensure_future(after(plan.context(known_region(plan.home, plan.cloud)), plan))
            await asyncio.wait({work, watching}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                work.cancel()
                watching.result()
            try:
                work.result()
            except UserError as error:
                say("crash", str(error))
        await watching
    finally:
        watching.cancel()


def known_region(home: Home, cloud: str) -> str | None:
    """The region that the stack's commands use unless told otherwise: the simulated one, or what was registered last."""
    if cloud == SIMULATOR:
        return simulator_region()
    note = home.region(cloud).with_suffix(".id")
    return note.read_text().strip() if note.exists() else None


def listen(stop: asyncio.Event, supervisor: Supervisor) -> None:
    """The first signal ends in order, the second at once."""

    def on_signal() -> None:
        if stop.is_set():
            supervisor.kill()
            os._exit(130)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)


async def first_of(stop: asyncio.Event, work: Awaitable[None]) -> None:
    """Until the work fails or `stop` is set; raises what the work raises."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for each in (task, waiting):
        each.cancel()
    await asyncio.gather(task, waiting, return_exceptions=True)
    if not stop.is_set():
        task.result()
