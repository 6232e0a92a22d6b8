"""The router's program, and the configuration with which everybody runs it."""

import os
import shutil

from rocket_rides.settings import PROJECT

HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CONFIGURATION = PROJECT / "cells/router/haproxy.cfg"
