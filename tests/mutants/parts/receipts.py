"""Mutants of receipts: the inbox, the queue, the sweep, the courier, and what a person decides."""

from functools import partial

from tests.mutants.mutant import Mutant

TAKING = "services/queue/test_taking.py"
GIVING_UP = "services/queue/test_giving_up.py"
SWEEPING = "services/queue/test_sweeping.py"
COURIER = "services/test_courier.py"
DELIVERY = "services/test_delivery.py"
MEMBERS = "services/test_receipts_members.py"
OUTAGES = "services/test_receipts_outages.py"
DEAD = "services/test_receipts_dead.py"
IN_MEMORY = "fast/test_receipts_in_memory.py"

statements = partial(Mutant, file="consumers/receipts/statements.py")
taking = partial(statements, tests=TAKING)
sweeping = partial(statements, tests=SWEEPING)
queue = partial(Mutant, file="consumers/receipts/queue.py", tests=TAKING)
inbox = partial(Mutant, file="consumers/receipts/inbox.py", tests=MEMBERS)
delivery = partial(Mutant, file="consumers/receipts/delivery.py", tests=DELIVERY)
upkeep = partial(Mutant, file="consumers/receipts/upkeep.py", tests=DELIVERY)
worker = partial(Mutant, file="consumers/receipts/worker.py", tests=OUTAGES)
courier = partial(Mutant, file="consumers/receipts/courier.py", tests=COURIER)
verdict = partial(Mutant, file="consumers/receipts/verdict.py", tests="fast/test_receipt.py")
breaker = partial(Mutant, file="consumers/receipts/breaker.py", tests=IN_MEMORY)
refusals = partial(Mutant, file="consumers/receipts/refusals.py", tests="fast/test_refusals.py")
dead = partial(Mutant, file="consumers/receipts/dead.py", tests=DEAD)

MUTANTS = [
    Mutant(
        "a worker raises again what was set back",
        "SET inbox_to = least(inbox_to, ride_id - 1),\n        complete_to =",
        "SET complete_to =",
        "migrations/versions/0010_schema.sql",
        "services/test_readers_missing.py"
        "::test_who_stands_past_every_record_sent_is_found_until_that_is_put_right",
    ),
    # INBOX, and the loop that reads the log into it.
    taking(
        "who brings rides waits for others in any order",
        "USING (id) ORDER BY id\n",
        "USING (id) ORDER BY id DESC\n",
    ),
    taking(
        "the log may bring rides that there are not",
        "FROM rides JOIN unnest(",
        "FROM rides RIGHT JOIN unnest(",
    ),
    inbox(
        "an entry is acknowledged before its ride is in the inbox",
        "        bounds = self._terms.learn(",
        "        self.group.acknowledge([entry.redis_id for entry in entries])\n"
        "        bounds = self._terms.learn(",
    ),
    inbox(
        "what a worker had read when it died is claimed by nobody",
        "found = self.group.take_over(BATCH, self.claim_after)",
        "found = self.group.read(0)",
    ),
    inbox(
        "who has just read something is taken for dead",
        "found = self.group.take_over(BATCH, self.claim_after)",
        "found = self.group.take_over(BATCH, 0)",
    ),
    Mutant(
        "a receipt begins a trace of its own",
        "{self.parent[:36]}{secrets.token_hex(8)}",
        "00-{secrets.token_hex(16)}-{secrets.token_hex(8)}",
        file="unified_log/tracing.py",
        tests="services/test_traces.py",
    ),
    # TAKE.
    taking(
        "a receipt is sent before its ride is committed to the log",
        "          AND ride_id <="
        " (SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1)\n"
        "        ORDER BY due_at LIMIT %(room)s",
        "        ORDER BY due_at LIMIT %(room)s",
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
    queue(
        "the deadline counts from whenever the statement was carried out",
        "deadline = time.monotonic() + self.lease",
        "deadline = time.monotonic() + 2 * self.lease",
    ),
    taking(
        "to give up is an attempt",
        "attempts = attempts + (NOT is_exhausted)::int",
        "attempts = attempts + 1",
        tests=GIVING_UP,
    ),
    # SAVE.
    statements(
        "whoever holds one row holds up all that are saved with it",
        "FOR NO KEY UPDATE OF receipts SKIP LOCKED",
        "FOR NO KEY UPDATE OF receipts",
        tests="services/queue/test_saving.py",
    ),
    # SWEEP and COMPLETE.
    sweeping(
        "what the streamer has just sent is taken for lost",
        "CASE WHEN %(upto)s <= last_sent_id THEN %(upto)s ELSE 0 END AS upto",
        "last_sent_id AS upto",
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
    upkeep(
        "the sweep does not wait until the log has brought what was sent",
        "if at <= now - self.sweep_after]",
        "if at <= now]",
    ),
    # The loop that works off the queue.
    delivery(
        "as much is taken as if nothing was in flight",
        "return self.breaker.limit - len(self.in_flight)",
        "return self.breaker.limit",
    ),
    delivery(
        "a receipt that has had all its attempts is sent once more",
        "if attempt.is_exhausted:",
        "if False:",
        tests=MEMBERS,
    ),
    # The courier, its verdicts, and the breaker.
    courier(
        "who has hung sends after its deadline",
        "if time.monotonic() > sending.deadline:",
        "if False:",
    ),
    courier(
        "a certificate for another host will do",
        "        return ssl.create_default_context(cafile=trusted)\n",
        "        context = ssl.create_default_context(cafile=trusted)\n"
        "        context.check_hostname = False\n"
        "        return context\n",
    ),
    courier("redirects are followed", "allow_redirects=False", "allow_redirects=True"),
    courier("only the new secret signs", "in self._webhooks\n", "in self._webhooks[:1]\n"),
    verdict("too early is a refusal", "frozenset({408, 425, 429})", "frozenset({408, 429})"),
    courier(
        "a session is kept for ever",
        "self._clock() >= self._replace_at",
        "False",
        file="consumers/receipts/connections.py",
    ),
    courier(
        "interim answers are taken without end",
        "if next(heads) > MOST:",
        "if False:",
        file="consumers/receipts/interim.py",
    ),
    refusals("whoever is declined three times is refused", "and others_taken >= TAKEN", ""),
    refusals(
        "what was taken after an attempt began counts for it",
        "taken - known.taken",
        "self.taken - known.taken",
    ),
    refusals(
        "a receiver that takes few of them refuses the others",
        "and others_taken >= MOST_OF_THEM * others_declined",
        "",
    ),
    breaker("one failure more, and it pauses", "self._failures >= TRIP", "self._failures > TRIP"),
    worker(
        "a worker that is to end between two sessions forgets what has ended",
        "            if not self._delivery.is_done:",
        "            if False:",
    ),
    dead(
        "a replay has no attempts left",
        "due_at = now(), excused = attempts",
        "due_at = now()",
        tests=GIVING_UP,
    ),
]
