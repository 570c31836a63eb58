"""Simulated Placement: the version document, so that discovery works; nothing below it yet."""

from __future__ import annotations

from .base import ApiError, Ctx, Service, answer, route
from .wire import Response


class Placement(Service):
    """The version document only; every other path is 404."""

    name = "placement"
    prefix = "placement"

    @route("GET", "", auth=False)
    def versions(self, ctx: Ctx) -> Response:
        return answer(
            {
                "versions": [
                    {
                        "id": "v1.0",
                        "status": "CURRENT",
                        "min_version": "1.0",
                        "max_version": "1.39",
                        "links": [{"rel": "self", "href": ""}],
                    }
                ]
            }
        )

    def error(self, status: int, message: str, kind: str | None = None) -> ApiError:
        title = {404: "Not Found", 400: "Bad Request", 403: "Forbidden"}.get(status, "Error")
        return ApiError(status, {"errors": [{"status": status, "title": title, "detail": message}]})
