# Two images. The services': the command says which, as in `python -m streamer`. And that of the
# nightly job, with `--target analytics`, which has Java and Spark besides.
FROM python:3.13-slim AS packages

# Logs appear as they are written; nothing is compiled into a read-only file system.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin rides

WORKDIR /app

# Before the code, which changes more often. Wheels only: a compiler has no place in here.
COPY requirements/services.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    -r requirements/services.txt


FROM packages AS analytics

RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/*

# PySpark comes as source alone: Python and jars, so that pip's own build tools are enough.
COPY requirements/analytics.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: --no-binary pyspark \
    -r requirements/analytics.txt

# A volume mounted here is the user's as well.
RUN install --directory --owner=rides /warehouse
ENV WAREHOUSE_DIR=/warehouse MPLCONFIGDIR=/tmp/matplotlib

COPY . .
USER rides
CMD ["python", "-m", "analytics.nightly"]


FROM packages AS services

# What .dockerignore lets through. It stays root's: no process can rewrite its own code.
COPY . .

USER rides
EXPOSE 8000
