"""Mutants of what a reader does with a record that is refused, of healing, and of recounting."""

from functools import partial

from tests.mutants.mutant import Mutant

HELD, HEALING = "services/test_held_out.py::", "services/test_healing.py::"
RETRIES = "services/test_retries.py::"
STATES, MISTAKEN = "services/test_states.py::", "services/test_mistaken_handlers.py::"
held_out = partial(
    Mutant, file="unified_log/readers/held_out.py",
    tests=HELD + "test_what_the_record_is_to_blame_for_holds_it_out",
)  # fmt: skip
taking = partial(
    Mutant, file="unified_log/readers/taking.py",
    tests=HELD + "test_only_what_is_refused_is_held_out",
)  # fmt: skip
reader = partial(
    Mutant, file="unified_log/readers/reader.py",
    tests=HEALING + "test_a_piece_is_never_more_than_a_page",
)  # fmt: skip
healing = partial(
    Mutant, file="unified_log/readers/healing.py",
    tests=HEALING + "test_what_the_log_lacks_comes_from_the_view_in_order_and_once",
)  # fmt: skip
handler = partial(
    Mutant, file="unified_log/readers/handler.py",
    tests=HEALING + "test_a_recount_starts_anew_and_counts_nothing_as_healed",
)  # fmt: skip
checkpoint = partial(Mutant, file="unified_log/readers/checkpoint.py")
states = partial(
    Mutant, file="unified_log/readers/states.py",
    tests=STATES + "test_a_state_that_would_outlive_its_checkpoint_is_refused_at_the_first_start",
)  # fmt: skip

CLASSES = 'CLASSES = ("20", "21", "22", "23", "27", "44", "54")'

