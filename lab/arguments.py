"""Values of the lab's command lines."""

import argparse


def positive(text: str) -> float:
    """A number above 0 and below a billion. Raises argparse.ArgumentTypeError."""
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
