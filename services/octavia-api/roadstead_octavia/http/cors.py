"""Scripts in browsers: which origins may read answers, and the question that a browser asks before it sends a request."""

from roadstead_octavia.http.answers import Response

METHODS = ("GET", "PUT", "POST", "DELETE")
HEADERS_IN = ("X-Auth-Token", "X-Openstack-Request-Id", "Content-Type", "Cache-Control", "Content-Language")
HEADERS_OUT = ("X-Auth-Token", "X-Openstack-Request-Id")
ANY = "*"


class Cors:
    """origins: those that are let in; `*` lets all in."""

    def __init__(self, origins: tuple[str, ...] = ()) -> None:
        self._origins = frozenset(origins)

    def headers(self, origin: str | None) -> tuple[tuple[str, str], ...]:
        """For an answer to a request of that origin."""
        if not self._lets_in(origin) or origin is None:
            return ()
        return (
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", ",".join(HEADERS_OUT)),
            ("Vary", "Origin"),
        )

    def preflight(self, origin: str | None, method: str | None, headers: str) -> Response:
        """200 without a body, as every OPTIONS; what is allowed is told to an origin that is let in and asks for what there is.

        `headers` comes on top, as on every answer.
        """
        wanted = [part.strip().lower() for part in headers.split(",") if part.strip()]
        known = {name.lower() for name in HEADERS_IN}
        if not self._lets_in(origin) or method not in METHODS or not known.issuperset(wanted):
            return Response(200)
        return Response(
            200,
            headers=(
                ("Access-Control-Max-Age", "3600"),
                ("Access-Control-Allow-Methods", ",".join(METHODS)),
                ("Access-Control-Allow-Headers", ",".join(HEADERS_IN)),
            ),
        )

    def _lets_in(self, origin: str | None) -> bool:
        return origin is not None and (origin in self._origins or ANY in self._origins)
