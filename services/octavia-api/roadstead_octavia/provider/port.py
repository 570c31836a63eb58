"""The provider as operations see it: `check` before anything is written, `ask` for what returns a value.

Arguments are octavia-lib's data models as plain dicts: the model's field names, `"$type"` naming the model, fields that are not set
absent (`provider/models.py` makes them from rows).  After the commit the call itself travels as an operation on the bus; that is
the business of `provider/`, not of operations.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Model = Mapping[str, Any]


class Provider(Protocol):
    """Both raise ApiError for what the provider refuses (Provider... and VIPAddressConflict rows of the texts), 503 with Retry-After
    when none answers."""

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        """Would the provider carry this out?  No side effects.  revision: the load balancer's, 0 for a new one."""

    async def ask(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        """create_vip_port, get_supported_flavor_metadata, validate_flavor, ... ; NotImplemented by the provider raises
        ApiError ProviderNotImplemented (for create_vip_port the API then makes the port itself)."""
