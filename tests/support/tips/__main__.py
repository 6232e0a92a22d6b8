"""`python -m tests.support.tips NAME`: sums up the tips."""

from consumers import running
from consumers.report import Report
from tests.support.tips import Tips

name = running.parse_name("tests.support.tips", __doc__)
config, stop = running.start(name)
running.run(name, Tips, [Report(name)], config, stop)
