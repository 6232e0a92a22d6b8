"""A user whom the system does not know, as of a container that was started under some number."""

import os
import pwd
import tempfile

from pyspark import SparkContext


def introduce_us() -> None:
    """Where the system has no name for our user id, start Java and Hadoop with one.

    Java would put files into a folder `?`, and Hadoop would refuse to log in. Hadoop has no setting
    for that: it reads HADOOP_USER_NAME only after it has asked the system. Raises PySparkException
    if Java does not start.
    """
    us = os.getuid()
    try:
        pwd.getpwuid(us)
    except KeyError:
        own = f"-Duser.name={us} '-Duser.home={tempfile.gettempdir()}'"
        os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {own}"
        SparkContext._ensure_initialized()
        java = SparkContext._jvm
        assert java  # noqa: S101 (for the type checker)
        hadoops = java.org.apache.hadoop.security.UserGroupInformation
        hadoops.setLoginUser(hadoops.createRemoteUser(os.environ.get("HADOOP_USER_NAME", str(us))))
