"""Lies about receipts: attempts, outcomes, the group, the sweep, what a worker has in hand."""

from functools import partial

from tests.mutants.mutant import Mutant

USUAL = "services/test_receipts.py"
LOST = "services/test_receipts_lost.py"
MEMBERS = "services/test_receipts_members.py"
OUTAGES = "services/test_receipts_outages.py"
DEAD = "services/test_receipts_dead.py"

attempts = partial(Mutant, file="consumers/receipts/attempts.py", tests="services/test_attempts.py")
outcomes = partial(Mutant, file="consumers/receipts/outcomes.py", tests="services/test_outcomes.py")
arrivals = partial(Mutant, file="consumers/receipts/arrivals.py", tests=USUAL)
intake = partial(Mutant, file="consumers/receipts/intake.py", tests=f"{USUAL} {MEMBERS}")
membership = partial(Mutant, file="consumers/receipts/membership.py", tests=f"{MEMBERS} {OUTAGES}")
sweep = partial(Mutant, file="consumers/receipts/sweep.py", tests=f"{LOST} {OUTAGES}")
worker = partial(Mutant, file="consumers/receipts/worker.py", tests=f"{USUAL} {OUTAGES}")
verdict = partial(Mutant, file="consumers/receipts/verdict.py", tests="fast/test_receipt.py")
breaker = partial(
    Mutant, file="consumers/receipts/breaker.py", tests="fast/test_receipts_in_memory.py"
)
hand = partial(Mutant, file="consumers/receipts/hand.py", tests="fast/test_receipts_in_memory.py")
transfers = partial(
    Mutant, file="consumers/receipts/transfers.py", tests="services/test_courier.py"
)
webhook_id = partial(Mutant, file="rocket_rides/receipts.py", tests=USUAL)
dead = partial(Mutant, file="rocket_rides/receipts.py", tests=DEAD)

