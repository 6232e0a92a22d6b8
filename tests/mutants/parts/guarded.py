"""Mutants of what the judge rests on: its tables, the ledger, the warehouse's log, approvals."""

from functools import partial

from tests.mutants.mutant import Mutant

evidence = partial(Mutant, file="analytics/evidence.py", tests="analytics/test_ledger_attacked.py")
table = partial(Mutant, file="analytics/table.py", tests="analytics/test_foreign_commits.py")
plain = partial(Mutant, file="analytics/plain.py", tests="analytics/test_filtered.py")
runs = partial(Mutant, file="analytics/runs.py", tests="analytics/test_approvals.py")
approve = partial(Mutant, file="analytics/approve.py", tests="analytics/test_approvals.py")

MUTANTS = [
    evidence(
        "any ledger is believed",
        "if committed.ledger not in ledgers:",
        "if not committed.ledger:",
        tests="analytics/test_ledger_attacked.py::"
        "test_after_an_attack_on_the_ledger_all_is_read_again_and_what_is_right_stays",
    ),
    evidence(
        "a ledger that the log names no longer says nothing",
        "if newest and newest.position >= extent:",
        "if newest and newest.position < 0:",
        tests="analytics/test_ledger_attacked.py::"
        "test_a_ledger_that_the_log_names_no_longer_still_says_what_the_rides_were",
    ),
    evidence(
        "nobody looks for other writers",
        "if others := strangers(warehouse.table.store):",
        "if others := list[str]():",
        tests="analytics/test_foreign_commits.py::"
        "test_what_another_writer_has_changed_is_told_with_its_version_and_read_again",
    ),
    table(
        "a ledger may have any content",
        "if sha256(content).hexdigest() != digest:",
        "if not content:",
        tests="analytics/test_ledger_attacked.py",
    ),
    table(
        "rides without ids stay",
        'if row.get("null_count.id"):',
        "if False:",
        tests="analytics/test_foreign_commits.py::"
        "test_what_another_writer_has_only_rearranged_is_read_on",
    ),
    table(
        "a commit is built on another writer's",
        "said}, 0, carried)",
        "said}, None, carried)",
        tests="analytics/test_foreign_commits.py::"
        "test_what_another_writer_commits_during_a_run_is_not_built_upon",
    ),
    plain(
        "a view may stand for a table",
        "if not plain):",
        "if False):",
        tests="analytics/test_filtered.py::test_a_view_in_front_of_a_table_ends_the_run",
    ),
    Mutant(
        "a table may be replaced during a run",
        "            require_same(self.connection, frozen.tables)\n",
        "",
        file="analytics/job.py",
        tests="analytics/test_filtered.py::"
        "test_a_view_that_comes_during_a_run_ends_it_before_anything_is_asked_for",
    ),
    Mutant(
        "a policy hides rows",
        '"row_security": "off",',
        '"row_security": "on",',
        file="unified_log/session_settings.py",
        tests="analytics/test_filtered.py::test_a_policy_ends_the_run_of_the_documented_role",
    ),
    runs(
        "an approval is for whatever is held by then",
        "WHERE digest = %s AND",
        "WHERE %s <> '' AND",
        tests="analytics/test_approvals.py::test_an_approval_of_what_has_changed_since_is_not_used",
    ),
    runs(
        "an approval is used again",
        "WHERE digest = %s AND run_id = (",
        "WHERE digest = %s AND 0 < (",
        tests="analytics/test_approvals.py::test_an_approval_is_used_once",
    ),
    approve(
        "any run can be approved",
        "if last is None or last.id != run:",
        "if last is None:",
        tests="analytics/test_approvals.py::"
        "test_only_the_last_run_is_approved_if_it_holds_something_and_for_a_reason_and_then_all_agrees",
    ),
]
