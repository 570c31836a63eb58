"""up, down, status, logs: the local stack."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import typer

from roadstead.cli.failures import BUSY, UserError
from roadstead.cli.output import Form, FormOption, emit, say, show_table
from roadstead.cli.stack.claim import Busy, Claim, claimed, holder, take
from roadstead.cli.stack.home import SIMULATOR, Home, find_home
from roadstead.cli.stack.octavia import Octavia
from roadstead.cli.stack.parts import last_line, readiness
from roadstead.cli.stack.state import (
    PartState,
    StackState,
    end_processes,
    is_process,
    read_state,
    running,
    wait_for_end,
)

DOWN_WITHIN = 60.0
DETACHED_READY_WITHIN = 180.0
STYLES = {"ready": "green", "crash": "bold red", "end": "dim", "step": ""}

CloudOption = Annotated[
    str,
    typer.Option(
        help="simulator, or a cloud of clouds.yaml whose administrator is in it.", show_default=True
    ),
]


def up(
    cloud: CloudOption = SIMULATOR,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.")
    ] = False,
    bare: Annotated[
        bool,
        typer.Option("--bare", help="Only broker and database with its schemas: for `roadstead rebuild`."),
    ] = False,
    quickstart: Annotated[
        bool,
        typer.Option(
            "--quickstart", help="Register the cloud as a region and apply examples/quickstart.yaml."
        ),
    ] = False,
    octavia: Annotated[
        bool,
        typer.Option(
            "--octavia",
            help="With the Octavia API and its noop provider, which the simulated cloud's catalog then names.",
        ),
    ] = False,
    ovn: Annotated[
        bool,
        typer.Option("--ovn", help="The same with OVN and its worker as the provider; implies --octavia."),
    ] = False,
) -> None:
    """Start the local stack: broker, database, every service, and a simulated cloud.

    Example: roadstead up --quickstart
    """
    if bare and quickstart:
        raise UserError("--bare starts no service that could make the quickstart; leave one of both out", 2)
    provider = Octavia.OVN if ovn else Octavia.NOOP if octavia else None
    if bare and provider:
        raise UserError("--bare starts no service, so no Octavia API either; leave one of both out", 2)
    if provider and cloud != SIMULATOR:
        raise UserError(
            f"--octavia goes with the simulated cloud; for {cloud} see deploy/octavia/README.md", 2
        )
    home = find_home()
    home.make()
    with claimed(home, "up") as claim:
        if (state := running(home.state)) is not None:
            # It holds no claim: its folder's lock file was taken away under it.
            raise UserError(f"process {state.pid} runs a stack here: `roadstead down` ends it", BUSY)
        if not detach:
            _attached(home, cloud, bare, quickstart, provider)
            return
        _detached(home, cloud, bare, provider, claim)
    if quickstart:
        from roadstead.cli.stack.quickstart import run_quickstart

        asyncio.run(run_quickstart(home, cloud))


def _attached(home: Home, cloud: str, bare: bool, quickstart: bool, octavia: Octavia | None) -> None:
    from roadstead.cli.stack.run import serve

    after = None
    if quickstart:
        from roadstead.cli.stack.quickstart import after_start

        after = after_start(home, cloud)
    asyncio.run(serve(home, cloud, said, after, bare=bare, octavia=octavia))


def said(sort: str, text: str) -> None:
    """A line of the supervisor."""
    say(text, STYLES.get(sort, ""))
    sys.stdout.flush()


def _detached(home: Home, cloud: str, bare: bool, octavia: Octavia | None, claim: Claim) -> None:
    """Start it as a process of its own that takes the claim over; returns when it is ready."""
    log = home.log("stack")
    command = [sys.executable, "-m", "roadstead.cli", "up", "--cloud", cloud]
    words = {"--bare": bare, "--octavia": octavia is Octavia.NOOP, "--ovn": octavia is Octavia.OVN}
    command += [word for word, given in words.items() if given]
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "ROADSTEAD_HOME": str(home.path), **claim.environment},
            pass_fds=(claim.number,),
            start_new_session=True,
        )
    claim.leave()
    deadline = time.monotonic() + DETACHED_READY_WITHIN
    shown = 0
    while True:
        lines = log.read_text(errors="replace").splitlines()
        for line in lines[shown:]:
            say(line)
        shown = len(lines)
        state = running(home.state)
        if state is not None and state.pid == child.pid and state.ready:
            say("running in the background; `roadstead status` shows it, `roadstead down` ends it")
            return
        if child.poll() is not None:
            raise UserError(f"the stack did not start: {last_line(log).removeprefix('roadstead: ')}")
        if time.monotonic() > deadline:
            raise UserError(f"the stack is not ready after {DETACHED_READY_WITHIN:g} s; see {log}")
        time.sleep(0.1)


def down(
    wipe: Annotated[
        bool,
        typer.Option("--wipe", help="Also remove its data: messages, rows, the simulated cloud, keys."),
    ] = False,
) -> None:
    """End the local stack that runs in this folder, and nothing else.

    Example: roadstead down
    """
    home = find_home()
    if not home.path.is_dir():
        say("nothing is running here")
        return
    claim, stopped = _end_holder(home)
    try:
        ended = _end_rest(home)
        if stopped or ended:
            say("stopped" if stopped else f"its supervisor was gone; ended {', '.join(ended)}")
        else:
            say("nothing is running here")
        if wipe:
            _wipe(home)
            claim.remove()
    finally:
        claim.end()


def _end_holder(home: Home) -> tuple[Claim, bool]:
    """The folder's claim, from whoever has it: a stack that runs or starts is told once to end.  Also whether there was one."""
    told: set[int] = set()
    deadline = time.monotonic() + DOWN_WITHIN
    while True:
        try:
            return take(home, "down"), bool(told)
        except Busy as busy:
            who = busy.holder
            if who is not None and who.doing != "up":
                raise
            if who is not None and who.pid not in told:
                told.add(who.pid)
                with suppress(ProcessLookupError):
                    os.kill(who.pid, signal.SIGTERM)
            if time.monotonic() > deadline:
                process = f"process {who.pid}" if who is not None else "the process that holds the folder"
                raise UserError(f"{process} does not end; see {home.log('stack')}") from None
        time.sleep(0.05)


