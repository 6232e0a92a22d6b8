"""Lies about the nightly job: the freeze, the sums, the warehouse, whose it is.

Spark takes long to start, so what needs no Spark is told to tests that have none.
"""

from functools import partial

from tests.mutants.mutant import Mutant

ledger = partial(Mutant, file="analytics/ledger.py", tests="fast/test_ledger.py")
cells = partial(Mutant, file="analytics/cells.py", tests="fast/test_cells.py")
owner = partial(Mutant, file="analytics/ownership.py", tests="fast/test_ownership.py")
result = partial(Mutant, file="analytics/result.py", tests="fast/test_cells.py")
freeze = partial(Mutant, file="analytics/freeze.py", tests="analytics/test_reconcile.py")
job = partial(Mutant, file="analytics/job.py", tests="analytics/test_reconcile.py")
rides = partial(Mutant, file="analytics/rides.py", tests="analytics/test_warehouse.py")
extract = partial(Mutant, file="analytics/extract.py", tests="analytics/test_warehouse.py")
verify = partial(Mutant, file="analytics/proofs/warehouse.py", tests="services/test_verify.py")
warehouse = partial(Mutant, file="analytics/warehouse.py", tests="analytics/test_table.py")
table = partial(Mutant, file="analytics/table.py", tests="analytics/test_table.py")
tidying = partial(Mutant, file="analytics/tidying.py", tests="analytics/test_table.py")
emit = partial(Mutant, file="analytics/emit.py", tests="services/test_emit.py")

