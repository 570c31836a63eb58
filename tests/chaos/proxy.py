"""A bad line between a service and its broker or database: late, cut, silent.

One thread with a loop of its own serves any number of lines; a `Line` listens on a port and forwards to another.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

CHUNK = 64 * 1024


class Line:
    """latency: seconds each way.  stalled: bytes are taken and not passed on.  refusing: new connections are dropped."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.latency = 0.0
        self.refusing = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await self.cut()

    async def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._ends):
            writer.transport.abort()

    async def stall(self, on: bool) -> None:
        self._flowing.clear() if on else self._flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._ends |= {writer, there}
        for source, sink in ((reader, there), (there_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                if self.latency:
                    await asyncio.sleep(self.latency)
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        with suppress(OSError, RuntimeError):
            sink.close()
        self._ends.discard(sink)


class Exchange:
    """The thread that serves lines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="lines")
        self._thread.start()
        self.lines: list[Line] = []

    def line(self, target: int) -> Line:
        async def made() -> Line:
            line = Line(target)
            await line.open()
            return line

        line: Line = self.do(made())
        self.lines.append(line)
        return line

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the thread's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        for line in self.lines:
            self.do(line.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
