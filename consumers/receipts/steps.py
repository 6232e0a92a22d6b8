"""Where a worker can be made to crash, in order."""

from enum import Enum


class Step(Enum):
    """A step of a worker's round."""

    AFTER_READING = "after entries were read, before anything came of them"
    BEFORE_SENDING = "after attempts were written, before they were made"
    BEFORE_SAVING = "after attempts ended, before their outcomes were written"
    BEFORE_ACKNOWLEDGING = "after outcomes were written, before their entries were acknowledged"
    WHILE_SWEEPING = "between a sweep's look at what is unread and at what is pending"
