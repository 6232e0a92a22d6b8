"""What a person can do with the fleet, said once, when it is up.

By the process `servers`: each Procfile's fleet has one, also where both servers are given ones.
"""

import logging
import os
import re
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException

import psycopg

from rocket_rides import database, sessions
from rocket_rides.errors import Unavailable
from rocket_rides.fleet import NAME
from rocket_rides.settings import PROJECT, Settings

logger = logging.getLogger("embedded")

LOOK_EVERY = 0.25  # seconds
TIMEOUT = 1.0

SESSIONS = "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"

RULE = "─" * 60
BLOCK = f"""\
{RULE}
The fleet is up. Here, Ctrl-C stops it, and the data stays.
In a second terminal{{where}}:
  curl -d distance=539.837 http://{{api}}/rides
  curl http://{{api}}/consumers      the totals
  make break        the ways to break it, and see it heal
  make psql         a prompt on its database
  make redis-cli    a prompt on its log
{RULE}"""


class Welcome:
    """Says it as soon as the API takes rides, and the streamer and the consumers are at work."""

    def __init__(self, config: Settings) -> None:
        self._config = config
        # What honcho has not started is watched by nobody, or has another way to be used.
        self._said = not os.environ.get(NAME)
        self._wanted = {sessions.STREAMER, *map(sessions.consumer, consumers_of_the_procfile())}
        self._due = 0.0

    def once(self) -> None:
        """Look again, now and then, until it has been said."""
        if self._said or time.monotonic() < self._due:
            return
        if self._api_is_ready() and self._all_are_at_work():
            # In one piece: honcho passes on whole lines, and the others' lines may come between.
            logger.info("%s", self.block().replace("\n", "\n        "))
            self._said = True
        self._due = time.monotonic() + LOOK_EVERY

    def block(self) -> str:
        data = self._config.data_dir
        is_default = data == Settings.model_fields["data_dir"].default
        return BLOCK.format(
            api=self._config.api_address,
            where=" in this folder" if is_default else f", with DATA_DIR={data}",
        )

    def _api_is_ready(self) -> bool:
        try:
            with closing(HTTPConnection(self._config.api_address, timeout=TIMEOUT)) as api:
                api.request("GET", "/readyz")
                return api.getresponse().status == 200
        except (OSError, HTTPException):
            return False

    def _all_are_at_work(self) -> bool:
        try:
            with database.connect(self._config.postgres_url, "servers") as connection:
                names = {name or "" for (name,) in connection.execute(SESSIONS)}
        except (Unavailable, psycopg.Error):
            return False
        return self._wanted <= names


def consumers_of_the_procfile() -> list[str]:
    """The names of the consumers that a whole fleet has."""
    return re.findall(r"-m consumers (\S+)", (PROJECT / "Procfile").read_text())
