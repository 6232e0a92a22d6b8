"""Mutants of what shows a fleet, each of which would mislead whoever looks; and about the demo."""

from functools import partial

from tests.mutants.mutant import Mutant

problems = partial(Mutant, file="watch/problems.py", tests="fast/test_problems.py")
absence = partial(Mutant, file="watch/absence.py", tests="fast/test_absence.py")
events = partial(Mutant, file="watch/events.py", tests="fast/test_watch_events.py")
history = partial(Mutant, file="watch/history.py", tests="fast/test_watch_charts.py")
facts = partial(Mutant, file="watch/facts.sql", tests="services/test_facts.py")
guards = partial(Mutant, file="watch/guards.py", tests="services/test_watch_hostile.py")
server = partial(Mutant, file="watch/server.py", tests="services/test_watch_server.py")
looks = partial(Mutant, file="watch/watching.py", tests="services/test_watch_looks.py")
outages = partial(Mutant, file="watch/gathering.py", tests="services/test_facts_outages.py")
metrics = partial(Mutant, file="watch/metrics.py", tests="fast/test_metrics.py")
status = partial(Mutant, file="watch/status.py", tests="services/test_status.py")
words = partial(Mutant, file="rocket_rides/words.py", tests="fast/test_words.py")
settings = partial(Mutant, file="rocket_rides/settings.py", tests="fast/test_settings.py")
health = partial(Mutant, file="rocket_rides/health.py", tests="services/test_health.py")
rights = partial(Mutant, file="migrations/rights.sql", tests="services/test_deployed.py")
users = partial(Mutant, file="deploy/redis/users.acl", tests="services/test_deployed.py")
demo = partial(Mutant, file="demo/page.py", tests="services/test_watch_breaking.py")

MUTANTS = [
    settings(
        "what Kubernetes says of a Service ends the API",
        'for name in ("API_PORT", "WATCH_PORT"):',
        'for name in ("WATCH_PORT",):',
    ),
    health("a process on another host is taken for the one here", "if not here:", "if True:"),
    health("whose activity is hidden is not at work", ")) IS NOT TRUE", ")) IS FALSE"),
    rights(
        "the streamer may change totals",
        "consumer_states, rating_sums, resets TO totals;",
        "consumer_states, rating_sums, resets TO totals, streamer;",
    ),
    users(
        "a total may append to the log",
        "+xread +xinfo|stream\n",
        "+xread +xinfo|stream +xadd\n",
    ),
    problems(
        "totals that disagree are well",
        "if agreement and not agreement.agree:",
        "if agreement and agreement.agree and False:",
    ),
    absence(
        "one look without somebody is enough",
        "LOOKS = 3 ",
        "LOOKS = 1 ",
    ),
    events(
        "what Postgres keeps is told at every look",
        "new = sorted(set(database.happened) - self._told,",
        "new = sorted(set(database.happened),",
    ),
    history("a rate takes a late look for one in time", " / (now.at - before.at)", " / BUCKET"),
    history(
        "a moment without Postgres is one without rides",
        "rates[begins] = None",
        "rates[begins] = 0",
    ),
    facts(
        "a receipt that waits for nobody waits for a person",
        "WHERE outcome = 'dead' AND dropped_at IS NULL AND replay_at IS NULL LIMIT",
        "WHERE outcome = 'dead' LIMIT",
        tests="services/test_facts_receipts.py",
    ),
    guards(
        "a page of another site may press the buttons",
        "if origin not in (None, f\"http://{headers.get('Host', '')}\"):",
        'if origin == "null":',
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
    demo(
        "a page in production has the demo's buttons",
        "        os.environ.get(NAME)\n        and config.embedded_postgres",
        "        config.embedded_postgres",
    ),
    Mutant(
        "a client that is not answered posts the ride once more",
        'key = {"Idempotency-Key": str(uuid.uuid4())}',
        'key = {"X-Key": str(uuid.uuid4())}',
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
    Mutant(
        "what was not installed to the end is there",
        "return is_ours and not _halves() and is_sound(",
        "return is_ours and is_sound(",
        file="demo/install/environment.py",
        tests="fleet/test_install.py",
    ),
    Mutant(
        "what .venv leads to is cleared",
        "if VENV.is_symlink():",
        "if False:",
        file="demo/install/environment.py",
        tests="fleet/test_install.py::test_what_a_link_leads_to_is_not_cleared",
    ),
]
