# Two images. One is for the services; the command picks one, as in `python -m streamer`. The other,
# with `--target analytics`, is for the nightly job, and adds Java and Spark.
# Any image with Python 3.11 or newer, as `python`, and pip.
ARG BASE=python:3.13-slim
FROM ${BASE} AS packages

# Write logs unbuffered, and no bytecode into a read-only file system.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

# The commands of the log, such as `python -m unified_log.repair`, take the services' settings.
ENV UNIFIED_LOG_SETTINGS=rocket_rides.settings:load

# By its number: only of that does Kubernetes know that it is not root.
RUN groupadd --system --gid 10001 rides \
    && useradd --system --uid 10001 --gid rides --no-create-home --shell /usr/sbin/nologin rides

WORKDIR /app

# Before the code, which changes more often. Wheels only: no compiler belongs in here. pip compiles
# them: with a read-only root, each start and each health check would otherwise do so anew.
# With LOCK=telemetry, what exports to OpenTelemetry is there, too.
ARG LOCK=services
COPY requirements/${LOCK}.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    -r requirements/${LOCK}.txt


FROM packages AS analytics

RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/*

# PySpark is published as source only: Python and jars, so pip's own build tools are enough.
COPY requirements/analytics.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: --no-binary pyspark \
    -r requirements/analytics.txt

# A volume mounted here belongs to the user as well.
RUN install --directory --owner=rides --group=rides /warehouse
ENV WAREHOUSE_DIR=/warehouse

COPY . .
USER 10001:10001
CMD ["python", "-m", "analytics.nightly"]


FROM packages AS services

# Filtered by .dockerignore. Root owns the code, so no process can rewrite its own.
COPY . .

USER 10001:10001
EXPOSE 8000 8001
