"""The faults that the nemesis can inject, by name; one file per family."""

from functools import partial

from lab.chaos.faults import (
    network,
    postgres_server,
    processes,
    redis_server,
    releases,
    shortages,
    tables,
    writers,
)
from lab.chaos.faults.scene import Fault

FAULTS: dict[str, Fault] = {
    "kill": processes.kill,
    "terminate": processes.terminate,
    "freeze": processes.freeze,
    "other-release": releases.run_the_next,
    "postgres-crash": partial(processes.crash_server, "postgres"),
    "postgres-restore": postgres_server.restore,
    "postgres-sync-failover": postgres_server.synchronous,
    "postgres-async-failover": postgres_server.asynchronous,
    "postgres-freeze": postgres_server.freeze,
    "redis-crash": partial(processes.crash_server, "redis"),
    "redis-cut": redis_server.cut,
    "redis-flush": redis_server.flush,
    "redis-evict": redis_server.evict,
    "redis-full": shortages.fill_redis,
    "redis-full-long": shortages.fill_memory,
    "disk-full": shortages.fill_disk,
    "redis-failover": redis_server.fail_over,
    "redis-split": redis_server.split,
    "proxy-cut": network.cut,
    "proxy-deaf": network.lose_answers,
    "proxy-slow": network.slow_down,
    "proxy-one-way": network.hold_up,
    "clock-jump": processes.jump_clock,
    "backend-kill": network.terminate_backends,
    "client-kill": network.kill_clients,
    "slow-writer": writers.hold,
    "lost-writer": writers.roll_back,
    "stranger": writers.write_strange_entries,
    "receiver-fails": network.fail_receipts,
    "nightly": processes.kill_job,
    "wrong-total": tables.wrong_total,
    "wrong-minute": tables.wrong_minute,
    "lost-outcome": tables.lost_outcome,
    "refused-rides": tables.refuse,
    "warehouse-full": shortages.fill_warehouse,
}
