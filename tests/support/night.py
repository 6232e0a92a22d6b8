"""The reconciler, with a Python program as its run: `python -m tests.support.night CODE`."""

import sys

from analytics.nightly.__main__ import Reconciler
from rocket_rides import service, settings

if __name__ == "__main__":
    config = settings.load()
    service.configure(config)
    command = [sys.executable, "-c", sys.argv[1]]
    Reconciler(config, service.stop_on_signals(), command, first_pause=0.2).run()
