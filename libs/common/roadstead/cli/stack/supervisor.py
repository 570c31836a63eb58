"""Keeps the parts of a stack running: stage by stage up, again after a crash, stage by stage down.

One loop polls everything a few times a second, so there is one place that knows how each part stands, and it writes that down for
`roadstead status`.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roadstead.cli.failures import UserError
from roadstead.cli.stack.parts import Part, last_line, started_at
from roadstead.cli.stack.state import PartState, StackState, write_state
from roadstead.testing.server_process import ServerError

POLL = 0.2
BACK_OFF_FIRST, BACK_OFF_MAX = 1.0, 30.0
QUIET_FOR = 5.0  # seconds after which a start that goes on says what it waits for
CALM = 60.0  # seconds of running after which the back-off begins anew
READY_WITHIN = 120.0
END_WITHIN = 40.0  # a service drains its passes for 25 s


@dataclass
class Stage:
    """Parts that start together; `then` runs when all of them are ready."""

    parts: Sequence[Part]
    then: Callable[[], Awaitable[None]] | None = None
    label: str = ""


@dataclass
class _Watched:
    part: Part
    state: PartState
    began: float = 0.0
    again_at: float | None = None
    back_off: float = BACK_OFF_FIRST
    waiting: bool = False  # between start and ready


@dataclass
class Supervisor:
    """One stack.  say: a line for the person, with a word that tells its sort: ready, step, crash, end."""

    stages: Sequence[Stage]
    state: StackState
    state_file: Path
    say: Callable[[str, str], None]
    ready_within: float = READY_WITHIN
    end_within: float = END_WITHIN
    _watched: list[_Watched] = field(default_factory=list, init=False)
    _written: str = field(default="", init=False)

    async def up(self) -> None:
        """Start all stages; returns when every part is ready.  UserError names the part that is not, and why."""
        self._note()
        for stage in self.stages:
            fresh = [self._begin(part) for part in stage.parts]
            await self._until_ready(fresh)
            if stage.then is not None:
                before = self._now()
                await stage.then()
                if stage.label:
                    self.say("ready", f"{stage.label:<13} done   {self._now() - before:5.1f} s")
        self.state.ready = True
        self._note()

    async def watch(self) -> None:
        """Until cancelled: what ends is started again, later and later, and each time said."""
        while True:
            await self._look()
            await asyncio.sleep(POLL)

    async def down(self) -> None:
        """End the stages in turn, the last one first.  Never raises for a part that ends badly; it is killed and said."""
        self.state.ready = False
        self._note()
        for stage in reversed(self.stages):
            mine = [w for w in self._watched if w.part in stage.parts]
            await self._end(mine)
        self._note()

    def kill(self) -> None:
        """At once, without order."""
        for watched in self._watched:
            watched.part.kill()
            watched.state.state = "stopped"
        self._note()

    # ------------------------------------------------------------ inside

    def _begin(self, part: Part) -> _Watched:
        state = PartState(part.name, health=part.health, log=str(part.log))
        watched = _Watched(part, state)
        self.state.parts.append(state)
        self._watched.append(watched)
        try:
            self._start(watched)
        except (OSError, ServerError) as error:
            raise UserError(f"{part.name} cannot be started: {error}") from None
        return watched

    def _start(self, watched: _Watched) -> None:
        watched.began = self._now()
        watched.again_at = None
        watched.waiting = True
        watched.part.begin()
        state = watched.state
        state.state, state.pid = "starting", watched.part.pid
        state.started, state.address = started_at(state.pid), watched.part.address
        self._note()

    async def _until_ready(self, parts: Sequence[_Watched]) -> None:
        deadline = self._now() + self.ready_within
        told = self._now()
        while any(w.waiting for w in parts):
            await self._look()
            if self._now() - told >= QUIET_FOR:
                told = self._now()
                await self._tell_late([w.part for w in parts if w.waiting])
            if self._now() > deadline:
                late = next(w for w in parts if w.waiting)
                why = await late.part.fault() or last_line(late.part.log)
                raise UserError(
                    f"{late.part.name} is not ready after {self.ready_within:g} s: {why}; see {late.part.log}"
                )
            await asyncio.sleep(POLL / 2)

    async def _tell_late(self, parts: Sequence[Part]) -> None:
        if not parts:
            return
        why = await parts[0].fault()
        names = ", ".join(part.name for part in parts)
        self.say("step", f"still starting: {names}" + (f" ({parts[0].name}: {why})" if why else ""))

    async def _look(self) -> None:
        for watched in self._watched:
            if watched.again_at is not None:
                if self._now() >= watched.again_at:
                    self._again(watched)
            elif not watched.part.is_running():
                self._crashed(watched)
            elif watched.waiting and await watched.part.fault() is None:
                self._is_ready(watched)
        self._note()

    def _is_ready(self, watched: _Watched) -> None:
        watched.waiting = False
        state = watched.state
        state.state, state.note = "ready", ""
        # The lifeline that a program starts behind hands over its process id, so both are known only now for certain.
        state.pid = watched.part.pid
        state.started, state.address = started_at(state.pid), watched.part.address
        state.seconds = self._now() - watched.began
        self.say("ready", f"{watched.part.name:<13} ready  {state.seconds:5.1f} s   {state.address}")

    def _crashed(self, watched: _Watched) -> None:
        if self._now() - watched.began > CALM:
            watched.back_off = BACK_OFF_FIRST
        status = watched.part.exit_status()
        # Whoever was killed had no time to say why; the last line of its log is about something else.
        killed = status is not None and status < 0
        said = "" if killed else last_line(watched.part.log)
        how = _how_it_ended(status)
        state = watched.state
        state.state, state.pid, state.started, state.restarts = "restarting", 0, None, state.restarts + 1
        state.note = f"{how}; last line of its log: {said}" if said else how
        watched.again_at = self._now() + watched.back_off
        watched.waiting = True
        self.say(
            "crash",
            f"{watched.part.name:<13} {how}; again in {watched.back_off:g} s"
            + (f"; last line of {watched.part.log}: {said}" if said else f" ({watched.part.log})"),
        )
        watched.back_off = min(watched.back_off * 2, BACK_OFF_MAX)

    def _again(self, watched: _Watched) -> None:
        try:
            self._start(watched)
        except (OSError, ServerError) as error:
            watched.again_at = self._now() + watched.back_off
            watched.back_off = min(watched.back_off * 2, BACK_OFF_MAX)
            self.say("crash", f"{watched.part.name:<13} cannot be started: {error}")

    async def _end(self, parts: Sequence[_Watched]) -> None:
        for watched in parts:
            watched.part.ask_to_end()
        deadline = self._now() + self.end_within
        while any(w.part.is_running() for w in parts) and self._now() < deadline:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(POLL / 4)
        for watched in parts:
            if watched.part.is_running():
                self.say(
                    "crash", f"{watched.part.name:<13} did not end in {self.end_within:g} s and is killed"
                )
                watched.part.kill()
            elif watched.state.state != "stopped":
                self.say("end", f"{watched.part.name:<13} stopped")
            watched.state.state = "stopped"
        self._note()

    def _note(self) -> None:
        shown: Any = repr(self.state)
        if shown != self._written:
            write_state(self.state_file, self.state)
            self._written = shown

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _how_it_ended(status: int | None) -> str:
    """ended with status 3, was killed by SIGKILL."""
    if status is None:
        return "ended"
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
