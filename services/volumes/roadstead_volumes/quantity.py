"""Sizes as people write them, `10Gi` or `1Ti`, as whole GiB; exact, never through a float."""

import re
from fractions import Fraction

GIB = 1 << 30
_UNITS: dict[str, int] = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "Pi": 1 << 50,
}
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,12})?)([kMGTP]|[KMGTP]i)?", re.ASCII)


def whole_gib(size: str | int) -> int:
    """The size as a positive whole number of GiB; a number without unit counts bytes.

    ValueError, with the remedy in its text, for anything else (Q9, INV-178).
    """
    match = _SIZE.fullmatch(str(size).strip())
    if match is None:
        raise ValueError(f"{size!r} is no size; write one like 10Gi")
    gib = Fraction(match[1]) * _UNITS[match[2] or ""] / GIB
    if gib <= 0 or gib.denominator != 1:
        raise ValueError(f"{size!r} is no positive whole number of GiB; write one like 10Gi")
    return gib.numerator
