"""A session that is shown a part of the rides adds up nothing: one sentence, and status 2.

A policy, or a view before the table, would show the same part to every statement of the run; so no
two of them would differ.
"""

import re
from collections.abc import Iterable, Iterator

import pytest

from analytics.steps import RunStep
from rocket_rides.settings import PROJECT
from tests.support.attacks import by_hand, settled, standing
from tests.support.books import Books
from tests.support.jobs import reconcile
from unified_log.errors import Unavailable
from unified_log.faults import listening

RIGHTS = (PROJECT / "migrations/rights.sql").read_text()
GRANTS = re.findall(r"^GRANT [^;]*? TO reconciler;", RIGHTS, re.MULTILINE)
VIEW = "CREATE VIEW elsewhere.{0} AS SELECT * FROM public.{0} WHERE {1} % 3 <> 0"
POLICY = "CREATE POLICY part ON {0} TO reconciler USING ({1} % 3 <> 0)"
# What is added up or compared, and a number in it.
TABLES = {"rides": "id", "ratings": "id", "receipts": "ride_id"}
# And what says which of it is not compared.
READ = TABLES | {"set_aside_minutes": "lowest_ride_id"}


@pytest.fixture
def as_reconciler(books: Books) -> Iterator[dict[str, str]]:
    """The settings of a run as the role that migrations/rights.sql describes."""
    connection = books.world.connection
    connection.execute("CREATE ROLE reconciler LOGIN")
    connection.execute("\n".join(GRANTS), prepare=False)
    yield {"DATABASE_URL": books.world.postgres_url.replace("//postgres@", "//reconciler@")}
    connection.execute("DROP OWNED BY reconciler; DROP ROLE reconciler", prepare=False)


@pytest.mark.proves("policy")
@pytest.mark.parametrize(
    ("tables", "known"),
    [(["rides"], False), (TABLES, True)],
    ids=["a first run", "a later run"],
)
def test_a_policy_ends_the_run_of_the_documented_role(
    books: Books,
    as_reconciler: dict[str, str],
    tables: Iterable[str],
    known: bool,
) -> None:
    if known:
        settled(books)
        for option in ([], ["--full"]):  # else its refusal would prove nothing
            assert reconcile(books.world, *option, **as_reconciler)[::2] == (0, "")
    else:
        books.world.send(*range(1, 10))
        books.caught_up()
        assert reconcile(books.world, "--check", **as_reconciler).status == 0
    for table in tables:
        by_hand(
            books.world,
            POLICY.format(table, TABLES[table]),
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        )
        refused(books, table, as_reconciler, known=known)
        by_hand(books.world, f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")


def refused(books: Books, table: str, settings: dict[str, str], *, known: bool = True) -> None:
    """Fails unless a run of each kind says one sentence, with the table, and changes nothing."""
    before = standing(books) if known else None
    runs = books.world.value("SELECT count(*) FROM reconciliations")
    for option in ([], ["--full"], ["--check"]) if table == "rides" else ([],):
        run = reconcile(books.world, *option, **settings)
        assert (run.status, run.said) == (2, "")
        [line] = run.wrong.splitlines()
        assert line.startswith("not reconciled: ")
        assert re.search(rf"\b{table}\b", line)
        if before:
            assert standing(books) == before
        assert books.world.value("SELECT count(*) FROM reconciliations") == runs
        assert books.world.value("SELECT count(*) FROM resets") == 0


@pytest.mark.proves("plain")
def test_a_view_in_front_of_a_table_ends_the_run(books: Books) -> None:
    settled(books)
    by_hand(
        books.world,
        "CREATE SCHEMA elsewhere",
        f"ALTER DATABASE {books.world.stream} SET search_path = elsewhere, public",
    )
    for table, number in READ.items():
        by_hand(books.world, VIEW.format(table, number))
        refused(books, table, {})
        by_hand(books.world, f"DROP VIEW elsewhere.{table}")


def test_a_view_that_comes_during_a_run_ends_it_before_anything_is_asked_for(books: Books) -> None:
    settled(books)
    by_hand(
        books.world,
        "CREATE SCHEMA elsewhere",
        f"ALTER DATABASE {books.world.stream} SET search_path = elsewhere, public",
    )
    before = standing(books)

    def meanwhile(step: object) -> None:
        if step is RunStep.AFTER_FREEZE:
            by_hand(books.world, VIEW.format("rides", "id"))

    with pytest.raises(Unavailable), listening(meanwhile):
        books.run()
    assert standing(books) == before
