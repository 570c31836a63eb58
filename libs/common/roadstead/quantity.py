"""Quantities as people write them: `10Gi`, `1.5Ti`, `500M`, `1073741824`, `1e9`; exact, never through a float."""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

MIB, GIB = 1 << 20, 1 << 30

_SUFFIXES: dict[str, Fraction] = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(1 << 10),
    "Mi": Fraction(1 << 20),
    "Gi": Fraction(1 << 30),
    "Ti": Fraction(1 << 40),
    "Pi": Fraction(1 << 50),
    "Ei": Fraction(1 << 60),
}
_QUANTITY = re.compile(r"([+-]?\d{1,30}(?:\.\d{1,30})?)(?:[eE]([+-]?\d{1,2})|([kKMGTPEm]i?))?", re.ASCII)


def amount(text: str | int) -> Fraction:
    """The quantity in units (bytes, for memory and sizes).  ValueError when it is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or (match[3] or "") not in _SUFFIXES:
        raise ValueError(f"{text!r} is no quantity; write one like 10Gi")
    try:
        number = Fraction(Decimal(match[1])) * Fraction(10) ** int(match[2] or 0)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no quantity; write one like 10Gi") from None
    return number * _SUFFIXES[match[3] or ""]


def whole_mib(text: str | int) -> int:
    """The quantity in whole MiB, rounded down.  ValueError when it is none, or less than one MiB."""
    mib = int(amount(text) / MIB)
    if mib < 1:
        raise ValueError(f"{text!r} is less than one MiB; write one like 16Gi")
    return mib


def whole_gib(text: str | int) -> int:
    """The quantity as a positive whole number of GiB; without a unit it counts bytes.

    ValueError, with the remedy in its text, for anything else (INV-178).
    """
    gib = amount(text) / GIB
    if gib <= 0 or gib.denominator != 1:
        raise ValueError(f"{text!r} is no positive whole number of GiB; write one like 10Gi")
    return gib.numerator