MUTANTS = [
    held_out(
        "a value that does not fit stops the reader", CLASSES, CLASSES.replace('"22"', '"no"')
    ),
    held_out("a constraint stops the reader", CLASSES, CLASSES.replace('"23"', '"no"')),
    held_out("a limit of the server stops the reader", CLASSES, CLASSES.replace('"54"', '"no"')),
    held_out("what a trigger raises stops the reader", " or OWN.match(state))", ")"),
    held_out(
        "an outage of Postgres' own passes for a code of the shop's",
        "(?!72|F0|HV|XX)",
        "",
        tests=HELD + "test_an_outage_holds_nothing_out",
    ),
    held_out(
        "an outage holds a record out",
        "if state and (state[:2] in CLASSES or OWN.match(state)):",
        "if state:",
        tests=HELD + "test_an_outage_holds_nothing_out",
    ),
    held_out(
        "any error of Python's holds a record out",
        "    if isinstance(error, RecordRefused):",
        "    if not isinstance(error, psycopg.Error):",
        tests=HELD + "test_an_error_of_pythons_holds_nothing_out",
    ),
    held_out(
        "what can't be sent stops the reader",
        "if state is None and isinstance(error, psycopg.DataError):",
        "if False:",
        tests=HELD + "test_a_text_that_cannot_be_sent_holds_its_record_out",
    ),
    held_out(
        "eleven in a row are held out",
        "if in_a_row >= MOST_IN_A_ROW:",
        "if in_a_row > MOST_IN_A_ROW:",
        tests=HELD + "test_after_ten_in_a_row_the_reader_stands_still",
    ),
    held_out(
        "one more is held out than a hundred",
        "elif undecided >= MOST_UNDECIDED:",
        "elif undecided > MOST_UNDECIDED:",
        tests=HELD + "test_with_a_hundred_undecided_the_reader_stands_still",
    ),
    held_out(
        "what was dropped is still to be decided about",
        " AND dropped_at IS NULL\n",
        "\n",
        tests=HELD + "test_with_a_hundred_undecided_the_reader_stands_still",
    ),
    checkpoint(
        "refusals with others between them are in a row",
        "%(held_out)s + CASE WHEN %(taken)s + %(records)s > 0 THEN 0",
        "%(held_out)s + CASE WHEN %(taken)s + %(records)s < 0 THEN 0",
        tests=HELD + "test_only_what_is_refused_is_held_out",
    ),
    checkpoint(
        "what SQL heals ends no row of refusals",
        "CASE WHEN %(taken)s + %(records)s > 0 THEN 0",
        "CASE WHEN %(taken)s > 0 THEN 0",
        tests=HELD + "test_what_sql_heals_ends_a_row_of_refusals",
    ),
    taking(
        "a whole batch is held out for one record",
        "            if len(items) > 1 or unseen:\n",
        "            if unseen:\n",
    ),
    taking(
        "a record is passed, and nobody says that it is held out",
        "                self._held_out.keep(held_out)\n",
        "                pass\n",
    ),
    taking(
        "the handler remembers what was refused",
        "            self._reload()\n            if self.at != before:",
        "            if self.at != before:",
        tests=HELD + "test_what_the_record_is_to_blame_for_holds_it_out",
    ),
    taking(
        "a batch that another process has taken goes on being looked through",
        "            if self.at != before:  #",
        "            if False:  #",
        tests=HELD + "test_what_another_process_took_meanwhile_is_not_held_out",
    ),
    held_out(
        "those that were dropped are in the row, too",
        "SELECT least(refusals_in_a_row, undecided), undecided",
        "SELECT refusals_in_a_row, undecided",
        tests=HELD + "test_a_reader_that_stands_still_goes_on_once_a_person_has_decided",
    ),
    checkpoint(
        "a process passes what another one handles",
        "\n      AND types = %(types)s\n",
        "\n",
        tests=HEALING + "test_an_older_process_passes_nothing_that_a_newer_one_handles",
    ),
    checkpoint(
        "a process recounts without what another one handles",
        "        if types != self._types:",
        "        if False:",
        tests=HEALING + "test_an_older_process_passes_nothing_that_a_newer_one_handles",
    ),
    taking(
        "what somebody wrote into Redis holds a record out",
        "            if not (is_fresh or missing):  # it came from Redis",
        "            if False:",
        tests=HELD + "test_what_comes_from_redis_is_taken_from_the_view_before_it_is_held_out",
    ),
    taking(
        "a record that was tried again counts with the next retry, too",
        "if not self._held_out.counted(item.position):",
        "if False:",
        tests=RETRIES + "test_a_retry_counts_it_once_and_out_of_order",
    ),
    held_out(
        "a retry counts what a reset has counted meanwhile",
        "[*self._who, position]).rowcount == 1",
        "[*self._who, position]).rowcount < 2",
        tests=RETRIES + "test_a_retry_that_a_reset_has_overtaken_counts_nothing",
    ),
    taking(
        "what was met before counts as healed again",
        "        if gap.upto <= self.checkpoint.furthest:\n            return None\n",
        "",
        tests=HEALING + "test_a_recount_starts_anew_and_counts_nothing_as_healed",
    ),
    Mutant(
        "a reset leaves what was held out to a retry",
        '    connection.execute(TAKE_BACK, ["total", name])  # the sum of all rides has them\n',
        "",
        "consumers/totals/reset.py",
        RETRIES + "test_a_reset_takes_back_what_was_held_out",
    ),
    handler(
        "a state of two rows is written in both",
        "if found.rowcount != 1:",
        "if False:",
        tests=STATES + "test_a_state_is_one_row",
    ),
    Mutant(
        "a take that never runs is let in",
        "if hasattr(Handler, name) and _runs_later(method):",
        "if False:",
        file="unified_log/readers/declared.py",
        tests="fast/test_declared.py::test_a_class_that_is_no_handler_is_refused_in_one_sentence",
    ),
    Mutant(
        "what parses and never runs is let in",
        "        if _runs_later(parse):",
        "        if False:",
        file="unified_log/readers/declared.py",
        tests="fast/test_declared.py::test_a_class_that_is_no_handler_is_refused_in_one_sentence",
    ),
    handler(
        "a recount by SQL leaves what was held out to a retry",
        "            self.connection.execute(TAKE_BACK, [self.KIND, self.name])\n",
        "",
        tests=RETRIES + "test_a_recount_by_sql_takes_back_what_was_held_out",
    ),
    handler(
        "a retry past the checkpoint is waited for",
        "              AND retry AND held.position <= reader.position",
        "              AND retry",
        tests=RETRIES + "test_what_is_asked_for_past_the_checkpoint_holds_up_nothing",
    ),
    handler(
        "a recount takes in again what is there",
        "SET position = cell_start(), furthest",
        "SET furthest",
    ),
    handler(
        "a recount forgets how far it was",
        "furthest = greatest(furthest, position)",
        "furthest = furthest",
    ),
    states(
        "a state may keep its rows when the checkpoint goes",
        "WHERE contype = 'f' AND confdeltype = 'c'",
        "WHERE contype = 'f'",
    ),
    states(
        "only what refers to the checkpoint itself goes with it",
        "JOIN going ON confrelid = going.id\n",
        "JOIN going ON confrelid = going.id AND confrelid = 'readers'::regclass\n",
        tests=STATES + "test_one_that_goes_with_it_begins_and_begins_anew",
    ),
    handler(
        "what the checkpoint leaves is taken for a state",
        "written(self.connection) - before",
        "written(self.connection)",
        tests=STATES + "test_what_else_is_written_at_a_recount_is_nobodys_state",
    ),
    taking(
        "nobody learns at which records a handler fails",
        "                _say_what_it_took(items, error)\n",
        "",
        tests=MISTAKEN + "test_an_error_of_pythons_ends_the_process_and_names_the_records",
    ),
    checkpoint(
        "records of a new type that lie before the checkpoint are missed",
        "AND NOT %(types)s::text[] <@ types)",
        "AND false)",
        tests=HEALING + "test_a_reader_of_more_types_than_before_recounts",
    ),
    Mutant(
        "the first of two people has the last word",
        "    connection.execute(LOCK, vars(given))",
        "    vars(given)",
        file="unified_log/held_out.py",
        tests="services/test_held_out_command.py::test_of_two_people_the_second_has_the_last_word",
    ),
    Mutant(
        "a reader that recounts is taken for wrong",
        "return self.kind == READER_RECOUNTS",
        "return False",
        file="analytics/findings.py",
        tests="fast/test_proofs_told.py::test_a_total_that_recounts_is_not_judged_and_all_else_is",
    ),
    Mutant(
        "each recount is the one of long ago",
        "{reader.name} {reader.recounted}",
        "{reader.name}",
        file="analytics/readers.py",
        tests="services/test_readers_missing.py::test_another_recount_hours_later_is_another",
    ),
    reader(
        "a gap of any length is healed in one transaction",
        "        if len(missing) >= page:",
        "        if False:",
    ),
    reader(
        "what is healed, and what is read, is more than a batch",
        "min(self._taking.most or len(items), self._batch_size)",
        "self._taking.most or len(items)",
        tests=HEALING + "test_what_is_healed_and_read_is_no_more_than_a_batch",
    ),
    taking(
        "a batch for which there is no time is taken again and again",
        "                    self._limit.exceeded(len(items))\n",
        "                    pass\n",
        tests="services/test_process.py::"
        "test_a_consumer_that_takes_too_long_takes_fewer_from_then_on",
    ),
    Mutant(
        "a batch that was too large is tried in every session",
        "handler(connection, name), limit=limit)",
        "handler(connection, name), config.batch_size)",
        file="unified_log/readers/running.py",
        tests="services/test_process.py::"
        "test_a_consumer_that_takes_too_long_takes_fewer_from_then_on",
    ),
    reader(
        "what is healed goes past what was sent",
        "batch.close_gap(min(rest.upto, bounds.last_sent))",
        "batch.close_gap(rest.upto)",
        tests=HEALING + "test_nothing_is_healed_past_what_was_sent",
    ),
    healing(
        "what was healed comes after what was read",
        'return [*merge(read, healed, key=attrgetter("position"))] if healed else read',
        "return [*read, *healed]",
    ),
    healing(
        "a gap ends before its last record",
        "WHERE id > %s AND id <= %s AND type",
        "WHERE id > %s AND id < %s AND type",
    ),
    healing(
        "a page of a gap sorts the rest of it",
        "set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)",
        "set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'on', true)",
        tests=HEALING + "test_a_page_of_a_long_gap_visits_few_rows",
    ),
    held_out(
        "who has lost its checkpoint is asked how much it holds out",
        "in_a_row, undecided = self._connection.execute(COUNTS, self._who).fetchone() or (0, 0)",
        "[(in_a_row, undecided)] = self._connection.execute(COUNTS, self._who)",
        tests=HELD + "test_nor_is_it_where_the_next_record_is_malformed_in_the_view",
    ),
    Mutant(
        "a malformed entry's reason is kept as it is",
        "Malformed(entry, in_one_line(reason))",
        "Malformed(entry, str(reason))",
        "unified_log/readers/digest.py",
        MISTAKEN + "test_a_reason_that_quotes_what_no_text_holds_stops_nothing",
    ),
    Mutant(
        "a malformed entry's reason is in letters that the database has not",
        "    reason = in_its_letters(connection, reason)\n",
        "",
        "unified_log/readers/committed.py",
        MISTAKEN + "test_a_reason_that_the_database_has_no_letters_for_is_told_in_ascii",
    ),
    held_out(
        "a refusal's reason is in letters that the database has not",
        "        reason = in_its_letters(self._connection, reason)\n",
        "",
        tests=MISTAKEN + "test_a_reason_that_the_database_has_no_letters_for_is_told_in_ascii",
    ),
    held_out(
        "a retry's reason is in letters that the database has not",
        "reason = in_its_letters(self._connection, why.reason)",
        "reason = why.reason",
        tests=MISTAKEN + "test_a_reason_that_the_database_has_no_letters_for_is_told_in_ascii",
    ),
]
