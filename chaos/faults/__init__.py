"""The faults that the nemesis can inject, by name; one file per family."""

from chaos.faults import (
    network,
    postgres_failover,
    processes,
    receivers,
    redis_failover,
    restores,
    servers,
    strangers,
    writers,
)
from chaos.faults.scene import Fault

FAULTS: dict[str, Fault] = {
    "kill": processes.kill,
    "terminate": processes.terminate,
    "freeze": processes.freeze,
    "postgres-crash": servers.crash_postgres,
    "postgres-restore": restores.restore,
    "postgres-sync-failover": postgres_failover.synchronous,
    "postgres-async-failover": postgres_failover.asynchronous,
    "redis-crash": servers.crash_redis,
    "redis-cut": servers.cut_redis,
    "redis-flush": servers.flush_redis,
    "redis-full": servers.fill_redis,
    "redis-failover": redis_failover.fail_over,
    "redis-split": redis_failover.split,
    "proxy-cut": network.cut,
    "proxy-deaf": network.lose_answers,
    "backend-kill": network.terminate_backends,
    "client-kill": network.kill_clients,
    "slow-writer": writers.hold,
    "lost-writer": writers.roll_back,
    "stranger": strangers.write,
    "receiver-fails": receivers.fail,
}
