"""Places for dead receipts, so that a button stays where it is while others come and go."""

from collections.abc import Sequence

from watch.facts import DeadReceipt

SLOTS = [f"dead-{place}" for place in range(5)]  # the ids of their elements


class Slots:
    """Which dead receipt is in which place."""

    def __init__(self) -> None:
        self.letters: list[DeadReceipt | None] = [None] * len(SLOTS)

    def fill(self, newest: Sequence[DeadReceipt]) -> None:
        """Leave each where it is; a new one takes the place of one that is gone, or too old."""
        new = {letter.ride: letter for letter in newest[: len(SLOTS)]}
        for place, letter in enumerate(self.letters):
            self.letters[place] = new.pop(letter.ride, None) if letter else None
        for letter in new.values():
            self.letters[self.letters.index(None)] = letter
