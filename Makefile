# `make fleet` runs everything, `make test` proves it. Neither needs more than Python 3.11 and make;
# only the nightly job wants Java as well, which is installed where that can be done without asking.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: help setup fleet test chaos reconcile lint format bench lock clean

help:
	@echo "make fleet   set up, then run the whole fleet (Ctrl-C stops it)"
	@echo "make test    set up, then run the test suite on private servers"
	@echo "make chaos   a fleet of its own, broken at random for two minutes, and the proof that it lost"
	@echo "             nothing; ARGS=\"--seed 7 --seconds 60\""
	@echo "make setup   make the virtual environment and install the pinned packages"
	@echo "make lint    ruff and mypy"
	@echo "make bench   the measurements of the README"
	@echo "make lock    resolve the newest packages into requirements/*.txt"
	@echo "make clean   remove the virtual environment and the embedded servers' data"
	@echo "make reconcile   prove every total right, now, with Spark; options in ARGS, such as ARGS=--help."
	@echo "             make fails unless all agree; the module's own status says more."

setup: $(VENV)/.fleet $(VENV)/.java

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one with PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "Python's venv module is needed (Debian: apt install python3-venv)"; exit 1; }

$(VENV)/.fleet: requirements/fleet.txt | $(BIN)/python
	$(PIP_INSTALL) -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(BIN)/python
	$(PIP_INSTALL) -r $<
	@touch $@ $(VENV)/.fleet

# Afterwards Java is there, or a line has said what to install: then again at the next make.
# `satisfy` installs nothing where the release's own Java is too old.
APT_GET := DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60
APT_JAVA := $(APT_GET) satisfy --yes --no-install-recommends "default-jre-headless (>= 2:1.17)"

$(VENV)/.java: | $(BIN)/python
	@$(BIN)/python -m analytics.java 2>/dev/null || \
		if [ "$$(id -u)" = 0 ] && [ -z "$$JAVA_HOME" ] && command -v apt-get >/dev/null; then \
			echo "Installing Java for the nightly job (default-jre-headless)"; \
			{ $(APT_JAVA) || { $(APT_GET) update && $(APT_JAVA); }; } </dev/null >/dev/null 2>&1 \
				|| echo "apt-get can't get it now, or this release's is older than Java 17"; \
		fi
	@! $(BIN)/python -m analytics.java || touch $@

fleet: $(VENV)/.fleet $(VENV)/.java
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec honcho start

test: $(VENV)/.dev $(VENV)/.java
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

chaos: $(VENV)/.fleet
	$(BIN)/python -m chaos $(ARGS)

reconcile: $(VENV)/.fleet $(VENV)/.java
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec honcho run python -m analytics.reconcile $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ARGS)

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --upgrade pyproject.toml

lock:
	$(COMPILE) -o requirements/services.txt
	$(COMPILE) --group analytics -o requirements/analytics.txt
	$(COMPILE) --group analytics --group fleet -o requirements/fleet.txt
	$(COMPILE) --group analytics --group fleet --group dev -o requirements/dev.txt

clean:
	rm -rf $(VENV) .data .pytest_cache .mypy_cache .ruff_cache