MUTANTS = [
    attempts(
        "a receipt is sent before its ride is committed to the log",
        "rides.id = ANY(%(rides)s) AND rides.id <= last_sent_id",
        "rides.id = ANY(%(rides)s)",
    ),
    attempts(
        "an attempt under way is no reason to wait",
        'AND ({is_due("kept.due_at")}\n',
        "AND (kept.due_at IS NOT NULL\n",
        tests="services/test_receipts.py::test_a_receiver_that_asks_for_time_gets_it",
    ),
    attempts(
        "a receipt waits until it is as late as a wrong clock said",
        " OR {due_at} > now() + make_interval(secs => {LONGEST_WAIT})",
        "",
        tests="services/test_receipts_lost.py::"
        "test_no_receipt_waits_until_it_is_as_late_as_a_wrong_clock_said",
    ),
    attempts(
        "the longest wait is shorter than what a receiver may ask for",
        "LONGEST_WAIT = 600.0",
        "LONGEST_WAIT = 250.0",
    ),
    attempts(
        "the longest wait is shorter than a lease",
        "LONGEST_WAIT = 600.0",
        "LONGEST_WAIT = 5.0",
    ),
    attempts(
        "who takes over what has had all its attempts is told to wait",
        """\
               coalesce({is_due("due_at")}
                        OR unfinished > 0 AND rides.id = ANY(%(taken_over)s), true) AS is_due,
""",
        """\
               coalesce({is_due("due_at")}, true) AS is_due,
""",
    ),
    attempts(
        "what a receiver has asked for is over for who takes it over",
        "OR unfinished > 0 AND rides.id = ANY(%(taken_over)s), true) AS is_due",
        "OR rides.id = ANY(%(taken_over)s), true) AS is_due",
    ),
    attempts(
        "who takes an entry over ignores what the receiver asked for",
        "OR kept.unfinished > 0 AND kept.ride_id = ANY(%(taken_over)s))",
        "OR kept.ride_id = ANY(%(taken_over)s))",
        tests="services/test_receipts.py::test_a_receiver_that_asks_for_time_gets_it",
    ),
    attempts(
        "one attempt more than there may be",
        "AND kept.attempts - kept.forgiven < %(most)s",
        "AND kept.attempts - kept.forgiven <= %(most)s",
    ),
    attempts(
        "attempts before a replay count",
        "AND kept.attempts - kept.forgiven < %(most)s",
        "AND kept.attempts < %(most)s",
        tests="services/test_receipts_dead.py::"
        "test_a_replay_is_delivered_and_keeps_what_was_before",
    ),
    attempts(
        "a suspected receipt is sent together with others",
        "AND (kept.unfinished < {SUSPECT} OR kept.ride_id = ANY(%(alone)s))\n",
        "",
    ),
    attempts(
        "an attempt is not known to be under way",
        "attempts = kept.attempts + 1, unfinished = kept.unfinished + 1",
        "attempts = kept.attempts + 1, unfinished = kept.unfinished",
    ),
    attempts(
        "what has an outcome is sent again",
        "WHERE (kept.outcome IS NULL OR kept.replay_at IS NOT NULL)\n          AND ({is_due",
        "WHERE true\n          AND ({is_due",
    ),
    attempts(
        "a ride that was lost counts as swept with each attempt",
        "WHERE is_first AND ride_id = ANY(%(lost)s)",
        "WHERE ride_id = ANY(%(lost)s)",
    ),
    outcomes(
        "dead replaces delivered",
        "outcome IS DISTINCT FROM 'delivered'\n",
        "true\n",
    ),
    outcomes(
        "the outcome of a ride of another history is written",
        "WHERE ended.webhook_id = {WEBHOOK_ID}",
        "WHERE {WEBHOOK_ID} IS NOT NULL",
    ),
    outcomes(
        "a refusal from before a replay undoes the replay",
        "OR forgiven = before AND (outcome",
        "OR (outcome",
    ),
    outcomes(
        "an attempt that nobody took counts",
        "greatest(attempts - (kind = 'away')::int, forgiven)",
        "greatest(attempts, forgiven)",
    ),
    outcomes(
        "a receipt is dead one attempt too late",
        "attempts - forgiven >= %(most)s)",
        "attempts - forgiven > %(most)s)",
    ),
    outcomes(
        "a receipt is dead at the first failure",
        "kind = 'retry' AND attempts",
        "kind = 'retry' OR attempts",
    ),
    outcomes(
        "an attempt whose end was written down stays under way",
        "            unfinished = 0,\n",
        "",
    ),
    outcomes(
        "a receipt that is delivered stays marked to be sent again",
        "WHEN {{is_dead}} THEN now() ELSE dead_at END,\n            replay_at = CASE WHEN kind <>"
        " 'delivered' AND NOT {{is_dead}} THEN replay_at END,",
        "WHEN {{is_dead}} THEN now() ELSE dead_at END,\n            replay_at = CASE WHEN"
        " NOT {{is_dead}} THEN replay_at END,",
    ),
    outcomes(
        "one outcome that Postgres refuses holds up the others",
        "except (psycopg.DataError, psycopg.IntegrityError) as error:",
        "except psycopg.errors.DivisionByZero as error:",
    ),
    outcomes(
        "an outcome that is written twice counts twice",
        "WHERE outcome IS NOT NULL AND NOT replay HAVING count(*) > 0",
        "WHERE outcome IS NOT NULL HAVING count(*) > 0",
    ),
    outcomes(
        "what the receiver asks for is not waited for",
        "return max(self.verdict.retry_after or 0, delay * random.uniform(0.5, 1))",
        "return delay * random.uniform(0.5, 1)",
        tests="fast/test_receipts_in_memory.py",
    ),
    outcomes(
        "the delay grows without an end",
        "min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** (self.number - 1))",
        "FIRST_DELAY * FACTOR ** (self.number - 1)",
        tests="fast/test_receipts_in_memory.py",
    ),
    arrivals(
        "an entry that is not committed yet is acknowledged",
        "arrived.held.append(entry)",
        "arrived.done.append(entry.redis_id)",
        tests="services/test_receipts.py::test_an_entry_is_news_held_or_done_with",
    ),
    arrivals(
        "the first ride after complete_to is done with",
        "elif record.id <= complete_to:",
        "elif record.id <= complete_to + 1:",
        tests="services/test_receipts.py::test_an_entry_is_news_held_or_done_with",
    ),
    arrivals(
        "rides of another database get receipts",
        "if not after < record.id <= upto:\n                arrived",
        "if record.id < 0:\n                arrived",
        tests="services/test_receipts.py::"
        "test_what_is_no_record_or_about_no_ride_of_ours_is_acknowledged_and_never_sent",
    ),
    arrivals(
        "what was sent is believed no further than the sequence stands",
        "self._terms.update(terms, max(last_drawn, last_sent))",
        "self._terms.update(terms, last_drawn)",
        tests="services/test_receipts.py::test_receipts_are_sent_while_the_sequence_is_set_back",
    ),
    arrivals(
        "another database's entry is where the unread ones of ours begin",
        "            if after < record.id <= upto:\n                return record.id\n",
        "            return record.id\n",
        tests="services/test_receipts_lost.py::test_what_is_before_a_foreign_entry_is_lost",
    ),
    intake(
        "what others have claimed stays in hand",
        "        done.given_up += self._hand.lose(lost, self._deliveries)\n",
        "",
        tests="services/test_receipts_members.py::"
        "test_a_worker_that_was_stopped_gives_up_what_others_have_claimed",
    ),
    intake(
        "what is done with is never acknowledged",
        "        self._group.ack(arrived.done)\n",
        "",
        tests="services/test_receipts.py::"
        "test_what_is_no_record_or_about_no_ride_of_ours_is_acknowledged_and_never_sent",
    ),
    intake(
        "the heartbeat forgets what is held",
        "entries = [*self._hand.entries, *(entry.redis_id for entry in self._held)]",
        "entries = [*self._hand.entries]",
        tests="services/test_receipts.py::test_an_entry_that_waits_for_the_commit_is_kept_alive",
    ),
    membership(
        "who has no lock for a moment is gone",
        "now - self._lockless[name] >= self.gone_after",
        "now - self._lockless[name] >= 0",
        tests="services/test_receipts_members.py::test_who_has_no_lock_for_a_moment_is_not_gone",
    ),
    membership(
        "a member that lives loses what it has under way",
        "idle = int(self.claim_after * 1000) if hangs else 0",
        "idle = 0",
        tests="services/test_receipts_members.py",
    ),
    membership(
        "a worker waits for what its former session had",
        "hangs = name != self._group.member and name not in gone",
        "hangs = name not in gone",
        tests="services/test_receipts_members.py::"
        "test_a_worker_goes_on_with_what_its_former_session_had",
    ),
    membership(
        "a former session's entries stay pending",
        "if name == self._group.member and pending <= len(in_hand):",
        "if name == self._group.member:",
        tests="services/test_receipts_members.py::"
        "test_a_worker_goes_on_with_what_its_former_session_had",
    ),
    membership(
        "names of members that are gone stay",
        "                    self._group.remove_member(name)\n",
        "                    pass\n",
        tests="services/test_receipts_members.py::"
        "test_names_of_members_do_not_leak_over_100_restarts",
    ),
    membership(
        "two processes of one name both work",
        "return taken",
        "return True",
        tests="services/test_receipts_members.py::"
        "test_a_second_process_of_one_name_stands_by_until_the_first_ends",
    ),
    sweep(
        "what is pending is looked at before what is unread",
        """\
            upto = min(last_sent, self._before_first_unread(last_sent))
            reached(Step.WHILE_SWEEPING)
            pending = self._pending()
""",
        """\
            pending = self._pending()
            reached(Step.WHILE_SWEEPING)
            upto = min(last_sent, self._before_first_unread(last_sent))
""",
        tests="services/test_receipts_lost.py::"
        "test_a_ride_that_is_read_between_two_looks_of_the_sweep_is_not_taken_for_lost",
    ),
    sweep(
        "a mend is undone by a sweep that is under way",
        "WHERE complete_to < %(upto)s AND mends = %(mends)s",
        "WHERE complete_to < %(upto)s AND %(mends)s::bigint IS NOT NULL",
        tests="services/test_receipts_lost.py::"
        "test_a_mended_ride_gets_its_receipt_wherever_the_sweep_is",
    ),
    sweep(
        "complete up to the first ride without an outcome",
        "complete = rides[0] - 1 if rides else looked",
        "complete = rides[0] if rides else looked",
        tests="services/test_receipts_lost.py::"
        "test_a_hole_in_the_numbers_and_a_ride_that_waits_hold_up_nobody",
    ),
    sweep(
        "what is pending is taken for lost",
        "if due and ride_id <= upto and ride_id not in pending",
        "if due and ride_id <= upto",
        tests="services/test_receipts_lost.py::"
        "test_a_ride_that_is_read_between_two_looks_of_the_sweep_is_not_taken_for_lost",
    ),
    sweep(
        "what another worker has under way is taken for lost",
        "if due and ride_id <= upto and ride_id not in pending",
        "if ride_id <= upto and ride_id not in pending",
        tests="services/test_receipts_lost.py::"
        "test_what_is_under_way_is_not_lost_before_its_lease_is_over",
    ),
    sweep(
        "the first unread ride is taken for lost",
        "return first - 1",
        "return first",
        tests="services/test_receipts_lost.py::test_what_is_unread_or_in_hand_is_never_swept",
    ),
    sweep(
        "what lies behind a page of foreign entries is taken for lost",
        "return last_sent if len(entries) < PAGE else 0",
        "return last_sent",
        tests="services/test_receipts_lost.py::"
        "test_what_is_behind_a_page_of_foreign_entries_is_not_lost",
    ),
    sweep(
        "two workers sweep at a time",
        "if not one_row(self._connection.execute(ALONE, [int(Lock.SWEEP)]))[0]:",
        "if False:",
        tests="services/test_receipts_lost.py::test_one_worker_sweeps_at_a_time",
    ),
    sweep(
        "what is to be sent anew is sent before it is due",
        'WHERE replay_at IS NOT NULL AND {is_due("due_at")}',
        "WHERE replay_at IS NOT NULL",
        tests="services/test_receipts_dead.py::test_a_replay_that_failed_waits_until_it_is_due",
    ),
    sweep(
        "a lost ride that nobody has attempted yet is not due",
        'SELECT id, coalesce({is_due("due_at")}, true), coal',
        'SELECT id, coalesce({is_due("due_at")}, false), coal',
    ),
    sweep(
        "a sweep remembers what it saw before a mend",
        "        if mends != self._seen.mends:\n",
        "        if self._seen.mends < 0:\n",
        tests="services/test_receipts_lost.py::"
        "test_a_mended_ride_gets_its_receipt_wherever_the_sweep_is",
    ),
    sweep(
        "of more lost rides than it remembers, the rest counts as looked at",
        "end if len(new) < most else max(new, default=after)",
        "end",
        tests="services/test_receipts_outages.py::"
        "test_more_lost_rides_than_a_worker_remembers_get_their_receipts",
    ),
    sweep(
        "what is lost waits for the suspects before it",
        "return suspects[:1] + others + suspects[1:]",
        "return sorted(suspects + others)",
    ),
    hand(
        "suspects fill the hand",
        "suspects = min(len(self._suspects), MOST)",
        "suspects = 0",
    ),
    intake(
        "while suspects wait for their turns, as much is taken over as ever",
        "elif self._hand.has_suspects:",
        "elif self._hand.room < 0:",
        tests=MEMBERS,
    ),
    worker(
        "a suspected receipt waits for the end of a backlog",
        "kept = int(may_suspect and room > 1 and self._hand.has_suspects)",
        "kept = 0",
        tests=MEMBERS,
    ),
    worker(
        "an entry is acknowledged before its outcome is written",
        "        reached(Step.BEFORE_SAVING)\n",
        "        self._group.ack(e for r in ended for e in self._hand._errands[r].entries)\n"
        "        reached(Step.BEFORE_SAVING)\n",
        tests="services/test_receipts_outages.py::"
        "test_no_entry_is_done_with_before_its_ride_has_an_outcome",
    ),
    worker(
        "a dead letter's entry stays pending",
        "self._settle([*saved.delivered, *saved.dead])",
        "self._settle(saved.delivered)",
        tests="services/test_receipts.py::"
        "test_a_receipt_is_dead_after_so_many_attempts_and_says_why",
    ),
    worker(
        "what is tried again is acknowledged",
        "            self._hand.postpone(ride_id, seconds)\n",
        "            self._settle([ride_id])\n",
        tests="services/test_receipts.py::test_what_is_to_be_tried_again_stays_pending_and_in_hand",
    ),
    worker(
        "a ride that kills its workers is tried for ever",
        """            case "exhausted":""",
        """            case "never":""",
        tests="services/test_receipts_members.py::"
        "test_a_receipt_that_kills_its_worker_each_time_is_dead_and_the_rest_goes_on",
    ),
    worker(
        "a worker that is to end forgets what was delivered",
        "        with suppress(redis.RedisError):\n            self._save(done)\n"
        "            self._group.remove",
        "        with suppress(redis.RedisError):\n            self._group.remove",
        tests="services/test_receipts_outages.py::"
        "test_a_worker_that_is_to_end_writes_down_what_has_ended_before",
    ),
    verdict("too early is a refusal", "frozenset({408, 425, 429})", "frozenset({408, 429})"),
    verdict("an error of the server is a refusal", "status >= 500 or", "status > 500 or"),
    verdict("a redirect is a delivery", "200 <= status < 300", "200 <= status < 400"),
    verdict(
        "a receiver may put a receipt off for ever",
        "min(float(answer.retry_after), LONGEST_RETRY_AFTER)",
        "float(answer.retry_after)",
    ),
    breaker("one failure more, and it pauses", "self._failures >= TRIP", "self._failures > TRIP"),
    breaker(
        "a refusal says that the receiver is away",
        "if verdict.kind in (Kind.DELIVERED, Kind.REFUSED):",
        "if verdict.kind is Kind.DELIVERED:",
    ),
    hand(
        "a ride that was given up and taken up again is attempted twice",
        "return errand if errand and errand.turn == turn else None",
        "return errand",
    ),
    hand(
        "a ride that the sweep found is given up with its entry",
        "if not errand.entries and not errand.swept and ride_id not in busy:",
        "if not errand.entries and ride_id not in busy:",
    ),
    transfers("a certificate for another host will do", "VERIFYHOST: 2", "VERIFYHOST: 0"),
    transfers("any certificate will do", "VERIFYPEER: 1", "VERIFYPEER: 0"),
    transfers("redirects are followed", "FOLLOWLOCATION: 0", "FOLLOWLOCATION: 1"),
    transfers(
        "an answer that broke off before its end is none",
        "in (pycurl.E_OK, pycurl.E_PARTIAL_FILE)",
        "in (pycurl.E_OK,)",
    ),
    webhook_id(
        "a ride that takes the number of a lost one takes its webhook-id, too",
        "salt, rides.id, distance, extract(epoch FROM created_at)",
        "salt, rides.id, distance",
        tests="services/test_receipts.py::"
        "test_rides_of_a_history_that_was_lost_are_told_apart_by_their_id",
    ),
    webhook_id(
        "webhook-ids of two databases are the same",
        "salt, rides.id, distance, extract(epoch FROM created_at)",
        "rides.id, distance, extract(epoch FROM created_at)",
        tests="services/test_receipts.py::test_databases_with_equal_rides_give_them_different_ids",
    ),
    dead(
        "who is dropped can be replayed",
        "dead_at IS NOT NULL AND replay_at IS NULL AND dropped_at IS NULL",
        "dead_at IS NOT NULL AND replay_at IS NULL",
    ),
    dead(
        "of two who replay one, both do",
        "dead_at IS NOT NULL AND replay_at IS NULL AND dropped_at IS NULL",
        "dead_at IS NOT NULL AND dropped_at IS NULL",
    ),
    dead(
        "a replay has no attempts left",
        "forgiven = attempts, unfinished = 0",
        "unfinished = 0",
        file="consumers/receipts/dead.py",
    ),
]
