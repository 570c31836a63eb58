"""Simulated Placement: the version document, so that discovery works; nothing below it yet."""

from __future__ import annotations

from .base import ApiError, Ctx, Service, answer, route
from .wire import Response

MAXIMUM = 39
"""The newest minor version."""


class Placement(Service):
    """The version document only; every other path is 404."""

    name = "placement"
    prefix = "placement"

    def prepare(self, ctx: Ctx) -> None:
        """Microversions 1.0 to 1.39: 400 for a malformed one, 406 beyond them."""
        words = ctx.request.headers.get("openstack-api-version", "").split()
        if len(words) != 2 or words[0] != "placement" or words[1] == "latest":
            return
        major, _, minor = words[1].partition(".")
        if not (major.isdigit() and minor.isdigit()):
            raise self.error(400, f"invalid version string: {words[1]}")
        if major != "1" or int(minor) > MAXIMUM:
            raise self.error(406, f"Unacceptable version header: {words[1]}")

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        return answer(
            {
                "versions": [
                    {
                        "id": "v1.0",
                        "status": "CURRENT",
                        "min_version": "1.0",
                        "max_version": f"1.{MAXIMUM}",
                        "links": [{"rel": "self", "href": ""}],
                    }
                ]
            }
        )

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        title = {404: "Not Found", 400: "Bad Request", 403: "Forbidden", 406: "Not Acceptable"}.get(
            status, "Error"
        )
        return ApiError(status, {"errors": [{"status": status, "title": title, "detail": message}]})