def _end_rest(home: Home) -> list[str]:
    """End what a killed supervisor left, or one that lost its lock file; their names."""
    state = read_state(home.state)
    if state is None:
        return []
    ended = []
    if state.is_alive:
        with suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        if not wait_for_end(state.pid, state.started, DOWN_WITHIN):
            raise UserError(f"process {state.pid} does not end; see {home.log('stack')}")
        ended.append("the stack")
    ended += end_processes(state.parts, 20.0)
    if home.ovn.is_dir():
        from roadstead.cli.stack.ovn import OvnPart

        OvnPart(home.ovn).ask_to_end()  # its daemons are nobody's children
    home.state.unlink(missing_ok=True)
    return ended


def _wipe(home: Home) -> None:
    for path in (home.nats, home.postgres, home.simulator, home.ovn, home.logs):
        shutil.rmtree(path, ignore_errors=True)
    for file in (home.context, home.ports, home.seal_keys, home.region(SIMULATOR)):
        file.unlink(missing_ok=True)
    # A real cloud goes on knowing the user that these variables hold the password of.
    kept = sorted(home.region("x").parent.glob("*.env"))
    say(f"data in {home.path} removed" + (f"; kept: {', '.join(map(str, kept))}" if kept else ""))


def status(form: FormOption = Form.TABLE) -> None:
    """Show the processes, streams and regions of the local stack; exit status 1 unless all is well.

    Example: roadstead status
    """
    home = find_home()
    state = running(home.state)
    if state is None:
        if (who := holder(home)) is not None and who.doing == "up":
            raise UserError(f"it is only starting (process {who.pid}): ask again in a moment", BUSY)
        raise UserError("nothing is running here: start it with `roadstead up`")
    rows = [(part, _health(part)) for part in state.parts]
    well = all(health == "ok" for _, health in rows)
    streams, regions = asyncio.run(_through_the_bus())
    value = {
        "pid": state.pid,
        "since": state.since,
        "cloud": state.cloud,
        "ready": state.ready,
        "processes": [{**asdict(part), "health": health} for part, health in rows],
        "streams": streams,
        "regions": regions,
    }
    if not emit(form, value):
        _show(home, state, rows, streams, regions)
    if not well:
        raise typer.Exit(1)


