"""Mutants of the nightly job: the freeze, the sums, the warehouse, whose it is, the emit.

Spark takes long to start, so what needs no Spark is tested without it.
"""

from functools import partial

from tests.mutants.mutant import Mutant

ledger = partial(Mutant, file="analytics/ledger.py", tests="fast/test_ledger.py")
pieces = partial(Mutant, file="analytics/pieces.py", tests="fast/test_pieces.py")
owner = partial(Mutant, file="analytics/ownership.py", tests="fast/test_ownership.py")
result = partial(Mutant, file="analytics/result.py", tests="fast/test_pieces.py")
freeze = partial(Mutant, file="analytics/freeze.py", tests="analytics/test_reconcile.py")
rides = partial(Mutant, file="analytics/rides.py", tests="analytics/test_warehouse.py")
extract = partial(Mutant, file="analytics/extract.py", tests="analytics/test_warehouse.py")
warehouse = partial(Mutant, file="analytics/warehouse.py", tests="analytics/test_table.py")
table = partial(Mutant, file="analytics/table.py", tests="analytics/test_table.py")
parquet = partial(
    Mutant,
    file="analytics/parquet.py",
    tests="analytics/test_object_store.py::"
    "test_a_task_tells_a_file_that_the_store_refuses_from_a_damaged_one",
)
tidying = partial(Mutant, file="analytics/tidying.py", tests="analytics/test_table.py")
probe = partial(Mutant, file="analytics/probe.py", tests="analytics/test_object_store.py")
anywhere = partial(Mutant, file="analytics/table.py", tests="analytics/test_object_store.py")
emit = partial(Mutant, file="analytics/emit.py", tests="services/test_emit.py")
MERGED = "test_the_files_of_a_day_that_has_many_are_merged_and_no_ride_changes"

MUTANTS = [
    ledger("a block that is missing is not missed", "if block.after != upto:", "if False:"),
    pieces(
        "the piece that ends at a cut counts as above it",
        "piece.last <= upto",
        "piece.last < upto",
        tests="analytics/test_reconcile.py",
    ),
    Mutant(
        "two warehouses of one cell are added up",
        "if one.cell == two.cell:",
        "if one.warehouse == two.warehouse:",
        file="cells/total.py",
        tests="fast/test_cells.py",
    ),
    result(
        "a total that is too small is right",
        "return self.stray or self.drift != 0",
        "return self.stray or self.drift > 0",
    ),
    result(
        "nobody counts the rides of a total",
        "self.drift != 0 or self.rides_off != 0",
        "self.drift != 0",
    ),
    owner(
        "every database without a term is this one",
        'here = newest.term != "" or newest.database_id == ours.database_id',
        "here = True",
    ),
    freeze(
        "what moves is read at several moments",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
        tests="services/test_freeze.py",
    ),
    rides(
        "what Spark has read is used uncounted",
        "if read != expected:",
        "if False:",
        tests="analytics/test_warehouse.py::test_what_spark_has_read_is_counted_before_it_is_used",
    ),
    extract(
        "a block lies in two ranges",
        "end = min((number + 1) * BLOCK, upto)",
        "end = min((number + 1) * BLOCK - 1, upto)",
        tests="services/test_extract.py",
    ),
    warehouse(
        "a rebuilt warehouse keeps its old rides",
        '"append" if committed.after else "overwrite"',
        '"append"',
    ),
    table(
        "a log may lack its newest version",
        "if not self.store.has(newest):",
        "if False:",
        tests="analytics/test_damage.py",
    ),
    table(
        "a commit lacks its run's number",
        "said}, 0, carried)",
        "said}, 0, [])",
    ),
    tidying(
        "what a crash has left behind stays",
        "vacuum(UNNAMED, full=True)",
        "vacuum(UNNAMED)",
    ),
    tidying(
        "what old versions need goes after as many hours as it should days",
        "vacuum(days * 24)",
        "vacuum(days)",
        tests="analytics/test_table.py::test_another_retention_takes_effect",
    ),
    Mutant(
        "who only takes files away is not told",
        "for file in (action.add, action.remove) if file]",
        "for file in (action.add,) if file]",
        file="analytics/versions.py",
        tests=f"analytics/test_table.py::{MERGED}",
    ),
    tidying(
        "the files of a day that has few are merged",
        "if files > MANY]",
        "if files > 1]",
        tests=f"analytics/test_table.py::{MERGED}",
    ),
    tidying(
        "what is merged is not on disk",
        "file.path for file in table.files() if file.path not in before",
        "",
        tests=f"analytics/test_table.py::{MERGED}",
    ),
    anywhere(
        "a store that does not give out a log has a broken one",
        "                self.store.read(info.path)\n",
        "                pass\n",
        tests="analytics/test_object_store.py::"
        "test_a_store_that_no_longer_gives_out_a_log_is_not_reached",
    ),
    Mutant(
        "the folder above a new table is not on disk",
        "    yield os.pardir  # the root may be new\n",
        "",
        file="analytics/store.py",
        tests="analytics/test_table.py::test_all_is_on_disk_before_the_next_relies_on_it",
    ),
    Mutant(
        "a folder may have any name",
        "if self.is_folder and (odd :=",
        "if not self.root and (odd :=",
        file="analytics/store.py",
        tests="analytics/test_object_store.py::"
        "test_a_place_that_can_not_be_reached_is_status_2_and_one_line_without_a_secret",
    ),
    parquet(
        "a damaged file is the store's fault",
        "_require_rides(store.read(path))",
        "store.read(path)",
    ),
    parquet(
        "what the store does not give out is a damaged file",
        "_require_rides(store.read(path))",
        '_require_rides(b"")',
    ),
    anywhere(
        "of eight who commit at once all win",
        "carried = [Transaction(APP, committed.run)]\n"
        '        properties = CommitProperties({"reconciliation": said}, 0, carried)',
        'properties = CommitProperties({"reconciliation": said}, 9)',
        tests="analytics/test_object_store.py::test_of_eight_who_commit_at_once_one_wins",
    ),
    Mutant(
        "who creates a table too late changes the one that is there",
        "commit_properties=ONCE, **properties",
        "**properties",
        file="analytics/committing.py",
        tests="analytics/test_object_store.py::test_who_creates_a_table_too_late_commits_nothing",
    ),
    probe(
        "a store that takes a version twice is used",
        "if len(refused) < RACERS - 1:",
        "if not refused:",
        tests="analytics/test_object_store.py::test_a_store_that_takes_a_version_twice_is_refused",
    ),
    anywhere(
        "an unreadable log is put aside from its first version on",
        "reversed(self.store.listed(LOG)):\n            if info.is_file",
        "self.store.listed(LOG):\n            if info.is_file",
        tests="analytics/test_object_store.py::"
        "test_a_log_that_is_put_aside_halfway_is_broken_or_rebuilt_by_a_later_night",
    ),
    Mutant(
        "a signed URL is in messages",
        'URL.sub("...", last)',
        "last",
        file="analytics/store.py",
        tests="analytics/test_object_store.py::test_a_signed_url_is_in_no_message",
    ),
    extract(
        "nobody reads what was written",
        "if root and rides != parquet.read(",
        "if None and rides != parquet.read(",
        tests="services/test_extract.py",
    ),
    emit(
        "consumers that are right are reset, too",
        "WHERE kind = 'total' AND name = ANY(%s)",
        "WHERE kind = 'total' AND %s <> '{}'::text[]",
    ),
]
