"""`python -m tests.support.killed_night STEP [OPTION...]`: a run that is killed at that step.

It uses the Spark that JAVA names, by the port and the secret of its gateway: that goes on without
it. (One that starts its own takes long; that it ends with the run, an interrupt shows.)
"""

import os
import signal
import sys
from enum import Enum

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from analytics import reconcile
from unified_log.faults import listening

# As PySpark takes them from spark-submit.
JAVA = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


def java_of(spark: SparkContext) -> dict[str, str]:
    """What leads a run in another process to the Spark of this one."""
    gateway = spark._gateway
    assert gateway
    its = gateway.gateway_parameters
    return dict(zip(JAVA, (str(its.port), its.auth_token), strict=True))


def use_it() -> None:
    """Have the Spark that Java has; its tasks run in our interpreter."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    java = gateway.jvm
    context = java.JavaSparkContext(java.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jconf=context.getConf())
    SparkContext(gateway=gateway, jsc=context, conf=conf)


def die_at(name: str) -> None:
    """Run the nightly job until it reaches the step of this name."""

    def kill(step: Enum) -> None:
        if step.name == name:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.argv.pop(1)
    use_it()
    with listening(kill):
        reconcile.main()


if __name__ == "__main__":
    die_at(sys.argv[1])
