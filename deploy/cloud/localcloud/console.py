"""What the program tells the person who runs it: progress lines and one-line errors."""

import time
from pathlib import Path


class CloudError(Exception):
    """Something a person has to act on.  The text is one line and names the remedy."""


def say(text: str) -> None:
    """Print one progress line with the time of day."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def last_lines(path: Path, count: int = 5, width: int = 200) -> str:
    """The end of a log on one line, for an error message; empty when there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 8192))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip()[:width] for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:])
