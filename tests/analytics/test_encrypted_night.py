"""The nightly job over TLS, as the two roles of docs/production.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrations import upgrade
from rocket_rides.settings import Settings
from tests.support.jobs import reconcile
from tests.support.secure import Secure
from tests.support.world import World, catch_up, drain


@pytest.fixture
def world(secure: Secure, tmp_path: Path) -> Iterator[World]:
    url = secure.postgres_url()
    upgrade(url, Settings().cell)
    world = World(secure.postgres, secure.redis, url, "a-night", tmp_path)
    with world.exits:
        yield world


@pytest.mark.usefixtures("spark")
def test_the_owner_of_the_schema_reconciles_and_whoever_may_only_read_checks(
    world: World, secure: Secure
) -> None:
    world.take("1.001", "2.002", "3.003")
    drain(world.streamer())
    catch_up(world.consumer())
    onlooker = {"DATABASE_URL": secure.postgres_url("onlooker")}
    refused = reconcile(world, **onlooker)
    assert (refused.status, refused.wrong) == (
        2,
        "not reconciled: this role may not write to reconciliations, resets, recomputations,"
        " runs, readers, approvals, checkpoints, receipts_state; with --check the job only reads\n",
    )
    assert not (world.folder / "warehouse").exists()
    checked = reconcile(world, "--check", **onlooker)
    assert (checked.status, "agree" in checked.said) == (0, True), checked
    reconciled = reconcile(world)
    assert (reconciled.status, "agree" in reconciled.said) == (0, True), reconciled
    assert world.value("SELECT count(*) FROM reconciliations") == 1
