"""pgbench, from the same wheel as the server: what Postgres can do without an API."""

import os
import re
import subprocess

from api.booking import TAKE
from lab.benchmarks.stand import Stand

_RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_FAILED = re.compile(r"number of failed transactions: (\d+)")

DISTANCE = r"\set distance random(1, 99999999) / 1000.0"

# Exactly the statement that the API runs for a ride without a key.
ONE_STATEMENT = f"{DISTANCE}\n{TAKE.replace('$1', ':distance')};\n"

# The same two rows the textbook way: four round trips instead of the API's one.
FOUR_STATEMENTS = rf"""{DISTANCE}
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO rides (distance) VALUES (:distance) RETURNING id \gset
INSERT INTO staged_log_records (id, action, object, data)
    VALUES (:id, 'create', 'ride',
            jsonb_build_object('id', :id::bigint, 'distance', :distance::numeric(12,3)));
COMMIT;
"""

# Of what our own sessions set (`rocket_rides.session_settings`), all that such statements rest on.
OPTIONS = "-c default_transaction_isolation=serializable -c jit=off"


def rate(stand: Stand, script: str, clients: int, seconds: int) -> float:
    """Transactions per second of `script` at `clients` connections."""
    file = stand.folder / "pgbench.sql"
    file.write_text(script)
    options = ["--no-vacuum", "--protocol=prepared", f"--file={file}", f"--time={seconds}"]
    size = [f"--client={clients}", f"--jobs={min(clients, 2)}"]
    run = subprocess.run(
        [stand.postgres.programs / "pgbench", *options, *size, stand.postgres.url],
        env=os.environ | {"PGOPTIONS": OPTIONS},
        capture_output=True,
        text=True,
        timeout=seconds + 30,
        check=False,
    )
    tps, failed = _RATE.search(run.stdout), _FAILED.search(run.stdout)
    if run.returncode or not tps or not failed or failed[1] != "0":
        raise RuntimeError(f"pgbench failed: {run.stdout} {run.stderr}")
    return float(tps[1])
