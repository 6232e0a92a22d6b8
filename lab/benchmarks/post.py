"""POST /rides per second, compared with pgbench's same transaction in the same database."""

import os
import re
import subprocess
from functools import partial

from api.booking import TAKE
from lab.benchmarks import load
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand

CLIENTS = 8
ROUNDS = 4
SECONDS = 2
UNIT = "requests/s"

DISTANCE = r"\set distance random(1, 99999999) / 1000.0"
# Exactly the statement that the API runs for a ride without a key.
WITHOUT_TRACE = TAKE.text.replace(":traceparent", "NULL").replace(":tracestate", "NULL")
ONE_STATEMENT = f"{DISTANCE}\n{WITHOUT_TRACE};\n"
# The same two rows the textbook way: four round trips instead of the API's one.
FOUR_STATEMENTS = rf"""{DISTANCE}
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO rides (distance) VALUES (:distance) RETURNING id \gset
INSERT INTO staged_log_records (id, type, data)
    VALUES (:id, 'ride.create',
            jsonb_build_object('id', :id::bigint, 'distance', :distance::numeric(12,3)));
COMMIT;
"""
# The settings of our own sessions (`unified_log.session_settings`) on which these statements rest.
OPTIONS = "-c default_transaction_isolation=serializable -c jit=off"

_RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_FAILED = re.compile(r"number of failed transactions: (\d+)")


def measure(stand: Stand) -> list[Figure]:
    name = f"`POST /rides`, {CLIENTS} clients"
    four = Figure(name, UNIT, "pgbench, `BEGIN; INSERT; INSERT; COMMIT`", Goal("ratio", ">=", 0.2))
    one = Figure(name, UNIT, "pgbench, the API's statement", Goal("ratio", ">=", 0.12))
    with_a_key = "the same with an `Idempotency-Key`"
    keys = Figure(with_a_key, UNIT, "without a key", Goal("ratio", ">=", 0.8))
    with stand.api() as (port, _):
        rides = partial(load.rate, port, load.RIDES, CLIENTS, SECONDS)
        with_keys = partial(load.rate, port, load.rides_with_keys(), CLIENTS, SECONDS)
        four.measure(ROUNDS, rides, partial(pgbench, stand, FOUR_STATEMENTS))
        one.measure(ROUNDS, rides, partial(pgbench, stand, ONE_STATEMENT))
        keys.measure(ROUNDS, with_keys, rides)
    return [four, one, keys]


def pgbench(stand: Stand, script: str) -> float:
    file = stand.folder / "pgbench.sql"
    file.write_text(script)
    options = ["--no-vacuum", "--protocol=prepared", f"--file={file}", f"--time={SECONDS}"]
    size = [f"--client={CLIENTS}", "--jobs=2"]
    command = [str(stand.postgres.programs / "pgbench"), *options, *size, stand.postgres.url]
    environment, most = os.environ | {"PGOPTIONS": OPTIONS}, SECONDS + 30
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=most, check=False
    )
    tps, failed = _RATE.search(run.stdout), _FAILED.search(run.stdout)
    if run.returncode or not tps or not failed or failed[1] != "0":
        raise RuntimeError(f"pgbench failed: {run.stdout} {run.stderr}")
    return float(tps[1])
