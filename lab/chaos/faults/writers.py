"""Writers of rides beside the API: some commit late, and some never."""

import random
import time
from contextlib import closing

import psycopg

from api.booking import TAKE
from lab.chaos.faults.scene import Scene, moot_if_away
from lab.chaos.journal import Answer, Ask
from rocket_rides.database import one_row

# Like TAKE, for a ride of a minute that has been computed already.
IMPORT = TAKE.replace(
    "(distance) VALUES ($1)",
    "(distance, created_at) VALUES ($1, now() - make_interval(secs => $2))",
)
LONGEST_AGO = 150.0  # seconds


def hold(scene: Scene, dice: random.Random) -> str:
    """A transaction draws numbers, stays open while higher ones commit, and then commits.

    Half of them write rides of minutes that are over.
    """
    rides, seconds = dice.randint(1, 3), dice.uniform(0.5, 4)
    ago = dice.choice((0, dice.uniform(0, LONGEST_AGO)))
    asks = [scene.journal.ask() for _ in range(rides)]
    answers: list[Answer] = []
    with moot_if_away(), closing(_connect(scene)) as connection:
        for ask in asks:
            answers.append(_take(connection, ask, ago))
            scene.wait(seconds / rides)
        for ask in asks:
            ask.whole = True  # it may be committed even without an answer
        sent = time.monotonic()
        try:
            connection.commit()
        except psycopg.Error:
            for ask in asks:
                ask.whole = connection.broken  # otherwise it was refused and rolled back
            raise
        came = time.monotonic()
    for ask, answer in zip(asks, answers, strict=True):
        ask.answers.append(answer._replace(sent=sent, came=came))
    return f"{rides} rides"


def roll_back(scene: Scene, dice: random.Random) -> str:
    """Transactions draw numbers, then roll back, or end with their session."""
    transactions = dice.randint(2, 6)
    with moot_if_away():
        for _ in range(transactions):
            with closing(_connect(scene)) as connection:
                _take(connection, scene.journal.ask())
                scene.wait(dice.uniform(0, 0.6))
                if dice.random() < 0.5:
                    connection.rollback()
    return f"{transactions} transactions"


def _connect(scene: Scene) -> psycopg.Connection:
    connection = scene.fleet.connect()
    connection.autocommit = False
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


def _take(connection: psycopg.Connection, ask: Ask, ago: float = 0) -> Answer:
    taking = psycopg.RawCursor(connection).execute(IMPORT, [ask.distance, ago])
    return Answer(*one_row(taking))
