"""Lies about what shows a fleet, each of which would mislead whoever looks; and about the demo."""

from functools import partial

from tests.mutants.mutant import Mutant

verdict = partial(Mutant, file="watch/verdict.py", tests="fast/test_verdict.py")
absence = partial(Mutant, file="watch/absence.py", tests="fast/test_absence.py")
events = partial(Mutant, file="watch/events.py", tests="fast/test_watch_events.py")
history = partial(Mutant, file="watch/history.py", tests="fast/test_watch_page.py")
facts = partial(Mutant, file="watch/derived.py", tests="services/test_facts.py")
guards = partial(Mutant, file="watch/guards.py", tests="services/test_watch_hostile.py")
server = partial(Mutant, file="watch/server.py", tests="services/test_watch_server.py")
looks = partial(Mutant, file="watch/watching.py", tests="services/test_watch_looks.py")
outages = partial(Mutant, file="watch/gathering.py", tests="services/test_facts_outages.py")
metrics = partial(Mutant, file="watch/metrics.py", tests="fast/test_metrics.py")
status = partial(Mutant, file="watch/status.py", tests="services/test_status.py")
words = partial(Mutant, file="rocket_rides/words.py", tests="fast/test_words.py")
demo = partial(Mutant, file="demo/page.py", tests="services/test_watch_breaking.py")

