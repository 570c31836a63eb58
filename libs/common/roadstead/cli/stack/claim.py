"""Who works on the folder of a local stack: one file that the kernel keeps locked for as long as that process lives.

The lock is held from before anything is looked at until the stack has ended, so what is found in the folder meanwhile is nobody
else's.  A killed process loses it by itself.  The note in the file says who holds it; it serves messages, the lock alone decides.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from roadstead.cli.failures import BUSY, UserError
from roadstead.cli.stack.home import Home
from roadstead.cli.stack.state import is_process, running
from roadstead.testing.server_process import start_time

HANDED_OVER = "ROADSTEAD_STACK_CLAIM"


@dataclass(frozen=True)
class Holder:
    """A process that holds a folder; doing: the command, `up` or `down`."""

    pid: int
    started: int | None
    doing: str


class Busy(UserError):
    """Somebody else is at work in the folder; holder None: it has not said yet who it is."""

    def __init__(self, message: str, holder: Holder | None) -> None:
        super().__init__(message, BUSY)
        self.holder = holder


class Claim:
    """The lock, held.  Child processes do not inherit it but by `handing_over`."""

    def __init__(self, home: Home, number: int, doing: str) -> None:
        self._home = home
        self._number = number
        self._open = True
        pid = os.getpid()
        self._write(json.dumps(asdict(Holder(pid, start_time(pid), doing))))

    @property
    def number(self) -> int:
        """The file descriptor, for a child that takes the claim over (`pass_fds`)."""
        return self._number

    @property
    def environment(self) -> dict[str, str]:
        """What tells such a child of it."""
        return {HANDED_OVER: str(self._number)}

    def leave(self) -> None:
        """Close our side; a child that was given the claim keeps it."""
        if self._open:
            self._open = False
            os.close(self._number)

    def end(self) -> None:
        """Let go of the folder."""
        if self._open:
            self._write("")
            self.leave()

    def remove(self) -> None:
        """Let go, and take the file away; whoever opened it meanwhile sees that it is not the one of the folder any more."""
        if self._open:
            self._home.claim.unlink(missing_ok=True)
            self.leave()

    def _write(self, text: str) -> None:
        os.ftruncate(self._number, 0)
        os.pwrite(self._number, text.encode(), 0)


def take(home: Home, doing: str) -> Claim:
    """The folder for ourselves.  Busy when another process has it; UserError when it cannot be locked at all."""
    if (number := _handed_over(home)) is not None:
        return Claim(home, number, doing)
    while True:
        try:
            number = os.open(home.claim, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UserError(f"{home.claim} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            raise Busy(_who(home), holder(home)) from None
        except OSError as error:
            os.close(number)
            raise UserError(
                f"{home.claim} cannot be locked: {error.strerror}; set ROADSTEAD_HOME to a folder of a local disk"
            ) from None
        if _is_of(home, number):
            return Claim(home, number, doing)
        os.close(number)  # it was removed between the two steps


@contextmanager
def claimed(home: Home, doing: str) -> Iterator[Claim]:
    """The same while inside."""
    held = take(home, doing)
    try:
        yield held
    finally:
        held.end()


def holder(home: Home) -> Holder | None:
    """Who says to hold the folder, and still runs."""
    try:
        found = Holder(**json.loads(home.claim.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if is_process(found.pid, found.started) else None


def refuse_unsettled(home: Home) -> None:
    """Busy while the stack of the folder is on its way up or down: what is asked of it then meets half of it."""
    who, state = holder(home), running(home.state)
    if who is not None and (state is None or not state.ready):
        raise Busy(
            f"the stack in {home.path} is starting or ending (process {who.pid}): wait until `roadstead status` shows "
            "it ready, or gone",
            who,
        )


def refuse_supervised(home: Home, services: Sequence[str]) -> None:
    """UserError when the folder's stack keeps one of these services running, even where it is being started again just now."""
    state = running(home.state)
    kept = [part.name for part in state.parts if part.name in services] if state is not None else []
    if kept:
        raise UserError(
            f"the stack in {home.path} runs {', '.join(kept)}: `roadstead down`, then `roadstead up --bare`, and again",
            BUSY,
        )


def _handed_over(home: Home) -> int | None:
    """The descriptor that our parent left us, when it is the folder's own."""
    text = os.environ.pop(HANDED_OVER, "")
    if not text.isdigit() or not _is_of(home, int(text)):
        return None
    os.set_inheritable(int(text), False)
    return int(text)


def _is_of(home: Home, number: int) -> bool:
    with suppress(OSError):
        ours, there = os.fstat(number), os.stat(home.claim)
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)
    return False


def _who(home: Home) -> str:
    who, state = holder(home), running(home.state)
    if state is not None and state.ready:
        return (
            f"it is running already (process {state.pid}, cloud {state.cloud}): `roadstead status` shows it, "
            "`roadstead down` ends it"
        )
    process = f" (process {who.pid})" if who is not None else ""
    if who is not None and who.doing == "down":
        return f"`roadstead down`{process} is ending the stack in {home.path}: try again when it is done"
    return (
        f"another `roadstead up`{process} is at work in {home.path}, starting or ending: `roadstead status` shows it, "
        "`roadstead down` ends it"
    )
