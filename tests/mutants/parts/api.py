"""Mutants of the API, and about what the schema itself refuses."""

from functools import partial

from tests.mutants.mutant import Mutant

booking = partial(Mutant, file="api/booking.py", tests="services/test_booking.py")
writing = partial(Mutant, file="api/writing.py", tests="services/test_booking.py")
parameters = partial(
    Mutant, file="api/parameters.py", tests="services/test_api.py services/test_hostile.py"
)
pruning = partial(Mutant, file="api/pruning.py", tests="services/test_pruning.py")
periods = partial(
    Mutant, file="api/periods.py", tests="fast/test_any_period.py services/test_hours.py"
)
feed = partial(Mutant, file="api/feed.py", tests="services/test_feed.py")
app = partial(Mutant, file="api/app.py", tests="services/test_api.py services/test_api_process.py")
standings = partial(
    Mutant, file="migrations/versions/0010_schema.sql", tests="services/test_lag.py"
)
schema = partial(Mutant, tests="services/test_schema.py")
readiness = partial(Mutant, file="api/readiness.py")
SESSIONS = "services/test_sessions_of_the_api.py::"

MUTANTS = [
    booking(
        "a key is answered whatever the distance is",
        "    if found.distance != distance:\n        raise KeyReused\n",
        "",
    ),
    writing(
        "a ride without a key is tried again when nobody knows whether it was taken",
        "        if not self._is_repeatable:\n"
        "            raise self._try_later(self._reason) from None\n",
        "",
    ),
    writing(
        "whatever is unique is taken for the key",
        "if (type(refused), refused.diag.constraint_name) != (errors.UniqueViolation, once):",
        "if False:",
        tests="services/test_refusals.py",
    ),
    booking(
        "a ride has no staged record",
        """\
SELECT :key, distance, id FROM ride
    )
    SELECT id, distance, stage(
        id, 'ride.create', jsonb_build_object('id', id, 'distance', distance),
        :traceparent, :tracestate
    )
""",
        """\
SELECT :key, distance, id FROM ride
    )
    SELECT id, distance, concat(CAST(:traceparent AS text), CAST(:tracestate AS text))
""",
        tests="services/test_booking.py::test_twenty_equal_requests_at_once_take_one_ride",
    ),
    booking(
        "a record is staged in a transaction of its own",
        "    taken = writing.run(connection, TAKE, values).one()\n",
        "    ride = 'INSERT INTO rides (distance) VALUES (:distance) RETURNING id, distance'\n"
        "    taken = connection.execute(text(ride), values).one()\n"
        "    record = 'INSERT INTO staged_log_records (id, type, data)'\n"
        '    data = f\'{{"id": {taken.id}, "distance": {taken.distance}}}\'\n'
        "    row = (taken.id, 'ride.create', data)\n"
        "    connection.exec_driver_sql(f'{record} VALUES (%s, %s, %s)', row)\n",
        tests="services/test_booking.py::test_a_ride_whose_record_cannot_be_staged_is_not_taken",
    ),
    writing(
        "a ride is answered whose wait for a standby was cancelled",
        "    if connection.info.get(NOT_REPLICATED):\n",
        "    if False:\n",
        tests="services/test_failover.py::"
        "test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it",
    ),
    standings(
        "a receipt that is delivered still lags",
        "WHERE ride_id >= (SELECT min(id) FROM newest)",
        "WHERE ride_id >= (SELECT min(id) FROM newest) AND outcome = 'dead'",
    ),
    booking(
        "nobody heeds that a wait for a standby was cancelled",
        "        session.add_notice_handler(heed)\n",
        "",
        file="api/database.py",
        tests="services/test_failover.py::"
        "test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it",
    ),
    parameters(
        "half a body is a body",
        "    if len(body) < length:\n",
        "    if False:\n",
        file="api/bodies.py",
        tests="services/test_api_process.py",
    ),
    pruning(
        "a key goes a moment before its time",
        "AND created_at < %(cutoff)s",
        "AND created_at < %(cutoff)s::timestamptz + interval '1 second'",
    ),
    periods(
        "the period that begins where the range ends is in it",
        "self._start(end - timedelta.resolution)",
        "self._start(end)",
    ),
    app(
        "a path with two slashes is redirected", "    app.url_map.merge_slashes = False", "    pass"
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
        "AS bigint CACHE 1;",
        "AS bigint CACHE 10;",
        file="unified_log/schema/1_log.sql",
        tests="services/test_repair.py::test_a_sequence_that_was_set_forward_is_no_fault",
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
        'return {"ride": _of_ride(ride_id, columns)}',
        'return {"ride": _of_ride(ride_id, columns) | {"distance": "5"}}',
        "api/views.py",
        "services/test_openapi.py",
    ),
    Mutant(
        "a cell takes keys of slots that it gives away",
        "stay = _slots_of(cell, now) - chosen",
        "stay = _slots_of(cell, now)",
        file="cells/router/move.py",
        tests="services/test_moves.py::test_what_the_router_had_sent_to_the_old_cell_takes_no_ride_there_later",
    ),
    Mutant(
        "a cell's fence lets every key through",
        "            OR coalesce(current_setting('rocket_rides.copies_keys'",
        "            OR key <> '' OR coalesce(current_setting('rocket_rides.copies_keys'",
        file="cells/router/keys.py",
        tests="services/test_moves.py::test_what_the_router_had_sent_to_the_old_cell_takes_no_ride_there_later",
    ),
    Mutant(
        "slots move to a cell whose API is down",
        "if owners - {target}:",
        "if not owners:",
        file="cells/router/move.py",
        tests="services/test_moves.py::test_an_api_or_a_router_that_is_away_is_noticed_before_anything_is_done",
    ),
    Mutant(
        "a key with another ride in the new cell is passed over",
        "if different := self",
        "if False and self",
        file="cells/router/keys.py",
        tests="services/test_moves.py::test_a_key_with_another_ride_in_the_new_cell_switches_nothing",
    ),
    Mutant(
        "what a restored cell has lost is copied from nobody",
        "chosen, _slots_of(cell, now)) for cell in others)",
        "chosen, now.keys()) for cell in others if _slots_of(cell, now) & chosen)",
        file="cells/router/move.py",
        tests="services/test_moves.py::test_a_cell_that_was_restored_gets_its_keys_and_its_fence_again",
    ),
    Mutant(
        "an old map gives slots back",
        "takes = (before & slots) | new",
        "takes = {*slots} | new",
        file="cells/router/keys.py",
        tests="services/test_moves.py::test_no_cell_takes_keys_of_slots_for_which_no_move_was_run",
    ),
    Mutant(
        "two moves run at once",
        "if not self._has_lock():",
        "if False:",
        file="cells/router/keys.py",
        tests="services/test_moves.py::test_of_two_moves_at_once_the_second_is_refused_on_whatever_host",
    ),
    Mutant(
        "a move overlooks the cell that has got its slots meanwhile",
        "if unknown := {*now.values()} - cells.keys():",
        "if unknown := set[int]():",
        file="cells/router/move.py",
        tests="services/test_moves.py::test_a_move_that_knows_no_cell_that_was_given_slots_meanwhile_is_refused",
    ),
    Mutant(
        "a key is answered with a ride that a restore has lost",
        "keys.forget_lost(cells)",
        "pass",
        file="cells/router/move.py",
        tests="services/test_moves.py::test_after_a_restore_no_key_is_answered_with_a_ride_that_is_lost",
    ),
    booking(
        "a ride that an earlier attempt may have taken is denied",
        "raise  # `Attempts` knows whether an earlier attempt may have taken it",
        'raise TryLater(refusal(refused), "ride", maybe_taken=False) from None',
        tests="services/test_booking.py::test_a_retry_that_is_refused_does_not_deny_it_either",
    ),
    Mutant(
        "a leader that hangs while it is sent rows leads for ever",
        "wait_event = 'ClientWrite'",
        "wait_event = 'ClientRead'",
        file="unified_log/standby.py",
        tests="services/test_leader.py::test_a_leader_that_hangs_while_it_is_sent_rows_is_ended_by_its_standby",
    ),
    Mutant(
        "a leader is ended before Postgres' own time-outs would end it",
        "secs => 2 * %s",
        "secs => %s",
        file="unified_log/standby.py",
        tests="services/test_leader.py::test_a_leader_that_hangs_while_it_is_sent_rows_is_ended_by_its_standby",
    ),
    Mutant(
        "what was refused for itself says that an outage is over",
        "elif self._said and status < 300:",
        "elif self._said and status < 500:",
        file="api/outages.py",
        tests="services/test_refusals.py::"
        "test_an_outage_is_logged_once_and_again_when_it_changes_or_comes_back",
    ),
    feed("the feed has what is not settled", " AND id <= last_sent\n", "\n"),
    feed("the feed is in no order", "ORDER BY id LIMIT :limit", "LIMIT :limit"),
    feed(
        "the feed goes from a full page to the end",
        "found.last if is_full else found.last_sent",
        "found.last_sent",
    ),
    feed(
        "the feed does not go on from an empty page",
        "found.last if is_full else found.last_sent",
        "found.last or after",
    ),
    feed("a cache keeps the feed's last page", "if is_full and asked.term", "if asked.term"),
    feed("a cache keeps a page of any history", "if is_full and asked.term", "if is_full"),
    feed(
        "the feed believes a term that it does not know",
        "            -1\n",
        "            last_sent\n",
    ),
    feed(
        "an earlier term goes on to where the newest begins",
        "SELECT min(after) FROM terms WHERE after > mine.after",
        "SELECT max(after) FROM terms WHERE after > mine.after",
    ),
    feed(
        "the feed conflicts with those who write",
        '    connection.execution_options(isolation_level="READ COMMITTED")\n',
        "",
        file="api/database.py",
    ),
    feed(
        "a policy hides records from the feed",
        "        connection.execute(ALL_OR_NONE)\n",
        "",
        tests="services/test_policies.py",
    ),
    feed(
        "caches keep that a reader is of another history",
        '    response.headers["Cache-Control"] = "no-store"  # caches may keep a 404 or a 410\n',
        "",
        file="api/problems.py",
    ),
    readiness(
        "whoever locks the table of another kind takes the API out of the balancer",
        "SELECT max(id) FROM rides",
        "SELECT max(id) FROM log_records",
        tests=SESSIONS + "test_rides_can_be_taken_while_somebody_locks_another_kinds_table",
    ),
    readiness(
        "whether rides can be taken conflicts with those who write",
        "with committed(connection):",
        "with connection.begin():",
        tests=SESSIONS + "test_who_looks_at_all_records_has_no_conflict_with_who_writes",
    ),
    readiness(
        "whoever shows the consumers conflicts with those who write",
        "with committed(connection):",
        "with connection.begin():",
        file="api/consumers.py",
        tests=SESSIONS + "test_who_looks_at_all_records_has_no_conflict_with_who_writes",
    ),
]
