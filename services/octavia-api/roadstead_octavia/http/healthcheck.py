"""`/healthcheck`: for load balancers in front of the API and for people; text, JSON or a page, as the client likes.

The database is asked at most once in the refresh time, however many ask here.
"""

import gc
import html
import json
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from roadstead_octavia.http.accept import preferred
from roadstead_octavia.http.answers import HTML, JSON, TEXT, Response
from roadstead_octavia.options import Options

log = structlog.get_logger("roadstead.octavia.health")

DATABASE = "octavia_db_check"
UNAVAILABLE = "The Octavia database is unavailable."
OFFERS = ("text/plain", "text/html", "application/json")

Check = Callable[[], Awaitable[None]]


class HealthCheck:
    """check_database raises what is wrong."""

    def __init__(self, check_database: Check, clock: Callable[[], float] = time.monotonic) -> None:
        self._check = check_database
        self._clock = clock
        self._checked = float("-inf")
        self._fault: str | None = None

    def forget(self) -> None:
        """Ask the database next time."""
        self._checked = float("-inf")

    async def answer(self, method: str, accept: str, options: Options) -> Response:
        """For GET and HEAD; 405 for other methods, 404 while it is switched off."""
        if method not in ("GET", "HEAD"):
            return _plain(
                405, "Method Not Allowed", f"The method {method} is not allowed for this resource. ", accept
            )
        if not options.healthcheck_enabled:
            return _plain(
                404, "Not Found", "The resource could not be found.", accept, is_head=method == "HEAD"
            )
        faults: list[str | None] = []
        if DATABASE in options.healthcheck_backends:
            faults.append(await self._database(options.healthcheck_refresh_interval))
        healthy = not any(faults)
        if method == "HEAD":
            return Response(204) if healthy else Response(503, b"", TEXT)
        status = 200 if healthy else 503
        form = preferred(accept, OFFERS)
        if form is None:
            return _plain(
                406,
                "Not Acceptable",
                "The resource could not be generated that was acceptable to your browser",
                accept,
            )
        if not faults and form == "text/plain":
            return Response(204)
        reasons = [UNAVAILABLE if fault else "OK" for fault in faults]
        if form == "text/html":
            return Response(status, _page(reasons).encode(), HTML)
        if form == "application/json":
            return Response(status, _json(reasons, faults, options.healthcheck_detailed), JSON)
        return Response(status, "\n".join(reasons).encode(), TEXT)

    async def _database(self, refresh: float) -> str | None:
        """What is wrong with the database, None when nothing is."""
        now = self._clock()
        if now - self._checked >= refresh:
            try:
                await self._check()
            except Exception as error:  # noqa: BLE001 - whatever it is, the check has failed and says so
                # Whatever it is, the answer is that the database is away; the log has the rest.
                log.warning("the database does not answer", error=f"{type(error).__name__}: {error}")
                self._fault = str(error) or type(error).__name__
            else:
                self._fault = None
            self._checked = self._clock()
        return self._fault


def _json(reasons: list[str], faults: list[str | None], detailed: bool) -> bytes:
    if not detailed:
        return _dumps({"detailed": False, "reasons": reasons})
    told = [
        {
            "class": "OctaviaDBCheckResult",
            "details": f"Database health check failed due to: {fault}." if fault else "",
            "reason": reason,
        }
        for reason, fault in zip(reasons, faults, strict=True)
    ]
    more: Mapping[str, Any] = {
        "detailed": True,
        "gc": {"counts": gc.get_count(), "threshold": gc.get_threshold()},
        "greenthreads": [],
        "now": datetime.now(UTC).isoformat(),
        "platform": platform.platform(),
        "python_version": sys.version,
        "reasons": told,
        "threads": [],
    }
    return _dumps(more)


def _dumps(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=4, sort_keys=True).encode()


def _page(reasons: list[str]) -> str:
    """A table of what was checked."""
    rows = "".join(f"<TR>\n\n    <TD>{html.escape(reason)}</TD>\n\n</TR>\n" for reason in reasons)
    return (
        "<HTML>\n<HEAD><TITLE>Healthcheck Status</TITLE></HEAD>\n<BODY>\n\n"
        f"<H2>Result of {len(reasons)} checks:</H2>\n"
        '<TABLE bgcolor="#ffffff" border="1">\n<TBODY>\n<TR>\n\n<TH>\nReason\n</TH>\n</TR>\n'
        f"{rows}</TBODY>\n</TABLE>\n<HR></HR>\n\n</BODY>\n</HTML>"
    )


def _plain(status: int, title: str, text: str, accept: str, *, is_head: bool = False) -> Response:
    """A refusal for people; `is_head`: no body follows, and the header tells of a page."""
    if is_head or (accept and preferred(accept, ("text/plain", "text/html")) == "text/html"):
        page = (
            f"<html>\n <head>\n  <title>{status} {title}</title>\n </head>\n <body>\n  <h1>{status} {title}</h1>\n"
            f"  {html.escape(text)}<br /><br />\n\n\n\n </body>\n</html>"
        )
        return Response(status, page.encode(), HTML)
    ending = " \n\n " if text.endswith(" ") else "\n\n   "
    return Response(status, f"{status} {title}\n\n{text.rstrip()}{ending}".encode(), TEXT)
