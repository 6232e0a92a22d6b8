"""Mutants of what the services share: the log, terms, groups, readers, distances."""

from functools import partial

from tests.mutants.mutant import Mutant

log = partial(Mutant, file="unified_log/log/stream.py", tests="services/test_appending.py")
decode = partial(Mutant, file="unified_log/log/entries.py", tests="fast/test_decode.py")
term = partial(Mutant, file="unified_log/streamer/leaders_term.py", tests="services/test_terms.py")
known = partial(Mutant, file="unified_log/terms.py", tests="fast/test_known_terms.py")
distance = partial(Mutant, file="rocket_rides/distance.py", tests="fast/test_distance.py")
groups = partial(Mutant, file="unified_log/groups.py", tests="services/test_groups.py")
member = partial(Mutant, file="consumers/receipts/group.py", tests="services/test_groups.py")
readers = partial(Mutant, file="unified_log/streamer/trimming.py", tests="services/test_readers.py")
BACKLOG = "services/test_trimming.py::test_a_backlog_that_is_sent_at_once_is_trimmed_at_once"

MUTANTS = [
    Mutant(
        "the mechanism makes the application's spans",
        "from unified_log.tracing import Trace\n",
        "from rocket_rides import telemetry  # noqa: F401\nfrom unified_log.tracing import Trace\n",
        "unified_log/spans.py",
        "fast/test_mechanism.py::test_all_of_it_can_be_imported_where_there_is_nothing_else",
    ),
    log("each record of a batch is chained to the one before the batch", "  prev = id\n", ""),
    log(
        "a full Redis is taken for one that has appended",
        'raise LogFull("Redis is out of memory and refuses to append") from None',
        "return",
        file="unified_log/log/errors.py",
        tests="services/test_appending.py services/test_trimming.py",
    ),
    log(
        "a server that forgot the script gets nothing",
        "self._append(keys=[self.name], args=values)",
        "pass",
    ),
    decode(
        "a record may be its own predecessor",
        "if not prev < position <= LARGEST_ID:",
        "if not prev <= position <= LARGEST_ID:",
    ),
    term(
        "a leader begins below a term that began later",
        "WHERE NOT EXISTS (SELECT FROM terms WHERE after > last_sent_id)",
        "WHERE true",
        tests="services/test_broken_by_hand.py",
    ),
    term(
        "the oldest term is taken for the newest",
        "(SELECT term FROM terms ORDER BY after DESC LIMIT 1) = %s",
        "(SELECT term FROM terms ORDER BY after LIMIT 1) = %s",
        file="unified_log/streamer/drain.py",
        tests="services/test_terms.py::"
        "test_a_crash_after_sending_leaves_entries_that_nobody_believes",
    ),
    known(
        "terms that were lost still count",
        "        self._ranges = {}\n        self.newest, self._after, name",
        "        self.newest, self._after, name",
    ),
    distance("a sum may round", "traps=[Inexact, InvalidOperation", "traps=[InvalidOperation"),
    member(
        "who takes over its own entries takes those of others, too",
        "if ARGV[5] then ask[#ask + 1] = ARGV[5] end\n",
        "",
    ),
    member(
        "what is taken over is in the server's memory all at once",
        "    if size > {MOST} then break end\n",
        "",
        tests="services/test_huge_entries.py",
    ),
    log(
        "a reply of any size is kept whole",
        "            if size > LARGEST:",
        "            if False:",
        file="unified_log/log/replies.py",
        tests="services/test_huge_entries.py",
    ),
    groups(
        "what is pending in a group holds nothing back",
        "first and first[1] or '', facts",
        "'', facts",
        tests="services/test_groups.py::"
        "test_the_positions_of_all_groups_are_the_lowest_pending_or_the_last_delivered",
    ),
    Mutant(
        "whoever has the pid of a fleet that ended is that fleet",
        "return found if started and started == _started(found) else 0",
        "return found if started and _started(found) else 0",
        "rocket_rides/fleet.py",
        "fast/test_screen.py",
    ),
    readers(
        "trimming follows the fastest reader",
        "*min(map(as_numbers, needed)",
        "*max(map(as_numbers, needed)",
    ),
    readers(
        "ids are compared as text",
        'return "{}-{}".format(*min(map(as_numbers, needed), default=as_numbers(START)))',
        "return min(needed, default=START)",
    ),
    readers(
        "what is pending holds nothing back",
        "group.first_pending or group.last_delivered for",
        "group.last_delivered for",
    ),
    log(
        "one trim drops some 10,000 entries, and the log outgrows its cap",
        '["~", threshold, "LIMIT", MOST_TRIMMED]',
        '["~", threshold]',
        tests=BACKLOG,
    ),
    log(
        "one trim drops millions of entries, and Redis answers nobody meanwhile",
        '"LIMIT", MOST_TRIMMED]',
        '"LIMIT", 0]',
        tests=BACKLOG,
    ),
    readers(
        "a place in many digits is asked of Redis as it is",
        'return "{}-{}".format(*min(map(as_numbers, needed), default=as_numbers(START)))',
        "return min(needed, key=as_numbers, default=START)",
        tests="services/test_trimming.py::"
        "test_a_reader_that_writes_its_place_in_many_digits_stops_nothing",
    ),
]
