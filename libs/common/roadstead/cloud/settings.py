"""Bounds of the access to the clouds; every region has its own share of each."""

import re
from dataclasses import dataclass

NOVA_NEWEST = (2, 92)


@dataclass(frozen=True)
class CloudSettings:
    """Times in seconds.  Raises ValueError, with the remedy, for what cannot be.

    nova_microversion: pinned; newer than 2.92 is refused, because a keypair could not be made from nothing (INV-291).
    token_margin: a token with less life left is renewed before a request leaves.
    page_limit: rows asked for per page; None leaves it to the service.
    ca_file: certificates to trust besides the system's.  clients_max: sessions kept; the least used one goes first.
    throttle_wait: the longest pause taken inside a call; a longer one ends it as THROTTLED.
    """

    threads_per_region: int = 8
    call_deadline: float = 60.0
    connect_timeout: float = 10.0
    ca_file: str | None = None
    clients_max: int = 512
    page_limit: int | None = None
    pages_max: int = 1000
    list_restarts: int = 3
    nova_microversion: str = "2.90"
    token_margin: float = 60.0
    refused_login_pause: float = 5.0
    throttle_wait: float = 10.0
    throttle_repeats: int = 3
    throttle_default: float = 2.0
    circuit_failures: int = 5
    circuit_open: float = 10.0

    def __post_init__(self) -> None:
        match = re.fullmatch(r"2\.(\d+)", self.nova_microversion)
        if match is None:
            raise ValueError(f"Nova microversion {self.nova_microversion!r} is none; set one like 2.90")
        if (2, int(match[1])) > NOVA_NEWEST:
            raise ValueError(f"Nova microversion {self.nova_microversion} is too new; set 2.92 or lower")
        for name in ("threads_per_region", "pages_max", "circuit_failures", "clients_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.page_limit is not None and self.page_limit < 1:
            raise ValueError("page_limit must be at least 1; leave it out for the service's own page size")
        if self.call_deadline <= 0:
            raise ValueError("call_deadline must be positive")
