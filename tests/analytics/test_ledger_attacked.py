"""A ledger that is not as a run left it is told and not used: nothing right is changed after it."""

import shutil
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable

from analytics.ledger import Ledger
from tests.support.attacks import (
    BLOCK,
    all_have_counted,
    alter_in_file,
    by_hand,
    delta,
    in_postgres,
    in_warehouse,
    named_ledger,
    settled,
    standing,
)
from tests.support.books import Books
from tests.support.completed_runs import last_run
from tests.support.jobs import reconcile

HAS_LEDGER = "SELECT count(*) FROM runs WHERE %s = ANY (ledgers)"


def altered(ledger: Path) -> bytes:
    """The same ledger, in which the second block has two metres more: it adds up to a total."""
    said = msgspec.json.decode(ledger.read_bytes(), type=Ledger)
    block = said.blocks[1]
    more = msgspec.structs.replace(block, distance=block.distance + 2)
    return msgspec.json.encode(said.with_blocks([more]))


def alter_a_number(books: Books) -> None:
    _, ledger = named_ledger(books)
    ledger.write_bytes(altered(ledger))


def lose_it(books: Books) -> None:
    named_ledger(books)[1].unlink()


def name_another(books: Books, content: bytes) -> None:
    commit, ledger = named_ledger(books)
    name = sha256(content).hexdigest()
    ledger.with_stem(name).write_bytes(content)
    commit.write_text(commit.read_text().replace(ledger.stem, name))


def name_an_altered_one(books: Books) -> None:
    """Under its own hash: only Postgres knows that no run has made it."""
    name_another(books, altered(named_ledger(books)[1]))


def name_an_older_one(books: Books) -> None:
    """One that a run has made, of another warehouse than this."""
    older = named_ledger(books)[1].read_bytes()
    books.world.send(5)
    all_have_counted(books)
    assert books.run().agrees
    name_another(books, older)


@pytest.mark.proves("ledger")
def test_after_an_attack_on_the_ledger_all_is_read_again_and_what_is_right_stays(
    books: Books,
) -> None:
    settled(books)
    for attack in (alter_a_number, lose_it, name_an_altered_one, name_an_older_one):
        attack(books)
        before = standing(books)
        run = reconcile(books.world)
        assert (run.status, run.wrong) == (0, "")
        assert "ledger" in run.said
        assert standing(books)[1:] == before[1:]
        assert in_warehouse(books) == in_postgres(books)
        _, ledger = named_ledger(books)
        assert sha256(ledger.read_bytes()).hexdigest() == ledger.stem
        assert books.world.value(HAS_LEDGER, ledger.stem) == 1
    again = books.run()
    assert (again.status, again.notes) == ("agreed", [])
    before = standing(books)
    shutil.rmtree(named_ledger(books)[1].parent)  # or a folder was copied without them
    assert isinstance(delta(books), DeltaTable)
    assert books.run(check=True).agrees
    assert books.run().status == "agreed"
    assert standing(books) == before


MOVE = "UPDATE rides SET distance = distance + {} WHERE id = {}"
# The distances of two rides, one for the other.
SWAP = """
    UPDATE rides SET distance = other.distance FROM rides other
    WHERE (rides.id, other.id) IN (({0}, {1}), ({1}, {0}))
"""


@pytest.mark.parametrize("in_files", [True, False], ids=["swapped alike", "otherwise"])
def test_the_ledger_of_a_block_on_which_nobody_agrees_takes_no_new_rides(
    books: Books, *, in_files: bool
) -> None:
    """Else it would have the digest of what it denies, and be for the files from then on."""
    settled(books)
    one, other = 2 * BLOCK + 5, 2 * BLOCK + 6
    right = in_postgres(books)
    more = int(right[other][1] - right[one][1])
    by_hand(books.world, MOVE.format(more, one), MOVE.format(-more, other))
    by = more if in_files else 1
    alter_in_file(books, one if in_files else one - 1, by)
    alter_in_file(books, other if in_files else one - 2, -by)
    books.world.send(5)
    all_have_counted(books)
    for chance in (1, 2):
        assert books.run(chance=chance).status == "held"
        assert last_run(books.world).held >= {"rides_undecided"}
    by_hand(books.world, MOVE.format(-more, one), MOVE.format(more, other))
    assert books.run().published
    assert last_run(books.world).kinds == {"warehouse_changed"}
    assert in_warehouse(books) == in_postgres(books)


def test_a_ledger_that_the_log_names_no_longer_still_says_what_the_rides_were(
    books: Books,
) -> None:
    """The log is set back by a night, and two rides of that night are swapped: no total knows."""
    settled(books)
    swap = SWAP.format(*books.world.send(5, 6))
    all_have_counted(books)
    assert books.run().agrees
    for checkpoint in (books.rides_on_disk / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    named_ledger(books)[0].unlink()
    by_hand(books.world, swap)
    before = standing(books)
    for full in (False, True):
        assert books.run(full=full).status == "held"
        assert last_run(books.world).held >= {"rides_undecided"}
        assert standing(books) == before
    by_hand(books.world, swap)
    assert books.run().published
    assert last_run(books.world).kinds == {"warehouse_changed"}
    assert in_warehouse(books) == in_postgres(books)
    assert books.run().agrees
