"""Lies about what the services share: the log, terms, groups, readers, distances."""

from functools import partial

from tests.mutants.mutant import Mutant

log = partial(Mutant, file="rocket_rides/log/stream.py", tests="services/test_appending.py")
decode = partial(Mutant, file="rocket_rides/log/entries.py", tests="fast/test_decode.py")
terms = partial(Mutant, file="rocket_rides/terms.py", tests="services/test_terms.py")
term = partial(Mutant, file="streamer/leaders_term.py", tests="services/test_terms.py")
known = partial(Mutant, file="rocket_rides/terms.py", tests="fast/test_known_terms.py")
distance = partial(Mutant, file="rocket_rides/distance.py", tests="fast/test_distance.py")
groups = partial(Mutant, file="rocket_rides/groups.py", tests="services/test_groups.py")
member = partial(Mutant, file="consumers/receipts/group.py", tests="services/test_groups.py")
readers = partial(Mutant, file="streamer/trimming.py", tests="services/test_readers.py")

MUTANTS = [
    log(
        "each record of a batch is chained to the one before the batch", "  prev = records[i]\n", ""
    ),
    log(
        "a full Redis is taken for one that has appended",
        'raise LogFull("Redis is out of memory and refuses to append") from None',
        "return",
        file="rocket_rides/log/errors.py",
        tests="services/test_appending.py services/test_trimming.py",
    ),
    log(
        "a server that forgot the script gets nothing",
        "self._append(keys=[self.name], args=values)",
        "pass",
    ),
    log(
        "an error meanwhile leaves Redis' answer to the next command",
        """\
            with suppress(redis.RedisError):
                answer()
            raise
""",
        """\
            raise
""",
    ),
    log("ids are numbers for Lua, which has 53 bits", "(str(id_), data)", "(id_, data)"),
    log(
        "redis-py sends a command again whose answer was lost",
        "            retry=None,\n",
        "            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 3),\n",
    ),
    log(
        "a wait of less than a millisecond is one without an end",
        '["BLOCK", max(1, int(wait * 1000))] if wait else []\n        reply = self.command("XREAD"',
        '["BLOCK", int(wait * 1000)] if wait else []\n        reply = self.command("XREAD"',
    ),
    log(
        "too few replicas are enough",
        "if having < self._replicas:",
        "if having < 0:",
        tests="services/test_failover.py::"
        "test_with_wait_a_promoted_replica_has_all_that_was_committed_as_sent",
    ),
    log(
        "a batch is not waited for",
        "            answer()\n        self.wait_for_replicas()\n",
        "            answer()\n",
        tests="services/test_failover.py::"
        "test_with_wait_a_promoted_replica_has_all_that_was_committed_as_sent",
    ),
    log(
        "replicas are waited for without an end",
        "int(REPLICAS_TIMEOUT * 1000)",
        "int(REPLICAS_TIMEOUT)",
        tests="services/test_failover.py::"
        "test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing",
    ),
    log(
        "a leader whose replicas are away begins",
        "    log.wait_for_replicas()  # else each attempt would leave a batch behind\n",
        "",
        file="streamer/__main__.py",
        tests="services/test_failover.py::"
        "test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing",
    ),
    log(
        "no replica is waited for, whatever the settings say",
        ", replicas=config.log_replicas",
        "",
        file="streamer/__main__.py",
        tests="services/test_failover.py::"
        "test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing",
    ),
    log(
        "a Redis that syncs its file now and then passes for durable",
        '    "appendfsync": "always",\n',
        "",
        file="streamer/checks.py",
        tests="services/test_leader.py::"
        "test_a_setting_that_changes_under_a_leader_is_warned_about_once",
    ),
    decode(
        "a record may be its own predecessor",
        "if not prev < ride.id <= LARGEST_ID:",
        "if not prev <= ride.id <= LARGEST_ID:",
    ),
    decode(
        "distances go through binary floats",
        "float_hook=Decimal)",
        "float_hook=lambda text: Decimal(float(text)))",
    ),
    decode(
        "any number of bytes may be prev's",
        "prev_digits.isdigit() and len(prev_digits) <= LONGEST_ID",
        "prev_digits.isdigit()",
    ),
    decode(
        "a distance that the column would round is taken",
        "if not is_exact(distance):",
        "if distance <= 0:",
    ),
    term(
        "a leader begins below a term that began later",
        "WHERE NOT EXISTS (SELECT FROM terms WHERE after > last_sent_id)",
        "WHERE true",
        tests="services/test_broken_by_hand.py",
    ),
    term(
        "a leader begins though the next ride was sent",
        "LIMIT 1\n      ), true)",
        "LIMIT 1\n      ), true) IS NOT NULL",
        tests="services/test_broken_by_hand.py::"
        "test_a_last_sent_that_was_set_back_is_said_and_begins_no_term",
    ),
    term(
        "a term that was replaced is forgotten",
        "void = (ARRAY[terms.term] || terms.void)[1:{VOID_KEPT}]",
        "void = terms.void",
    ),
    terms(
        "the oldest term is taken for the newest",
        'NEWEST = "SELECT term FROM terms ORDER BY after DESC LIMIT 1"',
        'NEWEST = "SELECT term FROM terms ORDER BY after LIMIT 1"',
        tests="services/test_terms.py::"
        "test_a_crash_after_sending_leaves_entries_that_nobody_believes",
    ),
    terms(
        "a reader goes on believing terms when all of them were lost",
        "IS DISTINCT FROM %(known)s::text",
        "<> %(known)s::text",
        tests="services/test_terms.py::test_terms_that_are_all_gone_are_believed_no_longer",
    ),
    term(
        "after a repair, no term begins at last_sent",
        "        if upto:\n            connection.execute(OWN, [upto, _draw(), []])\n",
        "",
        tests="services/test_repair.py",
        explained="no leader has such a term: the next one begins its own at last_sent, before it"
        " sends anything, and nobody believes anything below it either way",
    ),
    term(
        "a repair forgets which terms there were",
        "connection.execute(OWN, [0, _draw(), void])",
        "connection.execute(OWN, [0, _draw(), []])",
        tests="services/test_repair.py::test_what_a_repair_has_disowned_is_not_called_a_strangers",
    ),
    known(
        "a void term is believed up to where it was replaced",
        "{other.encode(): Range(after, after) for other in void}",
        "{other.encode(): Range(self._after, after) for other in void}",
    ),
    known(
        "the newest term is believed from the first ride on",
        "self._ranges[newest] = Range(self._after, last)",
        "self._ranges[newest] = Range(0, last)",
    ),
    known(
        "terms that were lost stay believed",
        "        self._ranges = {}\n        self.newest, self._after, name",
        "        self.newest, self._after, name",
    ),
    known(
        "a reader that knows nothing asks for nothing where there is no term",
        'self.newest: str | None = ""',
        "self.newest: str | None = None",
    ),
    distance(
        "half a millimetre is rounded up",
        "metres.quantize(MILLIMETRE)  #",
        'metres.quantize(MILLIMETRE, "ROUND_HALF_UP")  #',
    ),
    distance("a ride of nothing is a ride", "if 0 < metres <= MOST:", "if 0 <= metres <= MOST:"),
    distance("the longest ride is refused", "if 0 < metres <= MOST:", "if 0 < metres < MOST:"),
    distance("a sum may round", "traps=[Inexact, InvalidOperation", "traps=[InvalidOperation"),
    distance(
        "a distance that the column would round is exact",
        "NONE < metres <= MOST and metres == metres.quantize(MILLIMETRE)",
        "NONE < metres <= MOST",
    ),
    member(
        "who takes over its own entries takes those of others, too",
        "if ARGV[5] then ask[#ask + 1] = ARGV[5] end\n",
        "",
    ),
    member(
        "a claim does not ask for how long the entry was idle",
        "'IDLE', ARGV[3]",
        "'IDLE', 0",
    ),
    member(
        "a pending id whose entry was trimmed stays pending",
        "    redis.call('XACK', key, group, id)\n",
        "",
    ),
    member(
        "what is taken over stays under the name of who had it",
        "redis.call('XCLAIM', key, group, member, 0, id)[1]",
        "redis.call('XRANGE', key, id, id)[1]",
    ),
    member(
        "a member is given again what it was given",
        '"STREAMS", self._log.name, ">"',
        '"STREAMS", self._log.name, "0"',
    ),
    member(
        "a group that is made later is not given what was there",
        "self._log.name, self.name, START,",
        'self._log.name, self.name, "$",',
    ),
    groups(
        "what is pending in a group holds nothing back",
        "first and first[1] or '', facts",
        "'', facts",
        tests="services/test_groups.py::"
        "test_the_positions_of_all_groups_are_the_lowest_pending_or_the_last_delivered",
    ),
    groups(
        "a group that has been given more than is pending needs nothing",
        "facts['last-delivered-id']}",
        "'0-0'}",
    ),
    Mutant(
        "whoever has the pid of a fleet that ended is that fleet",
        "return found if started and started == _started(found) else 0",
        "return found if started and _started(found) else 0",
        "rocket_rides/fleet.py",
        "fast/test_screen.py",
    ),
    Mutant(
        "a fleet that has ended lives until somebody asks how",
        'return [] if status[:1] == ["Z"] else status',
        "return status",
        "rocket_rides/fleet.py",
        "fast/test_screen.py",
    ),
    readers(
        "trimming follows the fastest reader",
        "return min(needed, key=as_numbers",
        "return max(needed, key=as_numbers",
    ),
    readers(
        "ids are compared as text",
        "return min(needed, key=as_numbers, default=START)",
        "return min(needed, default=START)",
    ),
    readers(
        "what is pending holds nothing back",
        "group.first_pending or group.last_delivered for",
        "group.last_delivered for",
    ),
    readers(
        "what was given to a group holds nothing back",
        "group.first_pending or group.last_delivered for",
        "group.first_pending or '0-1' for",
    ),
    readers(
        "checkpoints hold nothing back where there are groups",
        "needed += [",
        "needed = [",
    ),
    readers(
        "what is too old goes only where a whole node can go",
        "self._log.trim_before(self._oldest_to_keep(), exactly=True)",
        "self._log.trim_before(self._oldest_to_keep())",
    ),
]
