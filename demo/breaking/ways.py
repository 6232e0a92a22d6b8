"""The ways to break a fleet by hand. Each says what it does, and then how the fleet copes."""

from collections.abc import Callable
from dataclasses import dataclass

from demo.breaking.freezing import freeze, wipe_log
from demo.breaking.receiver import fail_receiver
from demo.breaking.servers import cut_connections, stop_redis
from demo.breaking.target import Target
from demo.breaking.wrong_total import change_total, reconcile


@dataclass(frozen=True)
class Way:
    """One way, what its button says, what is so meanwhile, and which servers' settings it needs."""

    strike: Callable[[Target], None]
    label: str
    meanwhile: str
    servers: tuple[str, ...] = ()
    heals: bool = True  # before it is over; if not, it says what is left to do
    repairs: bool = False  # wrong totals, so it may find some

    @property
    def summary(self) -> str:
        return (self.strike.__doc__ or "").rstrip(".")


WAYS = {
    "freeze": Way(freeze, "Freeze a consumer", "a consumer is frozen"),
    "stop-redis": Way(stop_redis, "Stop Redis", "Redis is stopped, and restarted", ("REDIS_URL",)),
    "wipe-log": Way(
        wipe_log, "Wipe the log", "a consumer is frozen, and the log is wiped", ("REDIS_URL",)
    ),
    "cut-connections": Way(
        cut_connections,
        "Cut all connections",
        "all connections are cut",
        ("DATABASE_URL", "REDIS_URL"),
    ),
    "fail-receiver": Way(fail_receiver, "Fail the receiver", "the receiver of receipts fails"),
    "change-total": Way(
        change_total,
        "Add a millimetre",
        "a total is made wrong",
        ("DATABASE_URL",),
        heals=False,
    ),
    "reconcile": Way(
        reconcile,
        "Add a millimetre, reconcile",
        "a total is wrong, and a reconciliation runs",
        ("DATABASE_URL",),
        repairs=True,
    ),
}
