"""How each implementation meets each demand: known, and compared with what is seen."""

from collections.abc import Callable, Mapping, Sequence

from lab.blocks import table
from tests.conformance import demands
from tests.conformance.gap_timeout import GapTimeout
from tests.conformance.horizon import Horizon
from tests.conformance.outbox import Outbox
from tests.conformance.polling import Polling
from tests.conformance.trial import Trial, Verdict
from tests.conformance.unified import Unified

PAGE = "unified_log/README.md"

Demand = Callable[[Trial], None]

IMPLEMENTATIONS: dict[str, type[Outbox]] = {
    "`unified_log`": Unified,
    "`id > last`": Polling,
    "gap with a time-out": GapTimeout,
    "`xmin` horizon": Horizon,
}
LOSES, REORDERS, STANDS_STILL = Verdict.LOSES, Verdict.REORDERS, Verdict.STANDS_STILL
HOLDS = Verdict.HOLDS
# In the order of IMPLEMENTATIONS.
KNOWN: dict[Demand, tuple[Verdict, ...]] = {
    demands.late_commit: (HOLDS, LOSES, HOLDS, HOLDS),
    demands.very_late_commit: (HOLDS, LOSES, LOSES, HOLDS),
    demands.late_insert: (HOLDS, HOLDS, HOLDS, REORDERS),
    demands.early_number: (HOLDS, LOSES, LOSES, REORDERS),
    demands.several_kinds: (HOLDS, LOSES, LOSES, HOLDS),
    demands.between_looks: (HOLDS, LOSES, HOLDS, HOLDS),
    demands.roll_back: (HOLDS, HOLDS, STANDS_STILL, HOLDS),
    demands.savepoint_after: (HOLDS, LOSES, LOSES, HOLDS),
    demands.savepoint_before: (HOLDS, LOSES, LOSES, REORDERS),
    demands.prepared: (HOLDS, LOSES, LOSES, HOLDS),
    demands.second_leader: (HOLDS, HOLDS, HOLDS, HOLDS),
    demands.hanging_leader: (HOLDS, HOLDS, HOLDS, HOLDS),
    demands.restore: (HOLDS, LOSES, LOSES, LOSES),
    demands.idle_transaction: (HOLDS, HOLDS, HOLDS, HOLDS),
    demands.long_report: (HOLDS, HOLDS, HOLDS, HOLDS),
    demands.long_writer: (HOLDS, HOLDS, HOLDS, STANDS_STILL),
    demands.another_database: (HOLDS, HOLDS, HOLDS, STANDS_STILL),
}


def as_table(verdicts: Mapping[Demand, Sequence[Verdict]]) -> str:
    """In Markdown: a row for each demand, a column for each implementation."""
    rows = ([title(demand), *(each.value for each in found)] for demand, found in verdicts.items())
    return table(["what happens", *IMPLEMENTATIONS], rows)


def title(demand: Demand) -> str:
    return " ".join((demand.__doc__ or "").split())
