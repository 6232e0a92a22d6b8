# `make fleet` runs everything, `make test` proves it. Both need only Python 3.11 and make. Only the
# nightly job also needs Java, which is installed where that is possible without asking. A fleet
# starts without the packages that only that job needs; they are installed when they are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What other projects tell Python, such as PYTHONPATH, is kept from all that is started here, but for
# the encoding of a terminal. demo/python does the same.
unexport $(filter-out PYTHONUTF8 PYTHONIOENCODING,$(filter PYTHON%,$(.VARIABLES)))

.PHONY: help setup fleet status psql log held-out dead-letters break test test-stock test-fast \
	prove conformance chaos cells upgrade failover images mutants entries reconcile lint format bench \
	docs wheel lock clean

help:
	@echo "make fleet   set up, then run the whole fleet (Ctrl-C stops it)"
	@echo "make status  what flows, how far everyone is, and whether all is well; ARGS=--json"
	@echo "make break   list the ways to break the running fleet; ARGS=wipe-log does one, and shows"
	@echo "             how the fleet heals"
	@echo "make psql    a prompt on the fleet's database; ARGS='-c \"SELECT 1\"'"
	@echo "make log     the log's entries; ARGS=\"--from 14:30 --to 14:35\", ARGS=--follow,"
	@echo "             ARGS=--pending, ARGS=--help"
	@echo "make held-out   records that a consumer refuses; ARGS=list, ARGS=\"retry total consumer0 521\","
	@echo "             ARGS=--help"
	@echo "make dead-letters   receipts that can't be delivered; ARGS=list, ARGS=\"replay 521\","
	@echo "             ARGS=--help"
	@echo "make test    set up, then run the test suite on private servers"
	@echo "make test-stock   run the tests of the services on this machine's own PostgreSQL and Redis"
	@echo "make test-fast   run only the tests that need no server: seconds"
	@echo "make prove   visit every state of the protocol, up to a bound; ARGS=--small, in seconds;"
	@echo "             ARGS=\"--sabotage no-barrier\" breaks a step, and tells what comes of it"
	@echo "make conformance   try what an ordered outbox must survive on ours and on three naive ones,"
	@echo "             and write the table in unified_log/README.md; ARGS=module:Class, on your own"
	@echo "make chaos   break a private fleet at random for two minutes and prove that nothing was"
	@echo "             lost; ARGS=\"--seed 7 --seconds 60\", ARGS=--help"
	@echo "make cells   break two private cells behind the router for a minute, and account for every"
	@echo "             request; needs Linux, root and HAProxy; ARGS=\"--seed 7\", ARGS=--help"
	@echo "make upgrade   upgrade a private fleet under load, one process after the other, and go back;"
	@echo "             needs Linux and HAProxy; ARGS=\"--seed 7\", ARGS=--help"
	@echo "make failover   have Patroni and Sentinel fail over under a fleet, for five minutes, and account"
	@echo "             for every ride; needs Linux, root and these programs"
	@echo "make images  build the container images, run docker-compose.yml's services from them, by"
	@echo "             docker compose, until all are healthy, post rides and reconcile them"
	@echo "make mutants break the code in one place at a time, from a list: a test must notice each;"
	@echo "             ARGS=drain, those about a file; ARGS=--list"
	@echo "make entries   try all that the pages tell a person to type, each from nothing, in a quarter"
	@echo "             of an hour; ARGS=--list, ARGS=\"--only api.md\""
	@echo "make setup   install all that the fleet and the nightly job need, into .venv"
	@echo "make lint    ruff, mypy, and the rules about who may import what"
	@echo "make format  have ruff format the code, and fix what it can"
	@echo "make bench   measure what docs/performance.md shows, in 20 minutes; ARGS=post, one part"
	@echo "make docs    write what is made from the code: the pages of reference, the contracts"
	@echo "make wheel   build the library, unified_log, for other projects, into dist"
	@echo "make lock    resolve the newest packages into requirements/*.txt"
	@echo "make clean   remove the virtual environment and the embedded servers' data"
	@echo "make reconcile   check every total with Spark, now; ARGS=--help lists the options. Fails unless"
	@echo "             all agree; docs/reconcile.md lists the exit statuses of the program itself"

# Ctrl-C is no failure.
RUN := exec demo/foreground

# Installs only what is missing and names each step; prints nothing if nothing is missing. -S: no
# package that this Python has is needed, and it starts sooner.
INSTALL := $(RUN) "$(PYTHON)" -S -m demo.install

# For a second terminal: with the settings in .env, as the fleet has them.
HONCHO := $(BIN)/python -m demo.honcho run

setup:
	@$(INSTALL) fleet nightly java

fleet:
	@$(INSTALL) fleet
	@$(RUN) $(BIN)/python -m demo

# A prompt on the Postgres that the fleet uses. There Ctrl-C ends a statement, not the program.
psql:
	@$(INSTALL) fleet
	@exec $(HONCHO) python -m demo.embedded.psql $(ARGS)

status:
	@$(INSTALL) fleet
	@$(RUN) $(HONCHO) python -m watch.status $(ARGS)

log:
	@$(INSTALL) fleet
	@$(RUN) $(HONCHO) python -m unified_log.log $(ARGS)

held-out:
	@$(INSTALL) fleet
	@$(RUN) $(HONCHO) python -m unified_log.held_out $(or $(ARGS),list)

dead-letters:
	@$(INSTALL) fleet
	@$(RUN) $(HONCHO) python -m consumers.receipts.dead $(or $(ARGS),list)