MUTANTS = [
    ledger("a block that is missing is not missed", "if block.after != upto:", "if False:"),
    ledger(
        "a ledger may end where its last block does not",
        "if upto != self.last_ride_id or total",
        "if total",
    ),
    ledger(
        "a total need not be the sum of its blocks",
        "total(block.tally for block in self.blocks) != self.total:",
        "total(block.tally for block in self.blocks).rides != self.total.rides:",
    ),
    ledger(
        "a database has as many owners as there were runs",
        "if (each.database_id, each.term) != same]",
        "]",
    ),
    ledger(
        "a night begins a block of its own",
        "for block in newest]",
        "for block in newest if block.upto == 0]",
        tests="fast/test_ledger.py fast/test_cells.py",
    ),
    ledger(
        "a block's last ride lies in the next block",
        "return bisect_left(self.blocks, ride_id, key=",
        "return bisect_left(self.blocks, ride_id + 1, key=",
        tests="fast/test_cells.py",
    ),
    ledger(
        "the last block ends with its ids, and not with the run",
        "blocks[-1] = msgspec.structs.replace(blocks[-1], upto=upto)",
        "blocks[-1] = msgspec.structs.replace(blocks[-1])",
        tests="fast/test_ledger.py fast/test_cells.py",
    ),
    ledger(
        "the newest block is never verified",
        "return self.blocks[-1:] + chance.sample(",
        "return chance.sample(",
        tests="fast/test_cells.py",
    ),
    cells(
        "a cell that begins at the cut is above it",
        "if after < cell.first and cell.last <= upto",
        "if after <= cell.first and cell.last <= upto",
    ),
    cells(
        "the cell that ends at the cut is above it",
        "if after < cell.first and cell.last <= upto",
        "if after < cell.first and cell.last < upto",
    ),
    cells(
        "the last id of a block lies in the next one",
        "(cell.first - 1) // BLOCK",
        "cell.first // BLOCK",
    ),
    cells(
        "the first cell is in no block",
        "for cell in sorted(cells):",
        "for cell in sorted(cells)[1:]:",
    ),
    cells(
        "the ride at a mark counts as above it",
        'f.col("id") > mark',
        'f.col("id") >= mark',
        tests="analytics/test_reconcile.py",
    ),
    result(
        "a total that is too small is right",
        "return self.stray or self.drift != 0",
        "return self.stray or self.drift > 0",
    ),
    result(
        "a checkpoint past every ride is right",
        "return self.stray or self.drift != 0",
        "return self.drift != 0",
    ),
    result(
        "sums of the nightly job may round",
        "EXACT.add(self.distance, other.distance)",
        "self.distance + other.distance",
    ),
    owner(
        "rides that a restore has undone are still ours",
        "here and newest.upto <= ours.end_of(newest.term)",
        "here and ours.end_of(newest.term) >= 0",
    ),
    owner(
        "the last ride that we share is not ours",
        "here and newest.upto <= ours.end_of(newest.term)",
        "here and newest.upto < ours.end_of(newest.term)",
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
    job(
        "a checkpoint past every ride is compared with what is not settled",
        "stray=last_ride_id > frozen_id)",
        "stray=False)",
        tests="analytics/test_reconcile.py::"
        "test_each_consumer_is_judged_at_its_own_ride_and_whoever_is_wrong_is_reset",
    ),
    rides(
        "what Spark has read is believed uncounted",
        "if read != expected:",
        "if False:",
        tests="analytics/test_warehouse.py::"
        "test_what_spark_has_read_is_counted_before_it_is_believed",
    ),
    job(
        "who has lost the lock publishes",
        "        with self.connection.transaction():\n            emit(self.connection, result)"
        "  # fails without the connection, which holds the lock\n"
        "            # A later repair asks for resets of its own, which supersede these.\n"
        "            ownership.require_no_repair(self.connection, frozen.history)\n",
        "        with nullcontext():\n",
        tests="analytics/test_warehouse.py::test_who_has_lost_the_lock_publishes_nothing",
    ),
    job(
        "a warehouse that is wrong is extended",
        "if not check and (full or not result.mismatches):",
        "if not check:",
        tests="analytics/test_warehouse.py::"
        "test_a_ride_changed_by_hand_is_reported_and_resets_nobody_before_full_does",
    ),
    extract(
        "a range is one ride longer than it says",
        "[after, upto, rows - 1]",
        "[after, upto, rows]",
        tests="services/test_extract.py",
    ),
    extract(
        "the last ride of a range is not read",
        "WHERE id > {after} AND id <= {upto}",
        "WHERE id > {after} AND id < {upto}",
        tests="analytics/test_reconcile.py::"
        "test_each_consumer_is_judged_at_its_own_ride_and_whoever_is_wrong_is_reset",
    ),
    verify(
        "rides that take each other's place are the same",
        "not postgres == in_files == block.tally or ends != [block.first, block.last]",
        "not postgres == in_files == block.tally",
    ),
    verify(
        "what the files hold is not compared with Postgres",
        "not postgres == in_files == block.tally or",
        "postgres != block.tally or",
    ),
    verify(
        "the ledger is not compared with Postgres",
        "not postgres == in_files == block.tally or",
        "postgres != in_files or",
    ),
    warehouse(
        "a rebuilt warehouse keeps its old rides",
        '"append" if after else "overwrite"',
        '"append"',
    ),
    warehouse(
        "a ledger of another run is believed",
        "if newest is None or newest.ledger.run != run:",
        "if newest is None:",
        tests="analytics/test_damage.py",
    ),
    warehouse(
        "a ledger of other rides is believed",
        "if newest.ledger.total.rides != sum(",
        "if 0 > sum(",
        tests="analytics/test_damage.py",
    ),
    warehouse(
        "files that begin with a block's last ride are not read for it",
        "file.first <= block.upto",
        "file.first < block.upto",
    ),
    table(
        "a file that is cut short passes",
        "if size != file.size:",
        "if False:",
        tests="analytics/test_damage.py",
    ),
    table(
        "a commit does not carry its run",
        "app_transactions=carried)",
        "app_transactions=[])",
    ),
    table(
        "what no version names stays for ever",
        "enforce_retention_duration=False, full=True)",
        "enforce_retention_duration=False)",
    ),
    tidying(
        "the newest day is merged every night",
        "(MOST if day == newest else 1)",
        "1",
    ),
    tidying(
        "a file that lacks rides is merged",
        "if merged.rides != ",
        "if merged.rides < 0 * ",
    ),
    emit(
        "consumers that are right are reset, too",
        "for consumer in result.consumers if consumer.wrong]",
        "for consumer in result.consumers]",
    ),
]
