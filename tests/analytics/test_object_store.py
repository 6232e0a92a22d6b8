"""Whole nights in an object store, of S3's protocol and Azure's; and which ones are refused."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import duckdb
import polars
import pytest
from deltalake import DeltaTable, write_deltalake

from analytics import parquet
from analytics.ledger import Broken, Ledger
from analytics.pieces import Piece
from analytics.steps import RunStep
from analytics.store import refusal
from analytics.warehouse import Warehouse
from demo.embedded.servers import Postgres, Redis
from tests.support.books import MILLIMETRE, Books, tally
from tests.support.clusters import fresh_world
from tests.support.jobs import reconcile
from tests.support.object_stores import (
    ACCOUNT,
    ACCOUNT_KEY,
    SECRET,
    make_container,
    root_of,
    s3_server,
)
from tests.support.warehouse import (
    DAY_ONE,
    METRE,
    OWNER,
    content,
    held,
    night,
    nights,
    table,
    write,
)
from tests.support.world import World, eventually
from unified_log.errors import Unavailable
from unified_log.faults import InjectedCrash, crash_at, listening


@pytest.fixture
def container(azurite: int) -> str:
    """A warehouse in Azure's emulator."""
    name = f"c{uuid4().hex}"
    make_container(azurite, name)
    return f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net/some/warehouse"


