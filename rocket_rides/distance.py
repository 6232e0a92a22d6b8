"""Distances: exact decimals in metres, to the millimetre. Never binary floating point."""

import re
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow

MILLIMETRE = Decimal("0.001")
# NUMERIC(12,3), the type of rides.distance.
MOST = Decimal("999999999.999")
NONE = Decimal(0)
# A total is NUMERIC(38,3). In this context an operation that would round raises instead.
EXACT = Context(prec=41, traps=[Inexact, InvalidOperation, Overflow, DivisionByZero])

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def parse(text: str) -> Decimal:
    """Parse a distance in metres as a client wrote it, rounded half-even to the millimetre.

    Raises ValueError, with a message for the client, for anything but a finite decimal number
    that rounds to more than 0 and at most 999,999,999.999.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError("distance must be a decimal number of metres, such as 539.837")
    try:
        metres = Decimal(text)
        if 0 < metres < MOST + 1:
            metres = metres.quantize(MILLIMETRE)  # Decimal's default rounding is half-even
        if 0 < metres <= MOST:
            return metres
    except InvalidOperation:  # an exponent beyond what Decimal holds
        pass
    raise ValueError("distance must be more than 0 and at most 999999999.999 metres")


def is_exact(metres: Decimal) -> bool:
    """Whether `rides.distance` can hold this value without rounding."""
    return NONE < metres <= MOST and metres == metres.quantize(MILLIMETRE)