MUTANTS = [
    verdict(
        "totals that disagree are well",
        "if agreement and not agreement.agree:",
        "if agreement and agreement.agree and False:",
    ),
    verdict(
        "a reader of ours that is late is well",
        "if reader.is_ours and (reader.seconds_behind or 0) > LATE",
        "if not reader.is_ours and (reader.seconds_behind or 0) > LATE",
    ),
    verdict(
        "who has just been killed is called dead",
        "if seconds >= absent}",
        "if seconds >= 0}",
    ),
    verdict(
        "a fleet without a streamer is well",
        "if STREAMER in gone:",
        "if STREAMER in gone and database.streamer.leads:",
    ),
    verdict(
        "a total that a reconciliation found wrong is well before it is repaired",
        "for name in run.unrepaired",
        "for name in ()",
    ),
    absence(
        "one look without somebody is enough",
        "LOOKS = 3 ",
        "LOOKS = 1 ",
    ),
    absence(
        "who comes back has been missing ever since",
        "before = {key: self._missing.get(key, first) for key in missing}",
        "before = {**self._missing, **{key: self._missing.get(key, first) for key in missing}}",
    ),
    events(
        "what Postgres keeps is told at every look",
        "new = sorted(set(database.happened) - self._told,",
        "new = sorted(set(database.happened),",
    ),
    events(
        "a server that is away is told of at every look",
        "if earlier.up and not now.up:",
        "if not now.up:",
    ),
    events(
        "a database that went back in time says nothing",
        "if now.rides.last_sent < before.rides.last_sent:",
        "if False:",
    ),
    events(
        "a counter that a restore took back tells of what it never healed",
        "if gaps := rise(before.gaps_healed, now.gaps_healed):",
        "if gaps := now.gaps_healed - before.gaps_healed:",
    ),
    history(
        "a moment without Postgres is one without rides",
        "rates[begins] = None",
        "rates[begins] = 0",
    ),
    facts(
        "a receipt that waits for nobody waits for a person",
        "SELECT FROM receipts WHERE {WAITS_FOR_A_DECISION} LIMIT",
        "SELECT FROM receipts WHERE dead_at IS NOT NULL LIMIT",
        tests="services/test_facts_receipts.py",
    ),
    facts(
        "a receipt whose worker was lost is in flight",
        "lease IS NOT NULL AND due_at > now()",
        "lease IS NOT NULL",
        file="rocket_rides/receipts.py",
        tests="services/test_facts_receipts.py",
    ),
    facts(
        "a dead letter that is sent again lags",
        "SELECT count(*) FILTER (WHERE outcome IS NULL) AS rides,",
        "SELECT count(*) AS rides,",
        file="rocket_rides/standings.py",
        tests="services/test_facts_receipts.py",
    ),
    facts(
        "a look at the queue passes over all that was ever due",
        "due_at BETWEEN {DUE_SINCE} AND now()",
        "due_at <= now()",
        file="rocket_rides/standings.py",
        tests="services/test_facts_cost.py",
    ),
    facts(
        "a reset that was applied is still to be",
        "asked WHERE status = 'pending'",
        "asked WHERE status <> 'superseded'",
    ),
    guards(
        "a page of another site may press the buttons",
        "if origin not in (None, f\"http://{headers.get('Host', '')}\"):",
        'if origin == "null":',
    ),
    guards(
        "a form of another site may press the buttons",
        'if not secrets.compare_digest(given.encode(errors="replace"), token.encode()):',
        "if not token:",
    ),
    guards(
        "any name that leads here is this machine",
        'return match is not None and is_loopback(match[1].lower().rstrip("."))',
        "return match is not None",
    ),
    guards(
        "whoever comes through a proxy may press the buttons",
        'name in _OF_PROXIES or name.startswith("x-forwarded-")',
        "name in _OF_PROXIES",
        tests="services/test_watch_server.py",
    ),
    server(
        "a page that everybody reaches has buttons",
        "self._buttons = buttons if self._is_local else None",
        "self._buttons = buttons",
        tests="services/test_watch_server.py services/test_watch_breaking.py",
    ),
    looks(
        "the servers are asked as often as somebody wants to know",
        "await asyncio.sleep(max(0.0, began + SEEN - loop.time()))",
        "await asyncio.sleep(0)",
    ),
    looks(
        "one look that fails is the last",
        '            return nothing(f"this look failed: {in_one_line(error)}")',
        "            raise",
    ),
    outages(
        "a server that hangs is waited for",
        "log = ask(self._to_redis, self._redis.ask, EACH)",
        "log = ask(self._to_redis, self._redis.ask, 60)",
    ),
    metrics(
        "a counter is told under a gauge's name",
        'if name.endswith("_total") else GaugeMetricFamily',
        "if not name else GaugeMetricFamily",
    ),
    status(
        "a probe says that all is well where something lags",
        'return 2 if "away" in kinds else 1 if kinds else 0',
        'return 2 if "away" in kinds else 0',
    ),
    status(
        "the status of a fleet that nobody runs is that all is well",
        "found = NO_FLEET if nobody else status(facts)",
        "found = status(facts)",
    ),
    demo(
        "a page in production has the demo's buttons",
        "        os.environ.get(NAME)\n        and config.embedded_postgres",
        "        config.embedded_postgres",
    ),
    demo(
        "two ways of breaking the fleet are under way at a time",
        "        if self._breakage.way:\n            return f",
        "        if False:\n            return f",
    ),
    Mutant(
        "a client that is not answered posts the ride once more",
        'headers={"Idempotency-Key": key}',
        'headers={"X-Key": key}',
        file="demo/simulator/client.py",
        tests="services/test_simulator.py",
    ),
    Mutant(
        "a killed parent leaves its servers behind",
        "preexec_fn=preexec_die_with_parent(orphan_signal)",
        "preexec_fn=None",
        file="demo/embedded/spawn.py",
        tests="fleet/test_servers_process.py",
    ),
    words(
        "no drift at all has a sign",
        'return f"{drift:+,.3f}".replace("-", MINUS) if drift else "0.000"',
        'return f"{drift:+,.3f}".replace("-", MINUS)',
    ),
    words(
        "what was counted up to a limit is said to be all there is",
        'return f"{most:,}+" if most and value >= most else',
        'return f"{most:,}+" if most and value > most else',
    ),
    words("minus one is a plural", "noun if value in (1, -1) else", "noun if value == 1 else"),
    Mutant(
        "what was installed from another lock is there",
        "return stamp.is_file() and stamp.read_text() == _digest(lock)",
        "return stamp.is_file()",
        file="demo/install/environment.py",
        tests="fleet/test_install.py",
    ),
    Mutant(
        "what a finished part has is installed again under a running fleet",
        "if name not in finished]",
        "]",
        file="demo/install/environment.py",
        tests="fleet/test_install.py",
    ),
]
