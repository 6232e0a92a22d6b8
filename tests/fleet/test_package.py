"""`unified_log` as others install it: a wheel, in an environment with what it depends on."""

import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from demo.embedded.servers import Postgres, Redis
from rocket_rides.settings import PROJECT
from tests.support.clusters import fresh_world
from tests.support.disasters import flush
from tests.support.package import build, environment, installed, run
from tests.support.world import World, eventually
from unified_log import schema
from unified_log.errors import Refused, Unavailable

README = (PROJECT / "unified_log/README.md").read_text()
ATTACH, STAGE, STATE, *_ = re.findall(r"^```sql\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
[HANDLER] = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^python -m (\S+)(.*)$", README, re.MULTILINE)
PACKAGES = {"unified_log", "psycopg", "psycopg_binary", "redis", "hiredis", "msgspec"}
FOR_OLDER_PYTHONS = {"async_timeout", "typing_extensions"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("package"))


@pytest.fixture
def empty(postgres: Postgres, redis: Redis, tmp_path: Path) -> Iterator[World]:
    """A database without any table, and a folder without any file."""
    (tmp_path / "empty").mkdir()
    with fresh_world(postgres, redis, tmp_path, {}) as world:
        yield world


def test_the_wheel_has_all_of_the_package_and_nothing_of_the_application(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        files = {name for name in wheel.namelist() if not name.endswith("/")}
        metadata = wheel.read(next(name for name in files if name.endswith("METADATA"))).decode()
    ours = {name for name in files if ".dist-info/" not in name}
    there = [path for path in (PROJECT / "unified_log").rglob("*") if path.is_file()]
    assert ours == {path.relative_to(PROJECT).as_posix() for path in there if path.suffix != ".pyc"}
    assert ours >= {"unified_log/py.typed", *(f"unified_log/schema/{f.name}" for f in schema.FILES)}
    assert "# unified_log" in metadata
    assert {"Requires-Dist: psycopg[binary]>=3.3.9", "Requires-Dist: redis>=8.1"} <= {
        *metadata.splitlines()
    }


def test_it_brings_few_packages_with_it(python: Path) -> None:
    found = {
        path.name.split("-")[0]
        for path in python.parents[1].glob("lib/python*/site-packages/*.dist-info")
    }
    assert PACKAGES <= found <= PACKAGES | FOR_OLDER_PYTHONS


def test_its_schema_is_applied_once(python: Path, empty: World) -> None:
    def applied(*options: str, status: int = 0) -> str:
        service = run(python, empty.folder, empty, "unified_log.schema", "--apply", *options)
        assert service.ends() == status, service.output.read_text()
        return service.output.read_text()

    assert applied("--cell", "7") == "applied the schema of the log, revision 1, as cell 7\n"
    assert applied() == "the schema of the log is up to date: revision 1\n"
    assert empty.start == 7 * 10**14
    other = "not applied: the database is cell 7, not 6, which can't be changed\n"
    assert applied("--cell", "6", status=1) == other
    assert "--cell: '90': a number from 0 to 89 is expected" in applied("--cell", "90", status=2)


def test_a_migration_applies_it_once_on_whatever_connection(empty: World) -> None:
    """One that commits by itself, or not, and whatever it makes of rows."""
    with psycopg.connect(empty.postgres_url, row_factory=dict_row) as begun:
        assert schema.apply(begun, 7) is None
        begun.rollback()
    with psycopg.connect(empty.postgres_url, row_factory=dict_row, autocommit=True) as connection:
        assert [schema.apply(connection), schema.apply(connection, 0)] == [None, 1]
        with pytest.raises(Refused, match="is cell 0, not 7"):
            schema.apply(connection, 7)


def test_a_role_without_rights_is_told_whose_it_takes(empty: World) -> None:
    schema.apply(empty.connection)
    with empty.connection.transaction(force_rollback=True):
        empty.connection.execute("CREATE ROLE clerk; SET LOCAL ROLE clerk", prepare=False)
        with pytest.raises(
            Unavailable, match=r"connect as the owner .*, or have it give this role"
        ):
            schema.require(empty.connection)


def test_what_it_prints_by_default_does_the_same(python: Path, empty: World) -> None:
    command = [str(python), "-m", "unified_log.schema", "--cell", "7"]
    script = subprocess.check_output(command, cwd=empty.folder, env=environment(), text=True)
    empty.connection.execute(script.encode(), prepare=False)
    assert empty.start == 7 * 10**14
    assert run(python, empty.folder, empty, "unified_log.repair").ends() == 0


def test_a_schema_that_does_not_serve_this_code_is_refused(python: Path, empty: World) -> None:
    def ends(module: str, *options: str) -> tuple[int, str]:
        service = run(python, empty.folder, empty, module, *options)
        return service.ends(), service.output.read_text()

    status, said = ends("unified_log.repair")
    assert status == 1
    assert said.startswith("not repaired: the database has no schema of the log; python -m")
    assert ends("unified_log.schema", "--apply")[0] == 0
    empty.connection.execute("UPDATE schema_versions SET revision = 3, serves_from = 1")
    assert ends("unified_log.repair") == (0, "INFO    nothing to repair: no record is stranded\n")
    empty.connection.execute("UPDATE schema_versions SET serves_from = 2")
    status, said = ends("unified_log.schema", "--apply")
    assert status == 1
    assert said.startswith(
        "not applied: the schema of the log is 3, newer than this code, of 1, which"
    )


def test_what_the_readme_shows_works_from_an_empty_folder(python: Path, empty: World) -> None:
    folder = empty.folder / "empty"
    assert COMMANDS == [
        ("unified_log.schema", " --apply"),
        ("unified_log.streamer", ""),
        ("takings", " main"),
    ]
    assert run(python, folder, empty, "unified_log.schema", "--apply").ends() == 0
    run(python, folder, empty, "unified_log.streamer").says("leading")
    empty.connection.execute(ATTACH, prepare=False)
    empty.connection.execute(STATE)
    empty.connection.execute(STAGE)
    (folder / "takings.py").write_text(HANDLER)
    reader = run(python, folder, empty, "takings", "main").says("1 record up to 1")
    empty.connection.execute(STAGE)
    eventually(lambda: empty.value("SELECT amount * 100 FROM takings") == 2 * 999, "the sum")
    reader.kill()
    empty.connection.execute(STAGE)
    eventually(lambda: not empty.staged(), "a record that is sent")
    flush(empty)
    run(python, folder, empty, "takings", "main").says("healed a gap in the log: 1 record")
    assert empty.value("SELECT amount * 100 FROM takings") == 3 * 999
