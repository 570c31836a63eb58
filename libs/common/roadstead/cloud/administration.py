"""An administrator's way into a cloud, for `region configure` alone; no service ever uses it."""

import re
import shlex
from collections.abc import Mapping
from typing import Any, Protocol

from roadstead.cloud.sending import RawAnswer

_ASSIGNMENT = re.compile(r"(?:export\s+)?(OS_[A-Z0-9_]+)=(.*)")


class Administrator(Protocol):
    """Raw requests with an administrator's credentials.

    auth_url: Keystone's address, ending in /v3.  region_name: Keystone's region, None for the only one.
    """

    auth_url: str
    region_name: str | None

    async def request(
        self, service: str, method: str, path: str, json: Any = None, query: Mapping[str, str] | None = None
    ) -> RawAnswer:
        """One request; path below the service's version.  Raises NotSent or Unanswered as a sender does."""
        ...


def read_openrc(text: str) -> dict[str, str]:
    """OS_ variables of an openrc file, read and not executed.

    ValueError, with the remedy, for a line whose value only a shell could know.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _ASSIGNMENT.fullmatch(line.strip())
        if match is None:
            continue
        name, value = match[1], match[2]
        if "$" in value or "`" in value:
            raise ValueError(f"line {number}: {name} is computed; write the plain value or use clouds.yaml")
        try:
            words = shlex.split(value, comments=True)
        except ValueError as error:
            raise ValueError(f"line {number}: {name} is not quoted well ({error})") from None
        found[name] = words[0] if words else ""
    if not found:
        raise ValueError("the file sets no OS_ variable; give an openrc file or a cloud of clouds.yaml")
    return found
