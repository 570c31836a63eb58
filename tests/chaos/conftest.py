"""One stack for the whole level; a test that leaves it damaged is followed by a new one."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.stack import People, Stack

KEEP = os.environ.get(
    "ROADSTEAD_KEEP_CHAOS"
)  # a folder that is left behind, for a person who looks into a failure


class Holder:
    """The stack in use."""

    def __init__(self) -> None:
        self.stack: Stack | None = None
        self.folder: Path | None = None

    def take(self) -> Stack:
        if self.stack is not None and not self.stack.is_well():
            self.end()
        if self.stack is None:
            self.folder = Path(tempfile.mkdtemp(prefix="roadstead-chaos-", dir=KEEP))
            self.folder.chmod(0o711)
            self.stack = Stack(self.folder).start()
        return self.stack

    def end(self) -> None:
        stack, self.stack = self.stack, None
        if stack is not None:
            stack.stop()
        if self.folder is not None and not KEEP:
            shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def holder() -> Iterator[Holder]:
    held = Holder()
    yield held
    held.end()


@pytest.fixture
def stack(holder: Holder) -> Iterator[Stack]:
    taken = holder.take()
    yield taken
    taken.calm()


@pytest_asyncio.fixture
async def people(stack: Stack) -> AsyncIterator[People]:
    async with People(stack) as somebody:
        yield somebody
