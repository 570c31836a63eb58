"""`roadstead up`: one stack in this process until a signal ends it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from roadstead.cli.context import Context, write_context
from roadstead.cli.failures import UserError, words_of
from roadstead.cli.stack.build import Blueprint, simulator_region
from roadstead.cli.stack.home import SIMULATOR, Home
from roadstead.cli.stack.octavia import Octavia
from roadstead.cli.stack.ovn import OvnPart
from roadstead.cli.stack.parts import started_at
from roadstead.cli.stack.state import StackState, end_processes, read_state
from roadstead.cli.stack.supervisor import Supervisor
from roadstead.clock import iso
from roadstead.testing.server_process import ServerError
from roadstead.testing.servers import end_leftover

LEFTOVERS_END_WITHIN = 20.0

Say = Callable[[str, str], None]
After = Callable[[Context, Blueprint], Awaitable[None]]


def prepare(home: Home, cloud: str, say: Say, *, octavia: Octavia | None = None) -> Blueprint:
    """Keys and ports; what an earlier, killed run left behind is ended.  The caller holds the folder's claim."""
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
    if home.ovn.is_dir():
        OvnPart(home.ovn).ask_to_end()
    if ended:
        say("step", f"ended what a killed run had left: {', '.join(dict.fromkeys(ended))}")
    plan = Blueprint(home, cloud, octavia=octavia)
    for note in plan.notes:
        say("step", f"note: {note}")
    return plan


async def serve(
    home: Home,
    cloud: str,
    say: Say,
    after: After | None = None,
    *,
    bare: bool = False,
    octavia: Octavia | None = None,
) -> None:
    """Start everything, keep it running until SIGINT or SIGTERM, end it in order.

    bare: broker and database alone.  octavia: with the Octavia API and this provider.  after: runs once all is ready; its UserError is said and leaves the stack running.  UserError
    when a part cannot start.  The caller holds the folder's claim.
    """
    stop = asyncio.Event()
    try:
        plan = prepare(home, cloud, say, octavia=octavia)
    except (ServerError, OSError) as error:
        raise UserError(f"the stack cannot be prepared: {error}") from None
    pid = os.getpid()
    state = StackState(pid, started_at(pid), iso(datetime.now(UTC)), cloud)

    async def migrate() -> None:
        # Imported here because Alembic is slow to import and only `up` and `migrate` need it.
        from sqlalchemy.exc import SQLAlchemyError

        from roadstead.store.migrate import migrate as migrate_schemas
        from roadstead.store.postgres.revisions import MigrationRefused

        context = plan.context(known_region(home, cloud))
        write_context(home.context, context)
        try:
            await migrate_schemas(plan.postgres.url, plan.schemas)
        except (MigrationRefused, SQLAlchemyError) as error:
            raise UserError(
                f"the schemas cannot be made: {words_of(error)}; see {plan.postgres.log}"
            ) from None

    supervisor = Supervisor(plan.stages(migrate, bare=bare), state, home.state, say)
    listen(stop, supervisor)
    try:
        await first_of(stop, run(supervisor, plan, say, after))
    except (ServerError, OSError) as error:
        raise UserError(f"the stack cannot start: {words_of(error)}; its logs are in {home.logs}") from None
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
    """The first signal ends in order, a second Ctrl-C at once.  SIGTERM never: two `roadstead down` are no hurry."""

    def on_interrupt() -> None:
        if stop.is_set():
            supervisor.kill()
            os._exit(130)
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    loop.add_signal_handler(signal.SIGTERM, stop.set)


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
