"""The options that drills have in common."""

import argparse
import random

from unified_log.process import Parser


class Arguments(Parser):
    def __init__(self, name: str, description: str | None) -> None:
        super().__init__(f"python -m lab.{name}", description)

    def seed(self, option: str, meaning: str) -> None:
        """By default another one each time."""
        new = random.randrange(2**32)
        self.add_argument(option, type=int, default=new, help=f"{meaning} (default: a new one)")

    def number(self, option: str, default: float, meaning: str) -> None:
        """A positive number."""
        shown = f"{meaning} (default: {default:g})"
        self.add_argument(option, type=positive, default=default, help=shown)


def positive(text: str) -> float:
    """A number above 0 and below a billion. Raises argparse.ArgumentTypeError."""
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
