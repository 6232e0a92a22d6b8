"""Tells the user, once the fleet is up, what to do with it.

The process `servers` does this, because every fleet has one, even when it runs no server itself.
"""

import logging
import os
import threading
from contextlib import closing
from http.client import HTTPConnection, HTTPException

from demo.optional import NAME
from rocket_rides.settings import Settings
from unified_log.process import Stop
from unified_log.waiting import delays

logger = logging.getLogger("embedded")

TIMEOUT = 1.0  # seconds

LOOKS = 10  # at the page, once the API is there: it may be the part that can't work

RULE = "-" * 60
BLOCK = f"""\
{RULE}
The fleet is up. Ctrl-C here stops it; the data is kept.
See it live: http://{{page}}/{{missing}}
In a second terminal{{where}}:
  curl -d distance=539.837 http://{{api}}/rides
  curl http://{{api}}/consumers         who has read how far, and the totals
  curl http://{{api}}/rides/1/receipt   what became of a ride's receipt
  make status         what flows, how far everyone is, and whether all is well
  make break          ways to break it and watch it heal
  make log            the entries of its log
  make psql           a prompt on its database
  make dead-letters   receipts that could not be delivered
{RULE}"""


def start(config: Settings, stop: Stop) -> None:
    """Wait for the fleet in a thread of its own: a server that hangs must not delay others."""
    # Without honcho nobody is watching, or the fleet is used in some other way.
    if os.environ.get(NAME):
        threading.Thread(target=wait, args=[config, stop], daemon=True).start()


def wait(config: Settings, stop: Stop) -> None:
    """Print the welcome as soon as the API and the live page answer, unless `stop` comes first.

    The page, without which rides flow, is not waited for longer than a few looks.
    """
    pauses = delays()
    looks = LOOKS
    while not stop.wait(next(pauses)):
        if not answers(config.api_address, "/readyz"):
            continue
        page = answers(config.page_address, "/healthz")
        looks -= 1
        if page or not looks:
            # In one write: honcho passes on whole lines, and other processes' may come between.
            logger.info("%s", block(config, page=page))
            return


def block(config: Settings, *, page: bool) -> str:
    """What is printed; `page` says whether the live page answers."""
    is_default = config.data_dir == Settings.model_fields["data_dir"].default
    return BLOCK.format(
        api=config.api_address,
        page=config.page_address,
        missing="" if page else "  (it does not answer)",
        where=" in this folder" if is_default else f", with DATA_DIR={config.data_dir}",
    )


def answers(address: str, path: str) -> bool:
    """Whether a server at this host and port says that it is well."""
    try:
        with closing(HTTPConnection(address, timeout=TIMEOUT)) as server:
            server.request("GET", path)
            return server.getresponse().status == 200
    except (OSError, HTTPException):
        return False
