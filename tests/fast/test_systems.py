"""Each system that this project exists to show has its place, whatever else is shortened.

`make lint` checks who may import whom; this checks that what is to be shown is there: the file that
has it, the words in that file by which one knows it, and a test that proves it.
"""

import re
from typing import NamedTuple

import pytest

from rocket_rides.settings import PROJECT


class System(NamedTuple):
    """Where a system is: its file, what must stand in it, and a test in a file below tests/."""

    file: str
    words: str
    test: str


ICKS = "services/test_ick.py"
GROUPS = "consumers/receipts/group.py"
LOG = "unified_log/log/stream.py"

SYSTEMS = {
    "the outbox": System(
        "unified_log/schema/1_log.sql",
        "CREATE TABLE staged_log_records",
        "services/test_booking.py::test_a_ride_whose_record_cannot_be_staged_is_not_taken",
    ),
    "the outbox's batches": System(
        "unified_log/streamer/drain.py",
        "batch",
        "services/test_streamer.py::test_five_thousand_staged_at_once_go_out_in_batches",
    ),
    "queries of the log, in both directions": System(
        LOG,
        "XREVRANGE",
        "services/test_log_queries.py::"
        "test_a_range_of_ids_is_found_in_both_directions_in_bounded_replies",
    ),
    "queries of the log by time": System(
        "unified_log/log/places.py",
        "14:30",
        "services/test_log_queries.py::test_a_time_that_ends_a_range_is_not_in_it",
    ),
    "blocking reads": System(
        LOG, "BLOCK", "services/test_appending.py::test_a_wait_of_less_than_a_millisecond_ends"
    ),
    "eviction by count": System(
        LOG,
        "MAXLEN",
        "services/test_trimming.py::"
        "test_by_count_and_by_age_whole_nodes_go_or_exactly_what_is_beyond",
    ),
    "eviction by age": System(
        LOG,
        "MINID",
        "services/test_trimming.py::"
        "test_by_count_and_by_age_whole_nodes_go_or_exactly_what_is_beyond",
    ),
    "checkpointed consumers": System(
        "unified_log/readers/checkpoint.py",
        "UPDATE checkpoints",
        "services/test_consumer.py::test_two_processes_under_one_name_never_count_a_ride_twice",
    ),
    "double sends on purpose": System(
        "unified_log/streamer/leading.py",
        "double_send",
        "services/test_counts.py::test_what_a_reader_meets_is_counted_once_however_it_is_batched",
    ),
    "crashes on purpose": System(
        "unified_log/faults.py",
        "InjectedCrash",
        "services/test_consumer.py::test_a_crash_at_any_step_counts_every_ride_once",
    ),
    "idempotent consumers": System(
        "unified_log/readers/digest.py",
        "skipped",
        "fast/test_any_log.py::test_each_ride_counts_once_whatever_the_log_holds",
    ),
    "consumer groups: reading": System(
        GROUPS,
        "XREADGROUP",
        "services/test_groups.py::test_each_entry_is_given_to_one_member_and_is_pending_until_it_is_acknowledged",
    ),
    "consumer groups: acknowledging": System(
        GROUPS,
        "XACK",
        "services/test_groups.py::test_each_entry_is_given_to_one_member_and_is_pending_until_it_is_acknowledged",
    ),
    "consumer groups: claiming": System(
        GROUPS,
        "XCLAIM",
        "services/test_groups.py::test_a_member_takes_over_its_own_entries_at_once_and_others_when_they_are_old",
    ),
    "consumer groups: what is pending, its owner, its deliveries": System(
        "unified_log/log/pending.py",
        "XPENDING",
        "services/test_log_queries.py::test_what_is_pending_has_an_owner_an_age_and_deliveries",
    ),
    "dead letters": System(
        "consumers/receipts/dead.py",
        "replay",
        "services/test_receipts_members.py::"
        "test_a_receipt_that_kills_its_worker_each_time_is_dead_and_the_rest_goes_on",
    ),
    "replication with WAIT": System(
        LOG,
        "WAIT",
        "services/test_failover.py::"
        "test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing",
    ),
    "what a fail-over may lose": System(
        LOG,
        "wait_for_replicas",
        "services/test_failover.py::test_with_wait_a_promoted_replica_has_all_that_was_committed_as_sent",
    ),
    "the latency of ten consumers of one group": System(
        "lab/benchmarks/groups.py",
        "PUBLISHED = (74.11, 25.80",
        "services/test_group_load.py::"
        "test_the_members_are_given_each_entry_once_and_acknowledge_all",
    ),
    "that latency, as it was measured": System(
        "docs/performance.md",
        "<!--figures:groups-->",
        "fast/test_figures.py::test_an_entry_is_counted_in_the_millisecond_in_which_it_came",
    ),
    "the nightly job, which emits the total and the last ride": System(
        "analytics/report/machine.py",
        '"last_ride_id": result.last_ride_id',
        "analytics/test_reconcile_process.py::"
        "test_drift_is_status_1_in_every_form_of_the_result_and_after_the_repair_0",
    ),
    "redis-ick": System(
        "consumers/rollup/ick.lua", "ick.v1", f"{ICKS}::test_a_story_through_every_kind_of_client"
    ),
    **{
        f"redis-ick: {operation}": System(
            "consumers/rollup/ick.py",
            f"def {operation}(",
            f"{ICKS}::test_a_story_through_every_kind_of_client",
        )
        for operation in (
            *("ickadd", "ickreserve", "ickcommit"),
            *("ickexchange", "ickstats", "ickdel"),
        )
    },
}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_each_system_is_in_its_place_and_has_its_proof(system: System) -> None:
    assert system.words in (PROJECT / system.file).read_text()
    file, _, test = system.test.partition("::")
    assert re.search(rf"^def {test}\(", (PROJECT / "tests" / file).read_text(), re.MULTILINE)
