"""A command line that refuses what it doesn't know in one line."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Parses the options of `prog`, whose `--help` shows the description as it is written."""

    def __init__(self, prog: str, description: str | None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Refuse in one line, without the usage; the exit status is 2."""
        self.exit(2, f"{self.prog}: {message}; --help explains\n")
