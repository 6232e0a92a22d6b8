"""The nightly job over TLS, as the two roles of docs/production.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrations import upgrade
from tests.support.jobs import ended, start
from tests.support.secure import Secure
from tests.support.world import World, catch_up, drain

pytestmark = pytest.mark.usefixtures("java")


@pytest.fixture
def world(secure: Secure, tmp_path: Path) -> Iterator[World]:
    """A consumer has counted three rides."""
    url = secure.postgres_url()
    upgrade(url)
    world = World(secure.postgres, secure.redis, url, "a-night", tmp_path)
    world.take("1.001", "2.002", "3.003")
    drain(world.streamer())
    catch_up(world.consumer())
    yield world
    world.close()


def test_the_owner_of_the_schema_reconciles(world: World) -> None:
    status, said = ended(start(world))
    assert (status, "agrees" in said) == (0, True), said
    assert world.value("SELECT count(*) FROM reconciliations") == 1


def test_whoever_may_only_read_checks(world: World, secure: Secure) -> None:
    status, said = ended(start(world, "--check", DATABASE_URL=secure.postgres_url("onlooker")))
    assert (status, "agrees" in said) == (0, True), said


def test_whoever_may_only_read_is_refused_anything_else_before_spark_starts(
    world: World, secure: Secure
) -> None:
    onlooker = {"DATABASE_URL": secure.postgres_url("onlooker"), "SPARK_MASTER": "none://here"}
    assert ended(start(world, **onlooker)) == (
        2,
        "not reconciled: this role may not write to reconciliations, resets, recomputations;"
        " with --check the job only reads\n",
    )
    assert not (world.folder / "warehouse").exists()


def test_a_certificate_of_somebody_elses_is_one_clear_line(world: World, secure: Secure) -> None:
    wrong = secure.postgres_url(authority=secure.other)
    assert ended(start(world, DATABASE_URL=wrong)) == (
        2,
        "not reconciled: Postgres can't be reached: SSL error: certificate verify failed\n",
    )
