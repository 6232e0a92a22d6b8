"""What a reader says of its rounds, for a person."""

import logging
from collections import Counter
from typing import Any

from unified_log.log import START
from unified_log.readers.checkpoint import Place
from unified_log.readers.committed import Ignored
from unified_log.readers.gaps import Healed, HealedSum
from unified_log.readers.reader import Reader
from unified_log.readers.round import Round
from unified_log.terms import NO_TERM
from unified_log.tracing import fields
from unified_log.words import count

logger = logging.getLogger("consumer")

TERMS_NAMED = 100
# All are counted; only the first of each term are reported.
IF_MORE_COME = "If entries_ignored of its checkpoint goes on rising,"


def with_state(handler: object) -> str:
    """A handler's state after a comma, if it has one to show."""
    return f", {state}" if (state := str(handler)) else ""


class Named:
    """The terms that were reported, up to a number: a stranger may invent one for each entry."""

    def __init__(self) -> None:
        self._terms: set[bytes] = set()

    def unnamed(self, entries: Counter[bytes]) -> int:
        """How many of the entries have a term not named before; from now on it is named."""
        new = [term for term in entries if term not in self._terms]
        new = new[: TERMS_NAMED - len(self._terms)]
        self._terms.update(new)
        return sum(entries[term] for term in new)


class Report:
    """The log lines of the reader `name`, over all of its sessions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._foreign = Named()
        self._uncommitted = Named()
        self._began: Place | None = None  # the reader of the last round
        self._caught_up: int | None = None  # up to where it has, since it began with the log

    def __call__(self, done: Round, reader: Reader[Any]) -> None:
        """Report what a round did."""
        if reader.began is not self._began:  # its first round
            self._began = reader.began
            has_read = reader.began.redis_id != START
            self._caught_up = None if has_read else reader.began.position
        self.news(done, reader)
        if not done.healed:
            self._caught_up = None
        self.entries(done)

    def entries(self, done: Round) -> None:
        """Report what was strange about the entries that it read."""
        for entry, reason in done.malformed:
            words, extra = "%s met a malformed entry, %s: %s", fields([entry.trace])
            logger.warning(words, self._name, entry.redis_id, reason, extra=extra)
        for position, type_, (reason, _) in done.held_out:
            logger.warning("%s held out %s %d: %s", self._name, type_, position, reason)
        for position, type_, refusal in done.retried:
            if refusal:
                why = f"it was refused again: {refusal.reason}"
                logger.warning("%s tried %s %d again: %s", self._name, type_, position, why)
            else:
                logger.info("%s counts %s %d, which was held out", self._name, type_, position)
        if done.rewound:
            logger.warning(
                "%s: the log was wiped, restored or failed over; reading it again", self._name
            )
        if done.skipped:
            skipped = count(done.skipped, "record")
            logger.info("%s skipped %s that it had passed before", self._name, skipped)
        self.ignored(done.ignored)

    def news(self, done: Round, reader: Reader[Any]) -> None:
        """Report the gaps, and the batch in one line."""
        for healed in done.healed:
            if healed.records or not done.held_out:  # what is held out is told by itself
                self.healed(healed, reader.handler.RECORD)
        if counted := len(done.records) + HealedSum.of(done.healed).records:
            what = count(counted, reader.handler.RECORD)
            extra = fields(done.traces.values())
            state = with_state(reader.handler)
            logger.info("%s up to %d%s", what, reader.at.position, state, extra=extra)

    def healed(self, healed: Healed, record: str) -> None:
        """Report a gap; what the log had trimmed before the reader began is none."""
        begins = healed.gap.after == self._caught_up
        if begins:
            self._caught_up = healed.gap.upto
        logger.log(
            logging.INFO if begins else logging.WARNING,
            "%s %s: %s%s, from position %d to %d",
            self._name,
            "caught up from the tables" if begins else "healed a gap in the log",
            count(healed.records, record),
            f", {healed.what}" if healed.what else "",
            healed.gap.after + 1,
            healed.gap.upto,
        )

    def ignored(self, found: Ignored) -> None:
        """Report each term once; later entries under it are only counted."""
        uncommitted = found.uncommitted.copy()
        without_term = uncommitted.pop(NO_TERM, 0)
        if foreign := self._foreign.unnamed(found.foreign):
            logger.warning(
                "%s skipped %s from another database, or from a past that this one has lost. %s"
                " another database writes to this stream: give that one its own STREAM_NAME",
                self._name,
                count(foreign, "entry"),
                IF_MORE_COME,
            )
        if without_term and self._foreign.unnamed(Counter({NO_TERM: without_term})):
            logger.warning(
                "%s skipped %s without a term, as versions before terms wrote them. %s"
                " another fleet writes to this stream: give that one its own STREAM_NAME",
                self._name,
                count(without_term, "entry"),
                IF_MORE_COME,
            )
        if skipped := self._uncommitted.unnamed(uncommitted):
            logger.info(
                "%s skipped %s that the streamer never committed, or revoked: harmless after a"
                " change of lead, restore or repair. %s an old primary still writes to this stream",
                self._name,
                count(skipped, "entry"),
                IF_MORE_COME,
            )
