"""Mutants of the schema of the log: what attach() and stage() refuse, and what they do."""

from functools import partial

from tests.mutants.mutant import Mutant

staging = partial(Mutant, file="unified_log/schema/1_log.sql", tests="services/test_staging.py")
attaching = partial(
    Mutant, file="unified_log/schema/2_kinds.sql", tests="services/test_attaching.py"
)
refusals = partial(Mutant, file="unified_log/schema/3_refusals.sql", tests="services/test_kinds.py")
data = partial(Mutant, file="unified_log/schema/4_data.sql", tests="services/test_kinds.py")

MUTANTS = [
    staging(
        "a position that nobody has drawn is staged",
        """ AND "position" <= pg_sequence_last_value('log_position')) IS NOT TRUE""",
        ") IS NOT TRUE",
        tests="services/test_staging.py::test_a_position_that_nobody_has_drawn_is_refused",
    ),
    staging(
        "before the first position is drawn, any is staged",
        "pg_sequence_last_value('log_position')) IS NOT TRUE",
        "pg_sequence_last_value('log_position')) IS FALSE",
        tests="services/test_staging.py::test_nothing_is_staged_before_the_first_position_is_drawn",
    ),
    staging(
        "whoever stages needs rights to the outbox",
        "LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET",
        "LANGUAGE plpgsql VOLATILE SET",
        tests="services/test_staging.py::"
        "test_whoever_stages_needs_a_right_to_the_function_and_to_nothing_else",
    ),
    staging(
        "anybody may stage",
        "REVOKE EXECUTE ON FUNCTION stage FROM PUBLIC;",
        "",
        tests="services/test_staging.py::"
        "test_whoever_stages_needs_a_right_to_the_function_and_to_nothing_else",
    ),
    attaching(
        "of two that are attached at once, one is no kind",
        "    LOCK TABLE log_kinds IN SHARE ROW EXCLUSIVE MODE;\n    why :=",
        "    why :=",
        tests="services/test_attaching.py::test_two_that_are_attached_at_once_are_both_kinds",
    ),
    attaching(
        "a kind is attached that the view does not show",
        "        PERFORM generate_log_records();\n        why",
        "        why",
        tests="services/test_attaching.py::test_two_that_are_attached_at_once_are_both_kinds",
    ),
    attaching(
        "rows that are there are not staged",
        "'FROM (%s) existing', log_kind_select(kind));",
        "'FROM (%s) existing WHERE false', log_kind_select(kind));",
        tests="services/test_attaching.py::"
        "test_rows_that_are_there_are_staged_under_positions_that_are_drawn_with_them",
    ),
    attaching(
        "a kind that has rows is taken away",
        "    IF has_rows THEN",
        "    IF has_rows AND false THEN",
        tests="services/test_attaching.py::test_only_a_kind_without_rows_is_taken_away",
    ),
    attaching(
        "a kind is attached in a snapshot that does not show all others",
        "    IF current_setting('transaction_isolation') <> 'read committed' THEN\n"
        "        RAISE EXCEPTION 'attach()",
        "    IF false THEN\n        RAISE EXCEPTION 'attach()",
        tests="services/test_attaching.py::"
        "test_a_snapshot_that_would_not_show_what_others_attach_is_refused",
    ),
    refusals(
        "a type gets a second meaning",
        "WHEN kind.type IN (SELECT type FROM log_kinds)",
        "WHEN false",
        tests="services/test_kinds.py::test_neither_a_type_nor_a_table_is_attached_twice",
    ),
    refusals(
        "a table is two kinds",
        "WHEN kind.source IN (SELECT source FROM log_kinds)",
        "WHEN false",
        tests="services/test_kinds.py::test_neither_a_type_nor_a_table_is_attached_twice",
    ),
    refusals(
        "a table that is emptied by a crash is a kind",
        "OR class.relpersistence <> 'p'",
        "OR class.relpersistence = 't'",
        tests="services/test_kinds.py::test_what_is_no_table_of_its_own_is_refused",
    ),
    refusals(
        "a partition is a kind",
        "WHEN class.relispartition",
        "WHEN false",
        tests="services/test_kinds.py::test_what_is_no_table_of_its_own_is_refused",
    ),
    *(
        refusals(
            error,
            old,
            new,
            tests="services/test_kinds.py::test_a_position_that_would_break_the_log_is_refused",
        )
        for error, old, new in (
            ("a position is an integer", "drawn.atttypid <> 'bigint'::regtype", "false"),
            ("a position may be null", "OR NOT drawn.attnotnull", ""),
            ("two rows have one position", "indisunique AND indisvalid", "indisvalid"),
            ("a unique index of several columns is enough", "indnkeyatts = 1 AND ", ""),
            ("two rows have one position until the commit", "AND indimmediate ", ""),
            (
                "positions come from another sequence",
                "IS DISTINCT FROM format('nextval(%L::regclass)', 'log_position'::regclass)",
                "IS NULL",
            ),
        )
    ),
    refusals(
        "a time is of another type",
        "WHEN created.attname IS NULL OR created.atttypid <> 'timestamptz'::regtype",
        "WHEN created.attname IS NULL",
        tests="services/test_kinds.py::test_another_time_than_timestamptz_is_refused",
    ),
    refusals(
        "positions that the log has passed are staged",
        "RETURN CASE WHEN strange > 0 THEN",
        "RETURN CASE WHEN false THEN",
        tests="services/test_attaching.py::"
        "test_rows_with_positions_that_the_log_may_have_passed_are_refused",
    ),
    refusals(
        "looking up the newest record sorts them all",
        "    RETURN 'looking up the newest record would need a ' || node;",
        "    RETURN NULL;",
        tests="services/test_attaching.py::"
        "test_what_would_sort_all_records_for_the_newest_is_refused",
    ),
    data(
        "data is not JSON",
        "<> ARRAY['jsonb'::regtype]",
        "IS NULL",
        tests="services/test_kinds.py::test_data_that_is_not_made_of_one_row_is_refused",
    ),
    data(
        "data reads another table",
        ":has(SubLinks|Aggs|",
        ":has(Aggs|",
        tests="services/test_kinds.py::test_data_that_is_not_made_of_one_row_is_refused",
    ),
    data(
        "data is otherwise each time",
        "AND provolatile <> 'i'",
        "AND false",
        tests="services/test_kinds.py::test_data_that_is_not_made_of_one_row_is_refused",
    ),
    *(
        data(
            f"data depends on {setting}",
            f"('{setting}', {value})",
            f"('{setting}', {ours})",
            tests="services/test_kinds.py::"
            "test_data_that_is_said_otherwise_in_another_session_is_refused",
        )
        for setting, value, ours in (
            ("timezone", "'<+0545>-05:45'", "'UTC'"),
            ("datestyle", "'German, DMY'", "'ISO, MDY'"),
            ("intervalstyle", "'sql_standard'", "'postgres'"),
            ("extra_float_digits", "'-10'", "'1'"),
            ("bytea_output", "'escape'", "'hex'"),
        )
    ),
]
