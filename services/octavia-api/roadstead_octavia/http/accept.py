"""What a client is willing to read, by its Accept header."""

import re
from functools import lru_cache

RANGE = re.compile(r"\s*[^\s/;,]+/[^\s/;,]+\s*(;.*)?", re.DOTALL)


@lru_cache(maxsize=256)
def admits_json(accept: str) -> bool:
    """Whether JSON may be answered."""
    return says_nothing(accept) or quality(accept, "application/json") > 0


def says_nothing(accept: str) -> bool:
    """Empty, or no list of media types at all: everything is admitted."""
    return not all(RANGE.fullmatch(part) for part in accept.split(","))


@lru_cache(maxsize=256)
def preferred(accept: str, offers: tuple[str, ...]) -> str | None:
    """The offer that the client likes most, the earlier one of equals; None when it takes none of them."""
    if says_nothing(accept):
        return offers[0]
    best = max(offers, key=lambda offer: quality(accept, offer))
    return best if quality(accept, best) > 0 else None


def quality(accept: str, media_type: str) -> float:
    """0 to 1; of several ranges that match the most particular one counts."""
    main = media_type.partition("/")[0]
    ranks = {media_type: 2, f"{main}/*": 1, "*/*": 0}
    found = (-1, 0.0)
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        rank = ranks.get(name, -1)
        if rank > found[0]:
            found = (rank, _weight(parameters))
    return found[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 1.0
    return 1.0
