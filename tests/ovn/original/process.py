"""Installs the original once, and talks to it as a process; see program.py for what it understands."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

VERSION = "11.0.0"
PACKAGE = f"ovn-octavia-provider=={VERSION}"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ENVIRONMENT = ROOT / ".run" / "original-ovn"
ANSWER_LIMIT = 120.0
INSTALL_LIMIT = 600.0
CATCHING_UP = 1.0  # seconds for its copies of the database
Json = dict[str, Any]


class NotHere(Exception):
    """The original cannot be installed; the text says why in one line."""


@dataclass(frozen=True)
class Answer:
    """seconds: from the request until its queue was empty.  statuses: messages for the API, in order.  error: of the call itself."""

    seconds: float
    statuses: list[Json]
    error: str | None


def install() -> Path:
    """Its interpreter; installed once.  NotHere."""
    python, stamp = ENVIRONMENT / "bin/python", ENVIRONMENT / "installed"
    if stamp.exists() and stamp.read_text() == VERSION:
        return python
    uv = ROOT / ".tools/bin/uv"
    try:
        if uv.exists():
            _run(str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(ENVIRONMENT))
            _run(str(uv), "pip", "install", "--quiet", "--python", str(python), PACKAGE)
        else:
            _run(sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT))
            _run(str(python), "-m", "pip", "install", "--quiet", PACKAGE)
    except (subprocess.SubprocessError, OSError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise NotHere(f"{PACKAGE} cannot be installed here: {said[-1] if said else 'no word'}") from None
    stamp.write_text(VERSION)
    return python


class Original:
    """Running from `start` to `stop`; `folder` gets its configuration and its log."""

    def __init__(self, folder: Path, northbound: str, southbound: str, **settings: Any) -> None:
        self.folder = folder
        self.settings = {
            "folder": str(folder),
            "nb": northbound.split(","),
            "sb": southbound.split(","),
            **settings,
        }
        self._process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "original.log"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> "Original":
        """NotHere."""
        python = install()
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "settings.json"
        settings.write_text(json.dumps(self.settings))
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [str(python), str(HERE / "program.py"), str(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={k: v for k, v in os.environ.items() if not k.startswith(("OS_", "PYTHON"))},
            )
        self._line()
        return self

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It neither works nor watches the database meanwhile; afterwards it has caught up."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)
        time.sleep(CATCHING_UP)
        self.ask("statuses")

    def ask(self, what: str, limit: float = ANSWER_LIMIT, **more: Any) -> Answer:
        """One request; returns when it has done all that it means to do."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self._process.stdin.flush()
        return Answer(**self._line(limit))

    def call(
        self, method: str, kind: str, *models: Mapping[str, Any], limit: float = ANSWER_LIMIT, **keywords: Any
    ) -> Answer:
        """One call of the driver."""
        return self.ask(
            "call", limit, method=method, models=list(models), keywords=keywords, **{"class": kind}
        )

    def _line(self, limit: float = ANSWER_LIMIT) -> Json:
        assert self._process is not None
        out: IO[str] | None = self._process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], limit)
        line = out.readline() if ready else ""
        if not line:
            raise RuntimeError(f"the original said nothing; its log: {self.log.read_text()[-2000:]}")
        found: Json = json.loads(line)
        return found


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT)