break:
	@$(INSTALL) fleet
	@$(RUN) $(HONCHO) python -m demo.breaking $(ARGS)

test:
	@$(INSTALL) dev java
	$(BIN)/python -m pytest -n 4 --dist loadscope --tb=short $(ARGS)

# On databases of cell 7, except for tests that bring databases of their own cells. Left out is what
# proves nothing more there, beside tests of the same processes, statements and commands:
# - requests and answers, pages and words, telemetry, receivers;
SAME_ON_ANY := api_process cells_status courier hostile openapi programs router_refusals \
	second_terminal telemetry traces watch_breaking watch_hostile watch_looks
# - the demo and the lab;
SAME_ON_ANY += breaking drills group_load simulator unknown_user
# - the same once more: in random plays, in a shop, while a server is frozen or another takes over.
SAME_ON_ANY += any_reader frozen_servers ick_model lift_it sentinel
ON_STOCK_SERVERS := tests/services/queue \
	$(filter-out $(SAME_ON_ANY:%=tests/services/test_%.py),$(wildcard tests/services/test_*.py)) \
	$(addprefix tests/analytics/test_,encrypted_night.py hostile_defaults.py pgbouncer.py)
# Debian's newest server, whose folder is named after its version; elsewhere the one in /usr/bin.
DEBIANS := $(sort $(wildcard /usr/lib/postgresql/*/bin/postgres))
test-stock: export POSTGRES_PROGRAMS ?= $(or $(patsubst %/postgres,%,$(lastword $(DEBIANS))),/usr/bin)
test-stock: export REDIS_PROGRAMS ?= /usr/bin
# More workers than for all tests: most of these wait.
test-stock:
	@$(INSTALL) dev java
	CELL=7 $(BIN)/python -m pytest -n 6 --dist loadscope --tb=short \
		$(ON_STOCK_SERVERS) $(ARGS)

# Where it is installed, each of pytest's processes would import it.
test-fast: UNUSED_PLUGIN := -p no:schemathesis
test-fast:
	@$(INSTALL) fast
	$(BIN)/python -m pytest tests/fast -n 2 --dist loadscope $(UNUSED_PLUGIN) $(ARGS)

prove:
	@$(INSTALL) fast
	@$(RUN) $(BIN)/python -m lab.specification $(ARGS)

conformance:
	@$(INSTALL) dev
	@$(RUN) $(BIN)/python -m tests.conformance $(ARGS)

chaos cells upgrade failover:
	@$(INSTALL) fleet
	@$(RUN) $(BIN)/python -m lab.$@ $(ARGS)

# Beside a fleet that may run here: a project, ports and secrets of its own, which take precedence
# over those in .env. The last command fails unless all totals are exact.
COMPOSE := docker compose --project-name rocket-rides-images --profile servers --profile demo
images: export API_PORT = 18000
images: export WATCH_PORT = 18001
images: export RECEIPT_URL = http://simulator:8002/receipts
images: export DATABASE_URL =
images: export REDIS_URL =
images:
	@set -a; eval "$$(deploy/secrets)"; set +a; \
	trap '$(COMPOSE) down --volumes' EXIT; trap exit INT TERM; set -ex; \
	$(COMPOSE) up --build --wait; \
	$(COMPOSE) run --rm --no-deps -T -e API_URL=http://api:8000 api \
		python -m demo.simulator --rides 200 --rate 0; \
	$(COMPOSE) exec -T reconciler python -m analytics.reconcile

mutants:
	@$(INSTALL) dev java
	$(BIN)/python -m tests.mutants $(ARGS)

entries:
	@$(INSTALL) fast
	@$(RUN) $(BIN)/python -m lab.entries $(ARGS)

reconcile:
	@$(INSTALL) fleet nightly java
	@$(RUN) $(HONCHO) python -m analytics.reconcile $(ARGS)

lint:
	@$(INSTALL) dev
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python -c "from importlinter.cli import lint_imports_command as lint; lint()" \
		--no-logo --no-cache

format:
	@$(INSTALL) dev
	$(BIN)/python -m ruff check --fix
	$(BIN)/python -m ruff format

bench:
	@$(INSTALL) dev java
	$(BIN)/python -m lab.benchmarks $(ARGS)

docs:
	@$(INSTALL) fast
	$(BIN)/python -m lab.reference
	$(BIN)/python -m tests.proofs

COMPILE := $(BIN)/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate

SERVICES := pyproject.toml --group services

# dev.txt comes first: it contains everything, and the others take its versions.
lock:
	@$(INSTALL) fleet
	$(COMPILE) --upgrade $(SERVICES) --group analytics --group fleet --group telemetry \
		--group dev -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt $(SERVICES) -o requirements/services.txt
	$(COMPILE) -c requirements/dev.txt $(SERVICES) --group fleet -o requirements/fleet.txt
	$(COMPILE) -c requirements/dev.txt $(SERVICES) --group fast -o requirements/fast.txt
	$(COMPILE) -c requirements/dev.txt $(SERVICES) --group analytics \
		-o requirements/analytics.txt
	$(COMPILE) -c requirements/dev.txt $(SERVICES) --group telemetry \
		-o requirements/telemetry.txt
	$(COMPILE) --upgrade --group pyproject.toml:installer -o requirements/uv.txt

# The library, unified_log, for other projects. Its backend is a part of uv.
wheel:
	@$(INSTALL) fleet
	$(BIN)/python -m uv build --wheel --out-dir dist

clean:
	rm -rf $(VENV) .data .pytest_cache .mypy_cache .ruff_cache