@pytest.fixture(params=["S3", "Azure"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "Azure":
        return str(request.getfixturevalue("container"))
    return root_of(tmp_path if request.param == "folder" else request.getfixturevalue("bucket"))


SUMS = polars.len(), polars.n_unique("id"), polars.sum("distance")
everywhere = pytest.mark.parametrize("root", ["folder", "S3", "Azure"], indirect=True)


def test_a_night_in_an_object_store_has_each_ride_once_and_other_engines_read_it(
    books: Books, root: str
) -> None:
    """What another writer adds there is told, and read again."""
    books.url = root
    books.add_many(300, at="timestamptz '2026-01-01 12:00+00'")
    books.claim("consumer0", 200, drift=MILLIMETRE)
    books.follow()
    assert [c.drift for c in books.run(check=True).consumers] == [MILLIMETRE, 0]
    assert books.warehouse.table.delta is None
    assert books.run().resets == ["consumer0"]
    books.world.send("1.001", 2, 3)
    result = books.run()
    assert (result.new, result.mismatches) == (tally(3, Decimal("6.001")), [])
    rides = DeltaTable(f"{root}/rides")
    write_deltalake(rides, rides.to_pyarrow_table().slice(0, 1), mode="append")
    run = reconcile(books.world, WAREHOUSE_DIR=root)
    assert (run.status, run.wrong) == (1, "")
    assert f"version {rides.version()}" in run.said
    assert books.in_warehouse() == books.in_postgres()
    assert books.run(full=True).published
    engine = duckdb.connect()
    engine.register("rides", DeltaTable(f"{root}/rides").to_pyarrow_dataset())
    scanned = polars.scan_delta(f"{root}/rides")
    [found] = scanned.select(*SUMS).collect().rows()
    sums = "SELECT count(*), count(DISTINCT id), sum(distance) FROM rides"
    assert [found] == engine.execute(sums).fetchall()
    assert found == books.in_warehouse() == books.in_postgres()
    by_day = dict(scanned.group_by("day").agg(polars.len()).collect().rows())
    assert (by_day[date(2026, 1, 1)], len(by_day)) == (300, 2)


def test_what_the_store_refuses_to_read_is_not_called_damaged(
    books: Books, s3: Path, bucket: Path
) -> None:
    """Nor is it rebuilt: it may be whole."""
    books = Books(books.world, books.spark, root_of(bucket), bucket)
    books.world.send(1, 2, 3)
    books.run()
    log = sorted((books.rides_on_disk / "_delta_log").iterdir())
    refused = s3 / ".unreadable"
    for unreadable in ("_delta_log/*.checkpoint.parquet", "day=*/*"):
        refused.write_text(next(books.rides_on_disk.glob(unreadable)).name)
        try:
            run = reconcile(books.world, "--full", WAREHOUSE_DIR=books.root)
        finally:
            refused.unlink()
        assert (run.status, run.said) == (2, "")
        assert "Access denied" in run.wrong
        assert "rebuild" not in run.wrong
        assert sorted((books.rides_on_disk / "_delta_log").iterdir()) == log


def test_a_task_tells_a_file_that_the_store_refuses_from_a_damaged_one(
    s3: Path, bucket: Path
) -> None:
    nights(bucket, 1)
    store, file = table(bucket).store, table(bucket).files()[0]
    refused, path = s3 / ".unreadable", bucket / "rides" / file.path
    refused.write_text(path.name)
    try:
        with pytest.raises(OSError, match="Access denied"):
            parquet.read(store, [file[:2]], 0, file.last)
    finally:
        refused.unlink()
    path.write_bytes(b"PAR1" + path.read_bytes()[4:][::-1])
    with pytest.raises(ValueError, match="Parquet: "):
        parquet.read(store, [file[:2]], 0, file.last)


def test_a_store_that_no_longer_gives_out_a_log_is_not_reached(s3: Path, bucket: Path) -> None:
    nights(bucket, 2)
    opened = Warehouse(root_of(bucket))
    assert opened.table.delta
    refused = s3 / ".unreadable"
    refused.write_text("checkpoint.parquet")
    try:
        for warehouse in (opened, Warehouse(root_of(bucket))):
            with pytest.raises(OSError, match="Access denied"):
                warehouse.committed_run()
    finally:
        refused.unlink()
    assert opened.committed_run()


def test_a_log_that_is_put_aside_halfway_is_broken_or_rebuilt_by_a_later_night(place: Path) -> None:
    """However many of its files are aside by then; none of them is lost."""
    total = nights(place, 3).total
    log = place / "rides/_delta_log"
    for path in log.glob("*checkpoint*"):
        path.unlink()
    versions = {path.name: path.read_bytes() for path in sorted(log.glob("*.json"))}
    _, broken, *others = versions
    (log / broken).write_bytes(b"{")
    for left in (len(others), len(others) - 1):
        with pytest.raises(InjectedCrash), crash_at(RunStep.PUT_ASIDE):
            night(place, Ledger(), (DAY_ONE, [1]))
        assert sorted(path.name for path in log.glob("*.json")) == [*versions][: left + 1]
        with pytest.raises(Broken):
            held(place)
    rebuilt = night(place, Ledger(), (DAY_ONE, [*range(1, total.rides + 1)]))
    assert content(place) == rebuilt.total == total
    aside = {path.name: path.read_bytes() for path in (place / "rides").glob("_broken/*/*")}
    assert aside == versions | {broken: b"{"}


def test_of_two_databases_on_one_empty_warehouse_one_wins_and_the_other_says_why(
    books: Books, postgres: Postgres, redis: Redis, bucket: Path
) -> None:
    """The other commits when all is ready for the commit here."""
    root = root_of(bucket)
    books.world.send(1, 2, 3)
    with fresh_world(postgres, redis, books.world.folder) as world:
        world.send(5)
        winner = Books(world, books.spark, root)

        def meanwhile(step: object) -> None:
            if step is RunStep.AFTER_LEDGER and not done:
                done.append(True)
                assert winner.run().published

        done = list[bool]()
        with listening(meanwhile):
            lost = reconcile(books.world, WAREHOUSE_DIR=root)
        assert (lost.status, lost.said) == (2, "")
        [line] = lost.wrong.splitlines()
        assert line.startswith(f"not reconciled: {root}/rides can't be written to: ")
        assert winner.in_warehouse() == winner.in_postgres()
        assert winner.run().agrees
    is_refused(books.world, bucket)
    max((bucket / "rides/_delta_log").glob("*.json")).write_text("{")
    is_refused(books.world, bucket)


def is_refused(world: World, bucket: Path) -> None:
    """Fails if a run, of whatever kind, does not refuse the warehouse, or changes anything."""

    def state() -> object:
        files = {path: path.read_bytes() for path in bucket.rglob("*") if path.is_file()}
        return files, world.value("SELECT count(*) FROM reconciliations")

    before = state()
    for options in ([], ["--check"], ["--full"]):
        run = reconcile(world, *options, WAREHOUSE_DIR=root_of(bucket))
        assert (run.status, "another database" in run.wrong) == (2, True)
    assert state() == before


@everywhere
@pytest.mark.proves("anywhere")
def test_of_eight_who_commit_at_once_one_wins(root: str) -> None:
    """To an empty warehouse, and to one that has rides."""
    for base in (Ledger(), Ledger().extended(9, [Piece(9, 9, 1, METRE)])):
        run = int(bool(base.position))
        racers = [Warehouse(root) for _ in range(8)]
        assert {each.table.run for each in racers} == {run}
        assert winners(racers, base) == 1
        left = Warehouse(root).table
        assert (left.run, len(left.files())) == (run + 1, run + 1)


def winners(racers: list[Warehouse], held: Ledger) -> int:
    """How many could commit, who all try at once to add a ride to what is there."""
    written = [write(each, DAY_ONE, [10 + number]) for number, each in enumerate(racers)]
    nights = [
        each.note(held.position, held.extended(piece.last, [piece]), OWNER)
        for each, (piece, _) in zip(racers, written, strict=True)
    ]

    def committed(number: int) -> bool:
        with suppress(Unavailable):
            racers[number].publish(written[number][1], nights[number])
            return True
        return False

    with ThreadPoolExecutor(len(racers)) as pool:
        return sum(pool.map(committed, range(len(racers))))


def test_who_creates_a_table_too_late_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it has looked, and found none; meanwhile the other has created it, and committed."""
    place = tmp_path / "s3"
    with s3_server(place, "--first-waits") as variables, ThreadPoolExecutor(1) as threads:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        (place / "bucket").mkdir()
        late, early = (Warehouse("s3://bucket/here") for _ in range(2))
        try:
            waiting = threads.submit(winners, [late], Ledger())
            eventually((place / ".waits").exists, "the late one's put")
            assert winners([early], Ledger()) == 1
        finally:
            (place / ".go").touch()
        assert waiting.result() == 0
        assert len(Warehouse("s3://bucket/here").table.files()) == 1


def test_a_store_that_takes_a_version_twice_is_refused(world: World, tmp_path: Path) -> None:
    with s3_server(tmp_path / "s3", "--takes-twice", "--slow") as variables:
        (tmp_path / "s3" / "bucket").mkdir()
        run = reconcile(world, WAREHOUSE_DIR="s3://bucket/here", **variables)
    assert (run.status, run.said) == (2, "")
    [line] = run.wrong.splitlines()
    assert line.startswith("not reconciled: s3://bucket/here/rides takes the same version")
    assert not [path for path in (tmp_path / "s3" / "bucket").rglob("*") if path.is_file()]


NOWHERE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
OTHERS = {"AWS_ACCESS_KEY_ID": "somebody-else"}
REFUSALS = [
    ("s3://none/here", {}, "s3://none/here/rides: The specified bucket does not exist"),
    ("s3://none/here", OTHERS, "(InvalidAccessKeyId)"),
    ("s3://none/here", NOWHERE, "s3://none/here/rides: Connection refused"),
    ("s3://none/here", {"AWS_ENDPOINT_URL": "127.0.0.1:1"}, "AWS_ENDPOINT_URL is no URL"),
    ("abfss://none/here", {}, "abfss://none/here"),
    ("s3://none/here#there", {}, "WAREHOUSE_DIR is a URL with a # in it"),
    ("file://there/here", {}, "file://there/here names a host"),
    ("/proc/where%20else", {}, "WAREHOUSE_DIR has %20 in it"),
    ("dbfs:/here", {}, "dbfs://... is no place for a warehouse"),
    ("nosuch://none/here", {}, "nosuch://... is no place for a warehouse"),
    (f"s3://key:{SECRET}@none/here", {}, "WAREHOUSE_DIR has credentials in it"),
    (f"abfss://none@{ACCOUNT}.dfs.core.windows.net/here?sig={SECRET}", {}, "has credentials in it"),
    ("s3://none/here", {"AWS_ALLOW_HTTP": "false"}, "needs AWS_ALLOW_HTTP=true"),
]


@pytest.mark.usefixtures("s3", "java")
def test_a_place_that_can_not_be_reached_is_status_2_and_one_line_without_a_secret(
    world: World,
) -> None:
    for root, given, reason in REFUSALS:
        for options in ([], ["--check"]):  # which does not try to write there
            run = reconcile(world, *options, WAREHOUSE_DIR=root, **given)
            assert (run.status, run.said) == (2, "")
            [line] = run.wrong.splitlines()
            assert line.startswith("not reconciled: ")
            assert reason in line
            assert SECRET not in line


@pytest.mark.parametrize("key", [ACCOUNT_KEY[::-1].strip("="), "bm90IHRoZSBvbmU="])
def test_a_wrong_key_of_azures_is_in_no_message(world: World, container: str, key: str) -> None:
    run = reconcile(world, WAREHOUSE_DIR=container, AZURE_STORAGE_ACCOUNT_KEY=key)
    assert (run.status, run.said) == (2, "")
    assert len(run.wrong.splitlines()) == 1
    assert key not in run.wrong


def test_a_signed_url_is_in_no_message() -> None:
    said = f"Generic error\n Error performing GET https://there/x?sig={SECRET} in 2ms - 403"
    assert SECRET not in refusal(OSError(said))
