# One image for every service: the command says which, as in `python -m streamer`.
FROM python:3.13-slim

# Logs appear as they are written; nothing is compiled into a read-only file system.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin rides

WORKDIR /app

# Before the code, which changes more often. Wheels only: a compiler has no place in here.
COPY requirements/services.txt requirements/
RUN pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    -r requirements/services.txt

# What .dockerignore lets through. It stays root's: no process can rewrite its own code.
COPY . .

USER rides
EXPOSE 8000
