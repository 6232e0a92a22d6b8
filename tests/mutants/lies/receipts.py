"""Lies about receipts: the inbox, the queue, the sweep, the courier, and what a person decides."""

from functools import partial

from tests.mutants.mutant import Mutant

TAKING = "services/queue/test_taking.py"
SAVING = "services/queue/test_saving.py"
GIVING_UP = "services/queue/test_giving_up.py"
SWEEPING = "services/queue/test_sweeping.py"
COURIER = "services/test_courier.py"
DELIVERY = "services/test_delivery.py"
USUAL = "services/test_receipts.py"
LOST = "services/test_receipts_lost.py"
MEMBERS = "services/test_receipts_members.py"
OUTAGES = "services/test_receipts_outages.py"
DEAD = "services/test_receipts_dead.py"
IN_MEMORY = "fast/test_receipts_in_memory.py"
ANY = "fast/test_any_receipt.py"

statements = partial(Mutant, file="consumers/receipts/statements.py")
taking = partial(statements, tests=TAKING)
saving = partial(statements, tests=SAVING)
giving_up = partial(statements, tests=GIVING_UP)
sweeping = partial(statements, tests=SWEEPING)
queue = partial(Mutant, file="consumers/receipts/queue.py", tests=TAKING)
inbox = partial(Mutant, file="consumers/receipts/inbox.py", tests=MEMBERS)
delivery = partial(Mutant, file="consumers/receipts/delivery.py", tests=DELIVERY)
upkeep = partial(Mutant, file="consumers/receipts/upkeep.py", tests=DELIVERY)
worker = partial(Mutant, file="consumers/receipts/worker.py", tests=OUTAGES)
courier = partial(Mutant, file="consumers/receipts/courier.py", tests=COURIER)
verdict = partial(Mutant, file="consumers/receipts/verdict.py", tests="fast/test_receipt.py")
breaker = partial(Mutant, file="consumers/receipts/breaker.py", tests=IN_MEMORY)
webhook_id = partial(Mutant, file="rocket_rides/receipts.py", tests=USUAL)
dead = partial(Mutant, file="rocket_rides/receipts.py", tests=DEAD)

