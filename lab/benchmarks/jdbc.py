"""Spark's own JDBC source on the benchmark's Postgres, if a driver's jar is available.

JDBC has no Unix sockets, so the server listens on loopback for a role with its own password.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from demo.embedded.servers import Postgres
from lab.benchmarks import tcp
from lab.benchmarks.load import LOOPBACK
from rocket_rides import session_settings
from rocket_rides.settings import DATABASE_NAME, EMBEDDED_PORT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.extract import CountedRange

ROLE = "benchmark"
RIDES = "(SELECT id, created_at, (distance * 1000)::bigint AS millimetres FROM rides) rides"
COLUMNS = (
    "id",
    "created_at",
    "CAST(CAST(millimetres AS DECIMAL(12,0)) * 0.001BD AS DECIMAL(12,3)) AS distance",
    "to_date(created_at) AS day",
)
MAVEN = "org/postgresql/postgresql/*/postgresql-*.jar"


class OverTcp(NamedTuple):
    """A Postgres that both sources can reach over loopback, and the driver's jar."""

    password: str
    jar: Path

    @property
    def url(self) -> str:
        """For ADBC, which uses libpq."""
        return tcp.url(ROLE, self.password, LOOPBACK)

    def write(self, spark: "SparkSession", ranges: "list[CountedRange]", folder: Path) -> None:
        """Write the rides to Parquet, by day, with the columns of the warehouse."""
        rides = self._read(spark, ranges).selectExpr(*COLUMNS)
        rides.write.partitionBy("day").parquet(folder.as_uri())

    def _read(self, spark: "SparkSession", ranges: "list[CountedRange]") -> "DataFrame":
        options = {
            "url": f"jdbc:postgresql://{LOOPBACK}:{EMBEDDED_PORT}/{DATABASE_NAME}",
            "driver": "org.postgresql.Driver",
            "user": ROLE,
            "password": self.password,
            "sessionInitStatement": session_settings.statement({}),
            "dbtable": RIDES,
            "fetchsize": "10000",
            "partitionColumn": "id",
            "lowerBound": str(ranges[0].after),
            "upperBound": str(ranges[-1].upto),
            "numPartitions": str(len(ranges)),
        }
        return spark.read.format("jdbc").options(**options).load()


def jar() -> Path | None:
    """The driver that JDBC_JAR names, or the newest one that Maven has fetched."""
    if named := os.environ.get("JDBC_JAR"):
        return Path(named)
    return max(Path.home().joinpath(".m2/repository").glob(MAVEN), default=None)


def listen(postgres: Postgres, driver: Path) -> OverTcp:
    """Restart the server so that it listens on loopback too."""
    return OverTcp(
        tcp.listen(postgres, ROLE, LOOPBACK, f"{LOOPBACK}/32", "SELECT ON rides"), driver
    )
