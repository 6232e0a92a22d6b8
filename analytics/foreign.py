"""Variables that other programs' Spark, Hadoop and Java are set up by, and that are not for us.

Whoever works with Spark has some of them exported for another project: a SPARK_HOME with an older
Spark, a PYSPARK_PYTHON without our packages, a JAVA_TOOL_OPTIONS that loads an agent. A run on this
machine leaves all of them out, by their families; spark-submit still takes options for it. Where
SPARK_MASTER names a cluster, they are how one sets that up, and hold. JAVA_HOME always holds: it
says which Java.

Needs only the standard library: an installer asks about Java, too.
"""

import os
import re
import sys
from collections.abc import Mapping

# Also with an underscore in front. Python's own variables have no underscore after PYTHON.
FAMILIES = (
    *("SPARK_", "SPARKR_", "PYSPARK_", "PYTHON_", "ARROW_"),
    *("HADOOP_", "HDFS_", "YARN_", "MAPRED_", "HIVE_"),
)
# spark-submit reads the first two, and takes the third for a container of YARN's.
SINGLE = {"MASTER", "DEPLOY_MODE", "CONTAINER_ID", "LOCAL_DIRS"}
OURS = {"SPARK_MASTER"}  # Spark has no variable of that name
# What every Java takes more options from, or classes.
FAMILIES_OF_JAVA = ("_JAVA_", "JDK_")
SINGLE_OF_JAVA = {"JAVA_TOOL_OPTIONS", "OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS", "CLASSPATH"}
# Masters. `local-cluster` is not among these: its workers are processes of their own.
ON_THIS_MACHINE = re.compile(r"local(\[|$)")


def keep_out(master: str) -> None:
    """Take them out of this process' environment, and so of all that it starts, unless they hold.

    Call it before PySpark is imported, which reads some.
    """
    if (not master or ON_THIS_MACHINE.match(master)) and not submitted():
        for name in [*os.environ]:
            if is_sparks(name) or is_javas(name):
                del os.environ[name]


def submitted() -> bool:
    """Whether spark-submit runs this program: Spark has started by then, with its variables.

    It runs a file; nobody else who may have the variable runs one of ours so.
    """
    return "PYSPARK_GATEWAY_PORT" in os.environ and sys.modules["__main__"].__spec__ is None


def is_sparks(name: str) -> bool:
    """Whether Spark, Hadoop, Hive or Arrow may read this variable."""
    family = name.removeprefix("_").startswith(FAMILIES)
    return (family or name in SINGLE) and name not in OURS


def is_javas(name: str) -> bool:
    """Whether any Java would take options or classes from this variable."""
    return name.startswith(FAMILIES_OF_JAVA) or name in SINGLE_OF_JAVA


def without_javas() -> Mapping[str, str]:
    """The environment in which to ask a Java what it is."""
    return {name: value for name, value in os.environ.items() if not is_javas(name)}