def _health(part: PartState) -> str:
    if not is_process(part.pid, part.started):
        return part.note or "it does not run"
    return (readiness(part.health) or "ok") if part.health else "ok"


async def _through_the_bus() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Streams and regions, as far as the broker answers; what keeps it from answering stands in the process table."""
    from roadstead.cli.client import connected
    from roadstead.cli.reading import region_rows
    from roadstead.cli.streams import stream_rows

    try:
        async with connected() as client:
            streams = await stream_rows(client)
            try:
                regions = await region_rows(client)
            except UserError as error:
                regions = [{"name": str(error)}]
            return streams, regions
    except UserError as error:
        return [{"name": str(error)}], []


def _show(
    home: Home,
    state: StackState,
    rows: list[tuple[PartState, str]],
    streams: list[dict[str, object]],
    regions: list[dict[str, object]],
) -> None:
    say(f"stack in {home.path}, process {state.pid}, since {state.since}, cloud {state.cloud}")
    table = [(p.name, p.state, p.pid or "-", p.restarts, health, p.address) for p, health in rows]
    show_table(("PROCESS", "STATE", "PID", "RESTARTS", "HEALTH", "ADDRESS"), table)
    say("")
    show_table(
        ("STREAM", "MESSAGES", "BYTES", "FULL"),
        [(s["name"], s.get("messages"), s.get("bytes"), s.get("full")) for s in streams],
    )
    say("")
    show_table(
        ("REGION", "ID", "STATUS", "MESSAGE"),
        [(r["name"], r.get("id"), r.get("status"), r.get("message")) for r in regions],
        none="no region is registered",
    )


def logs(
    service: Annotated[str, typer.Argument(help="A process of `roadstead status`; all when left out.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is written.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Lines of the past, of each.", min=0)] = 50,
) -> None:
    """Show what the processes of the local stack wrote.

    Example: roadstead logs compute -f
    """
    home = find_home()
    known = {path.stem: path for path in sorted(home.logs.glob("*.log"))}
    known |= {name: home.path / name / "server.log" for name in ("nats", "postgres")}
    known = {name: path for name, path in known.items() if path.exists()}
    if service and service not in known:
        raise UserError(f"there is no log of {service}; there are: {', '.join(known) or 'none'}", 2)
    chosen = {service: known[service]} if service else known
    places: dict[str, int] = {}
    for name, path in chosen.items():
        data = path.read_bytes()
        places[name] = len(data)
        for line in data.decode(errors="replace").splitlines()[-lines:] if lines else []:
            _print_line(name, line, len(chosen) > 1)
    while follow:
        time.sleep(0.2)
        for name, path in chosen.items():
            places[name] = _more(name, path, places[name], len(chosen) > 1)


def _more(name: str, path: os.PathLike[str], place: int, several: bool) -> int:
    """Print the complete lines behind `place`; the place after them."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(place if place <= size else 0)
        data = file.read()
        end = file.tell()
    whole, _, rest = data.rpartition(b"\n")
    for line in whole.decode(errors="replace").splitlines():
        _print_line(name, line, several)
    sys.stdout.flush()
    return end - len(rest)


def _print_line(name: str, line: str, several: bool) -> None:
    print(f"{name}: {line}" if several else line)