MUTANTS = [
    # INBOX, and the loop that reads the log into it.
    taking(
        "who brings rides waits for others in any order",
        "SELECT id FROM rides WHERE id = ANY(%(rides)s) ORDER BY id\n        ON",
        "SELECT id FROM rides WHERE id = ANY(%(rides)s) ORDER BY id DESC\n        ON",
    ),
    taking(
        "the log may bring rides that there are not",
        "SELECT id FROM rides WHERE id = ANY(%(rides)s) ORDER BY id\n        ON",
        "SELECT id FROM unnest(%(rides)s::bigint[]) AS id ORDER BY id\n        ON",
    ),
    inbox(
        "an entry that is not committed yet is acknowledged, and its ride is no row",
        "if is_ours(record, bounds):",
        "if is_ours(record, bounds) and record.id <= bounds.last_sent:",
        tests="services/test_receipts.py::"
        "test_nothing_is_sent_before_the_streamer_has_committed_it",
    ),
    inbox(
        "rides of another database get receipts",
        "if is_ours(record, bounds):",
        "if record.id >= 0:",
        tests="services/test_receipts.py::"
        "test_what_is_no_record_or_about_no_ride_of_ours_is_acknowledged_and_never_sent",
    ),
    inbox(
        "what was sent is believed no further than the sequence stands",
        "max(last_drawn, last_sent)",
        "last_drawn",
        file="consumers/belief.py",
        tests="services/test_receipts.py::test_receipts_are_sent_while_the_sequence_is_set_back",
    ),
    inbox(
        "what is done with is never acknowledged",
        "        self._group.acknowledge([entry.redis_id for entry in entries])\n",
        "",
        tests="services/test_receipts.py::"
        "test_what_is_no_record_or_about_no_ride_of_ours_is_acknowledged_and_never_sent",
    ),
    inbox(
        "an entry is acknowledged before its ride is in the inbox",
        "        reached(Step.AFTER_READING)\n",
        "        self._group.acknowledge([entry.redis_id for entry in entries])\n"
        "        reached(Step.AFTER_READING)\n",
    ),
    inbox(
        "what a worker had read when it died is claimed by nobody",
        "found = self._group.take_over(BATCH, self._claim_after)",
        "found = self._group.read(0)",
    ),
    inbox(
        "who has just read something is taken for dead",
        "found = self._group.take_over(BATCH, self._claim_after)",
        "found = self._group.take_over(BATCH, 0)",
    ),
    inbox(
        "a worker waits for what its former session had read",
        "take_over(BATCH, 0, self._group.member)",
        "take_over(BATCH, self._claim_after, self._group.member)",
    ),
    inbox(
        "a former session's entries are like anybody's",
        "        if self._is_new:\n",
        "        if self._look_at < 0:\n",
    ),
    # TAKE and TAKE_QUARANTINED.
    taking(
        "a receipt is sent before its ride is committed to the log",
        "          AND ride_id <= (SELECT last_sent_id FROM streamer_state)\n"
        "        ORDER BY due_at LIMIT %(room)s",
        "        ORDER BY due_at LIMIT %(room)s",
    ),
    taking(
        "one that is quarantined is sent before its ride is committed to the log",
        "          AND ride_id <= (SELECT last_sent_id FROM streamer_state)\n"
        "        ORDER BY unfinished, due_at LIMIT",
        "        ORDER BY unfinished, due_at LIMIT",
    ),
    taking(
        "an attempt under way is no reason to wait",
        "AND due_at >= %(begin_at)s AND due_at <= now()",
        "AND due_at >= %(begin_at)s",
    ),
    taking(
        "a lease is over at once",
        "            lease = %(lease)s, due_at = now() + make_interval(secs => %(seconds)s),\n",
        "            lease = %(lease)s,\n",
    ),
    taking(
        "what is newest is taken first",
        "ORDER BY due_at LIMIT %(room)s",
        "ORDER BY due_at DESC LIMIT %(room)s",
    ),
    taking(
        "more is taken than there is room for",
        "LIMIT %(room)s - (SELECT count(*) FROM quarantined)",
        "LIMIT %(room)s",
    ),
    taking(
        "whoever takes waits for who takes at the same time",
        "(SELECT count(*) FROM quarantined)\n        FOR NO KEY UPDATE SKIP LOCKED",
        "(SELECT count(*) FROM quarantined)\n        FOR NO KEY UPDATE",
    ),
    taking(
        "one attempt more than there may be",
        """\
          AND attempts - excused < %(most)s
          AND ride_id <= (SELECT last_sent_id FROM streamer_state)
        ORDER BY due_at""",
        """\
          AND attempts - excused <= %(most)s
          AND ride_id <= (SELECT last_sent_id FROM streamer_state)
        ORDER BY due_at""",
    ),
    taking(
        "one attempt more than there may be for what is quarantined",
        """\
          AND attempts - excused < %(most)s
          AND ride_id <= (SELECT last_sent_id FROM streamer_state)
        ORDER BY unfinished""",
        """\
          AND attempts - excused <= %(most)s
          AND ride_id <= (SELECT last_sent_id FROM streamer_state)
        ORDER BY unfinished""",
    ),
    taking(
        "attempts before a replay count",
        """\
          AND attempts - excused < %(most)s
          AND ride_id <= (SELECT last_sent_id FROM streamer_state)
        ORDER BY due_at""",
        """\
          AND attempts < %(most)s
          AND ride_id <= (SELECT last_sent_id FROM streamer_state)
        ORDER BY due_at""",
    ),
    taking(
        "a quarantined receipt is sent together with others",
        "replay_at IS NOT NULL) AND unfinished < 2\n          AND due_at >= %(begin_at)s",
        "replay_at IS NOT NULL)\n          AND due_at >= %(begin_at)s",
    ),
    taking(
        "an attempt is not known to be under way",
        "unfinished = unfinished + 1,\n"
        "            lease = %(lease)s, due_at = now() + make_interval(secs => %(seconds)s),\n",
        "unfinished = unfinished,\n"
        "            lease = %(lease)s, due_at = now() + make_interval(secs => %(seconds)s),\n",
    ),
    taking(
        "what has an outcome is sent again",
        "WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished < 2\n"
        "          AND due_at >=",
        "WHERE unfinished < 2\n          AND due_at >=",
    ),
    taking(
        "what a receiver has asked for is over for what is quarantined",
        "AND (due_at <= now() OR due_at > now() + make_interval(secs => {LONGEST_WAIT}))\n"
        "          AND attempts - excused < %(most)s",
        "AND (due_at <= now() OR due_at > now())\n          AND attempts - excused < %(most)s",
    ),
    taking(
        "what is quarantined waits until it is as late as a wrong clock said",
        "AND (due_at <= now() OR due_at > now() + make_interval(secs => {LONGEST_WAIT}))\n"
        "          AND attempts - excused < %(most)s",
        "AND due_at <= now()\n          AND attempts - excused < %(most)s",
    ),
    taking(
        "what has had all its attempts waits until it is as late as a wrong clock said",
        "AND (due_at <= now() OR due_at > now() + make_interval(secs => {LONGEST_WAIT}))\n"
        "          AND (attempts - excused >= %(most)s",
        "AND due_at <= now()\n          AND (attempts - excused >= %(most)s",
        tests=GIVING_UP,
    ),
    taking(
        "what has lost the most workers comes first",
        "ORDER BY unfinished, due_at LIMIT",
        "ORDER BY unfinished DESC, due_at LIMIT",
    ),
    queue(
        "the deadline counts from whenever the statement was carried out",
        "deadline = time.monotonic() + self._lease",
        "deadline = time.monotonic() + 2 * self._lease",
    ),
    queue(
        "what a look has passed by is never looked at",
        'passed by."""\n        self._begin_at = ALL\n',
        'passed by."""\n',
    ),
    queue(
        "each look begins at the first row",
        "                self._begin_at = due_at\n",
        "                self._begin_at = ALL\n",
    ),
    queue(
        "two attempts have one lease",
        "lease = uuid4()",
        "lease = UUID(int=7)",
    ),
    # SAVE.
    saving(
        "dead replaces delivered",
        "WHERE receipts.ride_id = ended.ride_id AND outcome IS DISTINCT FROM 'delivered'\n",
        "WHERE receipts.ride_id = ended.ride_id\n",
    ),
    saving(
        "the outcome of a ride of another history is written",
        "AND ended.webhook_id = {WEBHOOK_ID}",
        "AND {WEBHOOK_ID} IS NOT NULL",
    ),
    saving(
        "whoever was superseded may say anything",
        "          AND (kind = 'delivered' OR receipts.lease = ended.lease)\n",
        "",
    ),
    saving(
        "a refusal from before a replay undoes the replay",
        "(kind = 'delivered' OR receipts.lease = ended.lease)",
        "(kind = 'delivered' OR coalesce(receipts.lease, ended.lease) = ended.lease)",
    ),
    saving(
        "whoever was superseded may not say that it was delivered",
        "(kind = 'delivered' OR receipts.lease = ended.lease)",
        "(receipts.lease = ended.lease)",
    ),
    saving(
        "an attempt that nobody took counts",
        "excused = excused + (kind IN ('away', 'stopped'))::int",
        "excused = excused",
    ),
    saving(
        "an attempt that was stopped counts",
        "excused = excused + (kind IN ('away', 'stopped'))::int",
        "excused = excused + (kind IN ('away'))::int",
    ),
    saving(
        "a receipt is dead one attempt too late",
        "attempts - excused >= %(most)s AS is_dead",
        "attempts - excused > %(most)s AS is_dead",
    ),
    saving(
        "a receipt is dead at the first failure",
        "kind = 'retry' AND attempts - excused >= %(most)s",
        "kind = 'retry' OR attempts - excused >= %(most)s",
    ),
    saving(
        "an attempt whose end was written down stays under way",
        "            unfinished = 0,\n            lease = NULL,\n",
        "            lease = NULL,\n",
    ),
    saving(
        "an end that is written down twice counts twice",
        "            unfinished = 0,\n            lease = NULL,\n",
        "            unfinished = 0,\n",
    ),
    giving_up(
        "a receipt that is delivered stays marked to be sent again",
        "replay_at = CASE WHEN kind <> 'delivered' AND NOT is_dead THEN replay_at END",
        "replay_at = CASE WHEN NOT is_dead THEN replay_at END",
    ),
    giving_up(
        "a replay that fails is dead at once",
        "replay_at = CASE WHEN kind <> 'delivered' AND NOT is_dead THEN replay_at END",
        "replay_at = NULL",
    ),
    saving(
        "what is to be tried again is due at once",
        "            due_at = now() + make_interval(secs => delay)\n",
        "            due_at = now()\n",
    ),
    giving_up(
        "what is to be sent anew is sent before it is due",
        "            due_at = now() + make_interval(secs => delay)\n",
        "            due_at = now() + CASE WHEN replay_at IS NULL THEN make_interval(secs => delay)"
        " ELSE '0' END\n",
    ),
    giving_up(
        "a dead letter that is replayed and fails counts again",
        "WHERE outcome IS NOT NULL AND NOT replay HAVING count(*) > 0",
        "WHERE outcome IS NOT NULL HAVING count(*) > 0",
    ),
    saving(
        "who saves waits for others in any order",
        "        ORDER BY receipts.ride_id FOR NO KEY UPDATE OF receipts\n",
        "        ORDER BY receipts.ride_id DESC FOR NO KEY UPDATE OF receipts\n",
    ),
    queue(
        "one outcome that Postgres refuses holds up the others",
        "except (psycopg.DataError, psycopg.IntegrityError, LockNotAvailable) as error:",
        "except psycopg.errors.DivisionByZero as error:",
        tests=SAVING,
    ),
    queue(
        "what the receiver asks for is not waited for",
        "return max(verdict.retry_after or 0, own * random.uniform(0.5, 1))",
        "return own * random.uniform(0.5, 1)",
        tests=ANY,
    ),
    queue(
        "the delay grows without an end",
        "min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** (number - 1))",
        "FIRST_DELAY * FACTOR ** (number - 1)",
        tests=ANY,
    ),
    # BURY and MAKE_DUE.
    giving_up(
        "what has had all its attempts is given up while the last one is under way",
        "AND (due_at <= now() OR due_at > now() + make_interval(secs => {LONGEST_WAIT}))\n"
        "          AND (attempts - excused >= %(most)s",
        "AND (attempts - excused >= %(most)s",
    ),
    giving_up(
        "what has no ride holds up complete_to for ever",
        "WHERE receipts.ride_id = exhausted.ride_id AND NOT has_ride\n",
        "WHERE receipts.ride_id = exhausted.ride_id AND NOT has_ride AND unfinished < 0\n",
    ),
    giving_up(
        "whoever gives up waits for others",
        "        ORDER BY ride_id FOR UPDATE SKIP LOCKED\n",
        "        ORDER BY ride_id FOR UPDATE\n",
    ),
    giving_up(
        "a receipt waits until it is as late as a wrong clock said",
        "          AND due_at > now() + make_interval(secs => {LONGEST_WAIT})\n"
        "        ORDER BY due_at DESC",
        "          AND due_at < '-infinity'\n        ORDER BY due_at DESC",
    ),
    giving_up(
        "a lease is over whenever somebody looks",
        "          AND due_at > now() + make_interval(secs => {LONGEST_WAIT})\n"
        "        ORDER BY due_at DESC",
        "          AND due_at > now()\n        ORDER BY due_at DESC",
    ),
    giving_up(
        "the longest wait is shorter than what a receiver may ask for",
        "LONGEST_WAIT = 600.0",
        "LONGEST_WAIT = 250.0",
    ),
    giving_up(
        "the longest wait is shorter than a lease",
        "LONGEST_WAIT = 600.0",
        "LONGEST_WAIT = 5.0",
    ),
    giving_up(
        "whoever makes due waits for others",
        "ORDER BY due_at DESC LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED",
        "ORDER BY due_at DESC LIMIT 1000",
    ),
    # SWEEP and COMPLETE.
    sweeping(
        "what the streamer has just sent is taken for lost",
        "CASE WHEN %(upto)s <= last_sent_id THEN %(upto)s ELSE 0 END AS upto",
        "last_sent_id AS upto",
    ),
    sweeping(
        "what the streamer has not committed is swept",
        "CASE WHEN %(upto)s <= last_sent_id THEN %(upto)s ELSE 0 END AS upto",
        "%(upto)s::bigint AS upto",
    ),
    sweeping(
        "the first ride after inbox_to is in the inbox",
        "WHERE id > (SELECT inbox_to FROM state) AND id",
        "WHERE id > (SELECT inbox_to FROM state) + 1 AND id",
    ),
    sweeping(
        "the first ride that is not looked at is taken for lost",
        "AND id <= (SELECT upto FROM state)\n",
        "AND id <= (SELECT upto FROM state) + 1\n",
    ),
    sweeping(
        "what lies behind a page of rides counts as looked at",
        "CASE WHEN count(*) = %(page)s THEN max(id) ELSE (SELECT upto FROM state) END AS upto",
        "(SELECT upto FROM state) AS upto",
    ),
    sweeping(
        "what the log has lost waits for some minutes",
        "        INSERT INTO receipts (ride_id)\n        SELECT id FROM page",
        "        INSERT INTO receipts (ride_id, due_at)\n"
        "        SELECT id, now() + interval '5 minutes' FROM page",
    ),
    sweeping(
        "what the log has brought counts as swept",
        "SELECT %(worker)s, count(*) FROM swept HAVING",
        "SELECT %(worker)s, count(*) FROM page HAVING",
    ),
    sweeping(
        "a repair is undone by a sweep that is under way",
        "WHERE receipts_state.set_backs = state.set_backs\n"
        "          AND receipts_state.inbox_to = state.inbox_to\n",
        "WHERE receipts_state.inbox_to = state.inbox_to\n",
    ),
    sweeping(
        "of two who sweep at once the second undoes what the first has done",
        "WHERE receipts_state.set_backs = state.set_backs\n"
        "          AND receipts_state.inbox_to = state.inbox_to\n",
        "WHERE receipts_state.set_backs = state.set_backs\n",
    ),
    sweeping(
        "complete up to the first ride without an outcome",
        "coalesce(min(ride_id) FILTER (WHERE outcome IS NULL) - 1,",
        "coalesce(min(ride_id) FILTER (WHERE outcome IS NULL),",
    ),
    sweeping(
        "a dead letter is not complete",
        "FILTER (WHERE outcome IS NULL)",
        "FILTER (WHERE outcome IS DISTINCT FROM 'delivered')",
    ),
    sweeping(
        "what lies behind a page of outcomes counts as complete",
        """\
                        CASE WHEN count(*) = %(page)s THEN max(ride_id)
                             ELSE (SELECT inbox_to FROM state) END) AS upto""",
        """\
                        (SELECT inbox_to FROM state)) AS upto""",
    ),
    sweeping(
        "a repair is undone by who calls all complete meanwhile",
        "WHERE receipts_state.set_backs = state.set_backs\n"
        "      AND receipts_state.complete_to = state.complete_to",
        "WHERE receipts_state.complete_to = state.complete_to",
    ),
    upkeep(
        "the sweep does not wait until the log has brought what was sent",
        "if at <= now - self._sweep_after]",
        "if at <= now]",
    ),
    upkeep(
        "a ride that kills its workers is never given up",
        "        done.dead |= await queue.bury()\n",
        "",
        tests="services/test_receipts_members.py::"
        "test_a_receipt_that_kills_its_worker_each_time_is_dead_and_the_rest_goes_on",
    ),
    # The loop that works off the queue.
    delivery(
        "as much is taken as if nothing was in flight",
        "free = self._concurrency - len(self.in_flight)",
        "free = self._concurrency",
    ),
    delivery(
        "what others may have taken since is sent all the same",
        "        if seconds > 0:\n",
        "        if seconds > -60:\n",
    ),
    delivery(
        "several that are quarantined are in flight at once",
        "quarantined=not any(attempt.is_quarantined for attempt in self.in_flight)",
        "quarantined=True",
    ),
    delivery(
        "a quarantined receipt waits for the end of a backlog",
        "quarantined=not any(attempt.is_quarantined for attempt in self.in_flight)",
        "quarantined=not self.in_flight",
    ),
    delivery(
        "what ended while Postgres was away is forgotten",
        "            self._ended += ended  # the next session writes it down\n",
        "            pass\n",
        tests="services/test_receipts.py::"
        "test_an_outage_of_our_own_makes_nothing_dead_and_repeats_nothing",
    ),
    delivery(
        "a worker that is to end says nothing of what it cancels",
        "        self._ended += [Ended(attempt, STOPPED) for attempt in self.cancel()]\n",
        "        self.cancel()\n",
    ),
    delivery(
        "a worker that is to end waits for nothing that is in flight",
        "while self.in_flight and (left := deadline - time.monotonic()) > 0:",
        "while self.in_flight and (left := deadline - time.monotonic()) > 60:",
    ),
    # The courier, its verdicts, and the breaker.
    courier(
        "a certificate for another host will do",
        "        return ssl.create_default_context(cafile=trusted)\n",
        "        context = ssl.create_default_context(cafile=trusted)\n"
        "        context.check_hostname = False\n"
        "        return context\n",
    ),
    courier("any certificate will do", "ssl=self._checked", "ssl=False"),
    courier("redirects are followed", "allow_redirects=False", "allow_redirects=True"),
    courier(
        "an answer that broke off before its end is none",
        "    except (TimeoutError, aiohttp.ClientError, OSError):\n        pass",
        "    except (TimeoutError, OSError):\n        pass",
    ),
    courier(
        "what has passed through a proxy is as good",
        "            auto_decompress=False,\n",
        "            auto_decompress=False,\n            trust_env=True,\n",
    ),
    courier(
        "bodies are unpacked",
        "            auto_decompress=False,\n",
        "",
    ),
    courier(
        "cookies come back",
        "            cookie_jar=aiohttp.DummyCookieJar(),\n",
        "            cookie_jar=aiohttp.CookieJar(unsafe=True),\n",
    ),
    courier(
        "an attempt that was made counts as if nobody had taken it",
        "Kind.RETRY if progress.sent else Kind.AWAY",
        "Kind.AWAY if progress.sent else Kind.AWAY",
    ),
    courier(
        "a receiver that is away is asked as if it had failed",
        "Kind.RETRY if progress.sent else Kind.AWAY",
        "Kind.RETRY if progress.sent else Kind.RETRY",
    ),
    courier(
        "whatever dies is sent again",
        "if not progress.reused or _has_begun(error):",
        "if _has_begun(error):",
    ),
    courier(
        "half an answer is none, and its receipt is sent again at once",
        "if not progress.reused or _has_begun(error):",
        "if not progress.reused:",
    ),
    courier(
        "a dead connection is the end of an attempt",
        "if not progress.reused or _has_begun(error):",
        "if True:",
    ),
    courier(
        "a body that does not end holds up an attempt",
        "async with asyncio.timeout(LONGEST_BODY):",
        "async with asyncio.timeout(60 * LONGEST_BODY):",
    ),
    courier(
        "who hangs or stands still has more time than others know of",
        "async with asyncio.timeout(seconds):",
        "async with asyncio.timeout(9 * seconds):",
    ),
    courier(
        "every attempt is signed with one time",
        "now = datetime.fromtimestamp(int(time.time()), UTC)",
        "now = datetime.fromtimestamp(1_000_000_000, UTC)",
    ),
    verdict("too early is a refusal", "frozenset({408, 425, 429})", "frozenset({408, 429})"),
    verdict("an error of the server is a refusal", "status >= 500 or", "status > 500 or"),
    verdict("a redirect is a delivery", "200 <= status < 300", "200 <= status < 400"),
    verdict(
        "a receiver may put a receipt off for ever",
        "min(retry_after, LONGEST_RETRY_AFTER)",
        "retry_after",
    ),
    verdict(
        "a time that is none ends the attempt with a traceback",
        "except (ValueError, OverflowError):",
        "except ValueError:",
        tests=ANY,
    ),
    breaker("one failure more, and it pauses", "self._failures >= TRIP", "self._failures > TRIP"),
    breaker(
        "a refusal says that the receiver is away",
        "if verdict.kind in (Kind.DELIVERED, Kind.REFUSED):",
        "if verdict.kind is Kind.DELIVERED:",
    ),
    sweeping(
        "who holds the row of the sweep holds up every worker",
        "        SELECT FROM receipts_state FOR NO KEY UPDATE SKIP LOCKED\n    ), moved AS (",
        "        SELECT FROM receipts_state FOR NO KEY UPDATE\n    ), moved AS (",
    ),
    worker(
        "a worker that is to end between two sessions forgets what has ended",
        "            if not self._delivery.is_done:",
        "            if False:",
    ),
    worker(
        "the loop that reads fails without a word",
        "said_elsewhere=(psycopg.OperationalError, Unavailable)",
        "said_elsewhere=(Exception,)",
    ),
    delivery(
        "the breaker is told nothing",
        "            self.breaker.note(verdict)\n",
        "",
        tests="services/test_receipts.py::"
        "test_a_receiver_that_is_down_for_long_makes_nothing_dead_and_is_asked_rarely",
    ),
    delivery(
        "what comes while receipts are taken is forgotten",
        "            self._send(attempts)\n",
        "            self._send(attempts)\n            self._look_at = math.inf\n",
    ),
    # What tells receipts apart, and what a person decides.
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
        "excused = attempts, unfinished = 0",
        "unfinished = 0",
        file="consumers/receipts/dead.py",
        tests=GIVING_UP,
    ),
    dead(
        "a replay goes on where the quarantine was",
        "excused = attempts, unfinished = 0",
        "excused = attempts",
        file="consumers/receipts/dead.py",
        tests=GIVING_UP,
    ),
    dead(
        "whoever replays waits for others in any order",
        "OR ride_id = ANY(%(rides)s)) ORDER BY ride_id\n",
        "OR ride_id = ANY(%(rides)s)) ORDER BY ride_id DESC\n",
        file="consumers/receipts/dead.py",
        tests=GIVING_UP,
    ),
]
