"""Lies about the API, and about what the schema itself refuses."""

from functools import partial

from tests.mutants.mutant import Mutant

booking = partial(Mutant, file="api/booking.py", tests="services/test_booking.py")
prepared = partial(Mutant, file="api/prepared.py", tests="services/test_refusals.py")
pool = partial(Mutant, file="api/pool.py", tests="services/test_booking.py")
parameters = partial(
    Mutant, file="api/parameters.py", tests="services/test_api.py services/test_hostile.py"
)
pruning = partial(Mutant, file="api/pruning.py", tests="services/test_pruning.py")
periods = partial(
    Mutant, file="api/periods.py", tests="fast/test_any_period.py services/test_hours.py"
)
lean = partial(Mutant, file="api/lean.py", tests="fast/test_lean.py")
app = partial(Mutant, file="api/app.py", tests="services/test_api.py services/test_api_process.py")
standings = partial(Mutant, file="rocket_rides/standings.py", tests="services/test_lag.py")
schema = partial(Mutant, tests="services/test_schema.py")

MUTANTS = [
    booking(
        "a key is answered whatever the distance is",
        "    if ride.distance != distance:\n        raise KeyReused\n",
        "",
    ),
    booking(
        "a ride without a key is tried again when nobody knows whether it was taken",
        "            if key is None:\n                break\n",
        "",
    ),
    booking(
        "whatever is unique is taken for the key",
        "if refused.diag.constraint_name != KEY_CONSTRAINT:",
        "if False:",
        tests="services/test_refusals.py",
    ),
    booking(
        "a serialization failure is told to the client",
        "CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)",
        "CONFLICTS = (psycopg.errors.DeadlockDetected,)",
    ),
    booking(
        "a deadlock is told to the client",
        "CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)",
        "CONFLICTS = (psycopg.errors.SerializationFailure,)",
    ),
    booking(
        "what an earlier request may have done is denied",
        "maybe_taken=True) from None  # by",
        "maybe_taken=False) from None  # by",
        tests="services/test_refusals.py services/test_booking.py",
    ),
    booking(
        "what the first try may have done is denied when the second fails",
        "raise TryLater(refusal(error), maybe_taken) from None",
        "raise TryLater(refusal(error), False) from None",
    ),
    booking(
        "a lost connection is one that did nothing",
        'reason, maybe_taken = "the connection to the database was lost", True',
        'reason, maybe_taken = "the connection to the database was lost", False',
    ),
    booking(
        "a repeated key is not told from a new one",
        "return ride._replace(replayed=True)",
        "return ride",
    ),
    booking(
        "a ride has no staged record",
        "jsonb_build_object('id', id, 'distance', distance) FROM ride",
        "jsonb_build_object('id', id, 'distance', distance) FROM ride WHERE false",
        tests="services/test_booking.py::test_twenty_equal_requests_at_once_take_one_ride",
    ),
    booking(
        "the staged record has not the ride's distance",
        "jsonb_build_object('id', id, 'distance', distance) FROM ride",
        "jsonb_build_object('id', id, 'distance', round(distance)) FROM ride",
        tests="services/test_api.py services/test_booking.py services/test_outside_reader.py",
    ),
    booking(
        "a repeated key is answered before a standby has its ride",
        ", pg_logical_emit_message(true, 'replay', '')",
        "",
        tests="services/test_failover.py",
    ),
    booking(
        "who waits for the key's first request says that there is no ride",
        'waited_for_key = KEYS in (refused.diag.context or "")',
        "waited_for_key = False",
        tests="services/test_failover.py::"
        "test_a_retry_beside_a_request_that_waits_does_not_say_that_there_is_no_ride",
    ),
    booking(
        "who waits for any lock says that there may be a ride",
        'waited_for_key = KEYS in (refused.diag.context or "")',
        "waited_for_key = True",
    ),
    prepared(
        "a ride is answered whose wait for a standby was cancelled",
        "        if connection in _not_replicated:\n",
        "        if False:\n",
        tests="services/test_failover.py::"
        "test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it",
    ),
    prepared(
        "a ride whose wait for a standby was cancelled was not taken",
        "            connection.close()\n            raise psycopg.Op",
        "            raise psycopg.Op",
        tests="services/test_failover.py::"
        "test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it",
    ),
    standings(
        "a receipt that is delivered still lags",
        "WHERE ride_id >= (SELECT min(id) FROM newest)",
        "WHERE ride_id >= (SELECT min(id) FROM newest) AND outcome = 'dead'",
    ),
    pool(
        "nobody heeds that a wait for a standby was cancelled",
        "        heed_notices(connection)\n",
        "",
        tests="services/test_failover.py::"
        "test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it",
    ),
    pool(
        "rides are taken READ COMMITTED",
        '"default_transaction_isolation": "serializable"',
        '"default_transaction_isolation": "read committed"',
    ),
    pool(
        "a request may wait for a lock for as long as it likes",
        '"lock_timeout": "400ms"',
        '"lock_timeout": "0"',
    ),
    parameters(
        "half a body is a body",
        "    if len(body) < length:\n",
        "    if False:\n",
        tests="services/test_api_process.py",
    ),
    parameters(
        "of two distances the first counts",
        "    if len(given) > 1:\n",
        "    if False:\n",
    ),
    parameters(
        "JSON numbers go through binary floats",
        "            parse_float=_number,\n",
        "            parse_float=lambda text: Decimal(float(text)),\n",
    ),
    parameters("a key may have a comma", r"[\x21-\x2b\x2d-\x7e]", r"[\x21-\x7e]"),
    parameters(
        "a body without an end is taken",
        '    if "HTTP_TRANSFER_ENCODING" in environ:\n',
        "    if False:\n",
    ),
    parameters(
        "a body may be of any length",
        "    if length > BODY_LIMIT:\n",
        "    if False:\n",
    ),
    pruning(
        "a key goes a moment before its time",
        "AND created_at < %(cutoff)s",
        "AND created_at < %(cutoff)s::timestamptz + interval '1 second'",
    ),
    pruning(
        "a key goes at the very moment of its time",
        "AND created_at < %(cutoff)s",
        "AND created_at <= %(cutoff)s",
    ),
    pruning(
        "the first row of the next range is visited, too",
        "ctid < %(behind)s::tid",
        "ctid <= %(behind)s::tid",
    ),
    pruning(
        "the last range is not visited",
        "for first in range(0, blocks, BLOCKS_AT_A_TIME):",
        "for first in range(0, blocks - BLOCKS_AT_A_TIME, BLOCKS_AT_A_TIME):",
    ),
    pruning(
        "two workers prune at a time",
        "if not try_lock(connection, Lock.PRUNING):",
        "if False:",
    ),
    pruning(
        "pruning is SERIALIZABLE",
        'SESSION = {"lock_timeout": "1s"}',
        'SESSION = {"lock_timeout": "1s", "default_transaction_isolation": "serializable"}',
    ),
    periods(
        "the period that begins where the range ends is in it",
        "self._start(end - timedelta.resolution)",
        "self._start(end)",
    ),
    periods(
        "the first minute of the next period is in this one",
        "AND minute < %(until)s",
        "AND minute <= %(until)s",
    ),
    periods(
        "the longest range is refused",
        "if end - start > LONGEST:",
        "if end - start >= LONGEST:",
    ),
    periods(
        "a minute that has lost its rides makes a period",
        "AND rides > 0 GROUP BY 1",
        "GROUP BY 1",
        explained="the answer leaves out periods without rides, as well",
    ),
    lean(
        "an answer to HEAD has a body",
        'return [] if environ["REQUEST_METHOD"] == "HEAD" else [self.get_data()]',
        "return [self.get_data()]",
    ),
    lean("a decimal is a string", 'decimal_format="number"', 'decimal_format="string"'),
    lean(
        "only one host is known",
        'MapAdapter(self.url_map, "", "/", None, "http"',
        'MapAdapter(self.url_map, "localhost", "/", None, "http"',
    ),
    app(
        "a path with two slashes is redirected", "    app.url_map.merge_slashes = False", "    pass"
    ),
    app("digits of any script name a ride", 'regex = "[0-9]+"', 'regex = "[^/]+"'),
    app("a refusal is Flask's own page", "    answer_errors(app)\n", ""),
    app(
        "nobody logs why the API refuses",
        "    app.after_request(Outages().note)\n",
        "",
        tests="services/test_refusals.py",
    ),
    app(
        "who is refused before the body is not told that the connection ends",
        "if has_unread_body(environ):",
        "if False:",
        file="api/lean.py",
        tests="services/test_hostile.py",
    ),
    app(
        "Flask answers OPTIONS by itself",
        "    app.config.update(PROVIDE_AUTOMATIC_OPTIONS=False)\n",
        "",
    ),
    app(
        "who is refused for now is not told when to come back",
        '        response.headers["Retry-After"] = RETRY_AFTER\n',
        "        pass\n",
        file="api/problems.py",
        tests="services/test_refusals.py services/test_api.py services/test_openapi.py",
    ),
    schema(
        "a session caches numbers",
        "CACHE 1) PRIMARY KEY",
        "CACHE 10) PRIMARY KEY",
        file="migrations/versions/rides.sql",
    ),
    schema(
        "a total may be NaN",
        "CONSTRAINT consumer_states_total_distance\n"
        "        CHECK (total_distance >= 0 AND total_distance <> 'NaN')",
        "CONSTRAINT consumer_states_total_distance\n        CHECK (total_distance >= 0)",
        file="migrations/versions/0010_schema.sql",
    ),
    schema(
        "a ride of nothing is a ride",
        "rides_distance_in_range CHECK (distance > 0 AND",
        "rides_distance_in_range CHECK (distance >= 0 AND",
        file="migrations/versions/rides.sql",
    ),
    Mutant(
        "a client that is silent is waited for",
        "        self._last_cut = time.monotonic()\n",
        "        return\n        self._last_cut = time.monotonic()\n",
        "api/slow_clients.py",
        "services/test_hostile.py",
    ),
    Mutant(
        "a ride is not as /openapi.json describes it",
        'return {"ride": rows[0]}',
        'return {"ride": {**rows[0], "distance": str(rows[0]["distance"])}}',
        "api/views.py",
        "services/test_openapi.py",
    ),
]
