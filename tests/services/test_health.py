"""The containers' health check: a process is well while it has a session that is at work."""

import itertools

from rocket_rides.health import SILENCE, is_at_work
from rocket_rides.sessions import ROLLUP, inbox, receipts
from tests.support.disasters import limited_redis
from tests.support.receipts import Staff
from tests.support.receiver import Receiver
from tests.support.world import World, eventually
from unified_log import sessions
from unified_log.readers.declared import NAME_LENGTH

NAMES = ["streamer", "x", "x (starting)", "x" * NAME_LENGTH, "käufer", "kåufer", "a#b"]
SESSIONS = """
    SELECT pid, application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name ~ '^(streamer|rollup|reader)'
"""


def status(world: World, *arguments: str, **environment: str) -> int:
    return world.service("rocket_rides.health", *arguments, **environment).ends()


def sessions_of(world: World) -> list[tuple[int, str]]:
    return world.connection.execute(SESSIONS).fetchall()


def is_at_work_now(world: World, session: str, silence: float = SILENCE) -> bool:
    return is_at_work(world.connection, session, silence)


def test_an_idle_process_is_well_until_it_ends(world: World) -> None:
    elsewhere = world.postgres_url.replace(world.stream, "rocket_rides")
    for command, asked, session in (
        (["streamer"], ["streamer"], sessions.STREAMER),
        (
            ["consumers.totals", "käufer"],
            ["reader", "total", "käufer"],
            sessions.reader("total", "käufer"),
        ),
        (["consumers.rollup"], ["rollup"], ROLLUP),
    ):
        service = world.service(*command)
        eventually(lambda: is_at_work_now(world, session))  # noqa: B023
        with world.connection.transaction():  # as who is not told when a session was last active
            world.connection.execute("SET LOCAL ROLE pg_signal_backend")
            assert is_at_work_now(world, session)
        assert status(world, *asked) == 0
        other = world.service("rocket_rides.health", *asked, DATABASE_URL=elsewhere)
        assert other.ends() == 1  # it is no process of that database
        [why] = other.output.read_text().splitlines()
        assert why.startswith(f"no {' '.join(asked)} is at work: no session of that name")
        assert service.stop() == 0
        eventually(lambda: not is_at_work_now(world, session))  # noqa: B023


def test_a_standby_is_well(world: World) -> None:
    world.service("streamer").says("leading")
    world.service("streamer").says("standing by")
    eventually(lambda: [name for _, name in sessions_of(world)] == [sessions.STREAMER] * 2)


def test_a_leader_that_can_send_nothing_is_not_well(world: World) -> None:
    """It gets its session and the lead, again and again, and fails with the first batch."""
    seen: set[tuple[int, str]] = set()

    def attempts() -> int:
        seen.update(sessions_of(world))
        return len(dict(seen))

    world.take(5)
    with limited_redis(world, "xadd") as url:
        world.service("streamer", REDIS_URL=url)
        eventually(lambda: attempts() > 2, "more attempts")
    assert all(name.endswith(sessions.STARTING) for _, name in seen)


def test_a_process_that_hangs_is_not_well(world: World) -> None:
    """Its session stays, and says nothing any more."""
    service = world.service("consumers.totals", "consumer0")
    session = sessions.reader("total", "consumer0")
    patience = 2.0  # seconds; an idle consumer's rounds take 0.5
    eventually(lambda: is_at_work_now(world, session, patience))
    service.pause()
    eventually(lambda: not is_at_work_now(world, session, patience))
    assert is_at_work_now(world, session)  # for a while
    service.resume()
    eventually(lambda: is_at_work_now(world, session, patience))


def test_no_two_sessions_share_a_name_and_postgres_keeps_them_as_they_are(world: World) -> None:
    names = [sessions.STREAMER, *map(receipts, NAMES), *map(inbox, NAMES)]
    names += [sessions.reader(kind, name) for kind in ("long rides", "rides") for name in NAMES]
    for one, other in itertools.combinations(names, 2):
        assert one != other
    for name in names:
        for shown in (name, sessions.starting(name)):
            world.connection.execute("SELECT set_config('application_name', %s, false)", [shown])
            [kept] = world.connection.execute("SHOW application_name").fetchone() or [""]
            assert kept == shown


def test_of_two_the_one_on_this_host_can_be_asked_about(
    world: World,
) -> None:
    """A container has a host's name of its own; here the other one's session is made up."""
    asked = [["streamer", "--here"], ["receipts", "one", "--here"]]
    for session in (sessions.STREAMER, receipts("one")):
        world.connect().execute(*sessions.renaming(session, "elsewhere"), prepare=False)
    assert [status(world, *words[:-1]) for words in asked] == [0, 0]
    assert [status(world, *words) for words in asked] == [1, 1]
    world.service("streamer").says("leading")
    eventually(lambda: status(world, *asked[0]) == 0)
    with Receiver() as receiver:
        Staff(world, receiver).service("one")
        eventually(lambda: status(world, *asked[1]) == 0)


def test_a_name_is_given_where_there_are_many(world: World) -> None:
    for words in (["receipts"], ["reader", "total"], ["consumer", "one"], ["streamer", "one"]):
        check = world.service("rocket_rides.health", *words)
        assert check.ends() == 2
        assert "reader KIND NAME or receipts NAME is expected" in check.output.read_text()


def test_without_a_database_nobody_is_well(world: World) -> None:
    check = world.service(
        "rocket_rides.health", "streamer", DATABASE_URL="postgresql:///x?host=/nowhere"
    )
    assert check.ends() == 1
    [line] = check.output.read_text().splitlines()
    assert line.startswith("Postgres can't be reached")
