"""The ways to break a fleet by hand. Each says what it does, and then how the fleet copes."""

from collections.abc import Callable
from dataclasses import dataclass

from breaking.freezing import freeze, wipe_log
from breaking.receiver import fail_receiver
from breaking.servers import cut_connections, stop_redis
from breaking.target import Target
from breaking.wrong_total import change_total, reconcile


@dataclass(frozen=True)
class Way:
    """One way, what its button says, and the settings of the servers that it breaks."""

    strike: Callable[[Target], None]
    label: str
    servers: tuple[str, ...] = ()
    heals: bool = True  # before it is over; if not, it says what is left to do
    repairs: bool = False  # wrong totals, so it may find some

    @property
    def summary(self) -> str:
        return (self.strike.__doc__ or "").rstrip(".")


WAYS = {
    "freeze": Way(freeze, "Freeze a consumer"),
    "stop-redis": Way(stop_redis, "Stop Redis", ("REDIS_URL",)),
    "wipe-log": Way(wipe_log, "Wipe the log", ("REDIS_URL",)),
    "cut-connections": Way(cut_connections, "Cut all connections", ("DATABASE_URL", "REDIS_URL")),
    "fail-receiver": Way(fail_receiver, "Fail the receiver"),
    "change-total": Way(change_total, "Add a millimetre", ("DATABASE_URL",), heals=False),
    "reconcile": Way(reconcile, "Add a millimetre, reconcile", ("DATABASE_URL",), repairs=True),
}
