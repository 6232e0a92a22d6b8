"""`python -m tests.support.tips NAME`: sums up the tips."""

from tests.support.tips import Tips
from unified_log.readers import running
from unified_log.readers.report import Report

name = running.parse_name("tests.support.tips", __doc__)
config, stop = running.start(name)
running.run(name, Tips, [Report(name)], config, stop)
