"""docs/change-the-schema.md is true: code of 0011 writes and reads until 0014 takes its column."""

import re
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.support.api import Api
from tests.support.newer import Release
from tests.support.world import World, eventually

PAGE = (PROJECT / "docs/change-the-schema.md").read_text()
REVISIONS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
[FILL] = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
UNFILLED = "SELECT count(*) FROM idempotency_keys WHERE millimetres IS NULL"
# As code of 0013 writes it, and reads what any code has written.
NEW_WRITER = "INSERT INTO idempotency_keys (key, millimetres, ride_id) VALUES ('new', 7000, %s)"
NEW_READER = "SELECT millimetres FROM idempotency_keys WHERE key = %s"


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path / "newer")


def add(release: Release, number: int) -> Release:
    """With the next of the page's revisions."""
    return release.add(f"{number:04}_keys.py", f"from alembic import op\n{REVISIONS[number - 12]}")


def test_old_code_writes_and_reads_across_the_three_revisions(
    world: World, release: Release
) -> None:
    api = Api(world)
    old = [
        world.service("consumers.totals", "consumer0").says("stands at"),
        world.service("streamer").says("leading"),
        api.service,
    ]

    def taken(key: str) -> int:
        """The ride under this key: the same again is the same ride, another distance is none."""
        answer, again = (api.post("5", **{"Idempotency-Key": key}) for _ in range(2))
        assert (answer.status_code, again.json()) == (201, answer.json()), answer.text
        assert api.post("6", **{"Idempotency-Key": key}).status_code == 422
        assert api.ready()
        return int(answer.json()["ride"]["id"])

    rides = {"before": taken("before")}
    add(release, 12).migrate(world)
    rides["added"] = taken("added")
    assert world.value(UNFILLED) == 1
    world.connection.execute(FILL.encode(), prepare=False)
    assert world.value(UNFILLED) == 0
    add(release, 13).migrate(world)
    rides["used"] = taken("used")
    assert {key: taken(key) for key in rides} == rides
    assert {world.value(NEW_READER, key) for key in rides} == {5000}
    world.connection.execute(NEW_WRITER, [rides["used"]])  # beside old code, which reads it
    replay = api.post("7", **{"Idempotency-Key": "new"})
    assert replay.json()["ride"]["id"] == rides["used"]
    eventually(lambda: world.standing() == world.truth, "all rides")

    migration = add(release, 14).service(world, "migrations")
    migration.says("0014 waits: processes that are older than 0013 have to end: ")
    assert taken("meanwhile") > rides["used"]
    for process in old:
        assert migration.process.poll() is None
        assert process.stop() == 0
    api.client.close()
    assert migration.ends() == 0
    world.connection.execute(NEW_WRITER.replace("'new'", "'newest'"), [rides["used"]])
    world.service("consumers.totals", "consumer0").says("newer than this code, of 0011, which it")
