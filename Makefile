# `make fleet` runs everything, `make test` proves it. Neither needs more than Python 3.11 and make;
# only the nightly job wants Java as well, which is installed where that can be done without asking.
# What that job alone needs is left until it is needed: a fleet starts without it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup fleet psql redis-cli break test test-fast chaos reconcile lint format bench lock \
	clean

help:
	@echo "make fleet   set up, then run the whole fleet (Ctrl-C stops it)"
	@echo "make break   break the running fleet in one way, and see it heal; without ARGS, the ways;"
	@echo "             ARGS=wipe-log"
	@echo "make psql, make redis-cli   a prompt on the fleet's database, on its log; ARGS='-c \"SELECT 1\"'"
	@echo "make test    set up, then run the test suite on private servers"
	@echo "make test-fast   those of the tests that need no server: seconds"
	@echo "make chaos   a fleet of its own, broken at random for two minutes, and the proof that it lost"
	@echo "             nothing; ARGS=\"--seed 7 --seconds 60\""
	@echo "make setup   make the virtual environment and install all that the fleet and its nights need"
	@echo "make lint    ruff, mypy, and the rules of who may import whom"
	@echo "make bench   the measurements of docs/performance.md"
	@echo "make lock    resolve the newest packages into requirements/*.txt"
	@echo "make clean   remove the virtual environment and the embedded servers' data"
	@echo "make reconcile   prove every total right, now, with Spark; options in ARGS, such as ARGS=--help."
	@echo "             make fails unless all agree; the module's own status says more."

# Only what is missing, as each step says; nothing, without a word, where all is there.
INSTALL := $(PYTHON) -m install

setup:
	@$(INSTALL) fleet nightly java

fleet:
	@$(INSTALL) fleet
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec honcho start

# On the servers that the fleet uses, in a second terminal. honcho reads .env for them too.
psql redis-cli:
	@$(INSTALL) fleet
	@exec $(BIN)/honcho run $(CURDIR)/$(BIN)/python -m embedded.prompt $@ $(ARGS)

break:
	@$(INSTALL) fleet
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec honcho run python -m chaos.by_hand $(ARGS)

test:
	@$(INSTALL) dev java
	$(BIN)/python -m pytest -p tests.support.bar -n 3 --dist loadscope $(ARGS)

test-fast:
	@$(INSTALL) fast
	$(BIN)/python -m pytest tests/fast $(ARGS)

chaos:
	@$(INSTALL) fleet
	$(BIN)/python -m chaos $(ARGS)

reconcile:
	@$(INSTALL) fleet nightly java
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec honcho run python -m analytics.reconcile $(ARGS)

lint:
	@$(INSTALL) dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

format:
	@$(INSTALL) dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench:
	@$(INSTALL) dev java
	$(BIN)/python -m benchmarks $(ARGS)

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate

# The one that holds all comes first: the others have its versions.
lock:
	@$(INSTALL) fleet
	$(COMPILE) --upgrade pyproject.toml --group analytics --group fleet --group dev \
		-o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml -o requirements/services.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml --group fleet -o requirements/fleet.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml --group fast -o requirements/fast.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml --group analytics \
		-o requirements/analytics.txt
	$(COMPILE) --upgrade --group pyproject.toml:installer -o requirements/uv.txt

clean:
	rm -rf $(VENV) .data .pytest_cache .mypy_cache .ruff_cache
