# Commands of the project; `make help` lists them. Nothing here needs root.
PYTHON ?= $(shell command -v python3.11 || echo python3)
JAVA   := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTEST ?= $(BIN)/python -m pytest
ARGS   ?=
LONG_PARTS := races counters-crashes counters-losses past kills checkpoints servers pythons capture loads fire commands sweeps copies nemesis cluster
STREAMS := $(filter-out %_past.py,$(wildcard tests/stack/test_stream_*.py))
SECOND := tests/contract tests/stack/test_p*.py tests/stack/test_rep*.py $(STREAMS)
THIRD := tests/unit tests/property tests/spark tests/stack/test_stream_past.py \
  tests/stack/test_n*.py tests/stack/test_ra*.py tests/stack/test_sw*.py tests/stack/test_[t-z]*.py
OLDER := $(patsubst %,tests/stack/test_%.py,stream_repairs stream_indexes stream_rights rights_races stream_attachments attachment_races counters canary poison sweep replay role secure) \
  tests/contract/test_undecoded_tables.py tests/contract/test_node_clocks.py
SOURCES := reconcilers checkpoints streaming deploy tests

.DEFAULT_GOAL := help
.PHONY: help setup hooks servers tools format lint check check-first check-second test test-first test-second test-third test-long $(LONG_PARTS:%=test-long-%) test-long-older-cassandra test-long-slow-sync demo nemesis bench mutants docs lock wheel clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 28

setup: tools hooks $(STAMP) servers ## virtual environment from the lock file, the servers' jars, Spark's classes

hooks: # the check of commit messages, in a clone
	@if [ "$$(git rev-parse --show-toplevel 2>/dev/null)" = "$(CURDIR)" ]; then \
	  git config core.hooksPath .githooks; fi

servers: $(STAMP) # the servers' jars, Spark's classes, promtool
	@$(BIN)/python -m deploy.embedded jars
	@$(BIN)/python -m deploy.quick_spark
	@$(BIN)/python -m deploy.promtool

tools: # what has to be on the machine
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or later is needed: '$(PYTHON)' is not. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@command -v '$(JAVA)' >/dev/null 2>&1 || { \
	  echo "Java 17 is needed to run Cassandra, Kafka and Spark: no '$(JAVA)'." >&2; exit 1; }
	@'$(JAVA)' -version 2>&1 | grep -Eq 'version "17[."]' || { \
	  echo "Java 17 is needed, found: $$('$(JAVA)' -version 2>&1 | head -n 1)" >&2; exit 1; }
	@command -v mvn >/dev/null 2>&1 || { \
	  echo "Maven is needed to fetch the servers' jars: no 'mvn' on the PATH." >&2; exit 1; }

# The stamp is written last, so an interrupted installation, or an environment made by hand,
# is installed into again.
$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

format: $(STAMP) ## rewrite the source in the house format
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lint: $(STAMP) ## format, ruff, types, import rule
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two runs side by side, of about the same length. The second shows its output at its end.
DRIFT := tests/property/test_drift.py
check: $(STAMP) ## lint, unit and property tests: two minutes, no servers, no jars
	@$(MAKE) --no-print-directory -j2 check-first check-second

check-first: $(STAMP)
	$(PYTEST) -q --maxfail=3 tests/unit $(DRIFT)

check-second: lint
	@mkdir -p build
	@$(PYTEST) -q --maxfail=3 tests/property --ignore=$(DRIFT) > build/$@.log 2>&1; status=$$?; \
	  cat build/$@.log; exit $$status

test: tools $(STAMP) ## everything but the long tests and the benchmarks; ARGS: some of it, in one run
	@$(MAKE) --no-print-directory -j2 servers lint
ifeq ($(ARGS),)
	@$(MAKE) --no-print-directory -j3 test-first test-second test-third
else
	$(PYTEST) --durations=10 $(ARGS)
endif

# Three runs side by side, each with servers of its own: those tests mostly wait for delays to pass.
# The third begins with the tests that need none. Together they are all tests: the first has what the
# others have not. It shows what it does, the others at their end. A run ends at its third failure:
# what waits for something that never comes takes ten minutes.
TESTED := $(PYTEST) --durations=25 --maxfail=3
test-first:
	$(TESTED) $(foreach each,$(SECOND) $(THIRD),--ignore-glob='$(each)')

test-second test-third: test-%:
	@mkdir -p build
	@$(TESTED) $(if $(filter second,$*),$(SECOND),$(THIRD)) \
	  > build/$@.log 2>&1; status=$$?; cat build/$@.log; exit $$status

test-long: setup ## the long tests, all parts at once: more than an hour
	$(PYTEST) -m long --durations=10 $(ARGS)
	@$(MAKE) --no-print-directory test-long-older-cassandra test-long-slow-sync

# Each part takes half an hour at most; every long test names the one that it belongs to.
$(LONG_PARTS:%=test-long-%): test-long-%: setup
	$(PYTEST) -m "long(part='$*')" --durations=10 $(ARGS)

test-long-races: ## 300,000 random interleavings of users and repairs; writers' clocks ahead
test-long-counters-crashes: ## counters in random runs: faults, crashes, two instances, pauses
test-long-counters-losses: ## counters in random runs: read repair, lost events, missing rows
test-long-past: ## four thousand random runs each beside mail that is older than the stream
test-long-kills: ## kill -9 of the stream at every step
test-long-checkpoints: ## damaged checkpoints, a second stream
test-long-servers: ## Kafka, Cassandra or the agent gone; Cassandra 4.1, passwords, containers
test-long-pythons: ## unit tests on Python 3.12 and 3.13
test-long-capture: ## agents silent, switched, cut off from a partition; their segments lost; 100,000 random histories of three copies
test-long-loads: ## a mailbox of 200,000 messages; 500,000 records after a stall; commands on 20,000 mails
test-long-fire: ## counters beside mail at full speed; a table that refuses
test-long-commands: ## resume, retry, undo, pilot, sweep and replay beside a stream and without one; wrong arguments
test-long-sweeps: ## sweeps over 200,000 messages, wide partitions, odd tables and a past; replays of live data
test-long-copies: ## three nodes with a copy of each row on each, restarted, late, replaced; two data centres
test-long-nemesis: ## a fault-injection run of ten minutes on three nodes; cuts of connections, clocks, full disks

test-long-cluster: ## streams on a Spark cluster whose executors are killed and paused
test-long-older-cassandra: setup ## repairs, index tables, rights, attachments, counters, canaries, poison, sweep, replay, roles and TLS on Cassandra 4.1
	$(PYTEST) -m stack --release=4.1 --durations=10 $(OLDER)

test-long-slow-sync: setup ## counters where Cassandra syncs its commit log every ten seconds, its default
	$(PYTEST) -m stack --overlay=cassandra-slow-sync.yaml --durations=10 tests/stack/test_counters.py

demo: setup ## the main job on real servers, from nothing, in minutes
	@$(BIN)/python -m deploy.demo $(ARGS)

nemesis: setup ## one fault-injection run with three copies of each row: docs/nemesis.md
	@$(BIN)/python -m deploy.nemesis $(ARGS)

bench: setup ## the measurements of docs/benchmarks.md
	$(PYTEST) -m bench -s $(ARGS)

mutants: $(STAMP) ## faults planted in a copy, to see what the fast tests miss: docs/mutants.md
	$(BIN)/python -m tests.mutants $(ARGS)

docs: $(STAMP) ## what follows from the code: docs/settings.md, grants in roles.cql, the runbook's alerts
	$(BIN)/python -m deploy.settings_page > docs/settings.md
	$(BIN)/python -m deploy.roles
	$(BIN)/python -m deploy.alerts_table

# Needs pip-tools, which is not part of the project: pip install pip-tools.
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
lock: ## pin again what pyproject.toml asks for, to develop and to run
	$(COMPILE) --extra dev --output-file requirements.lock pyproject.toml
	$(COMPILE) --constraint requirements.lock --output-file requirements-run.lock pyproject.toml

wheel: $(STAMP) ## the package for operators, below build/wheel: docs/install.md
	$(BIN)/python -m tests.wheel build/wheel

clean: ## what tests and tools leave behind; the environment and the jars stay
	rm -rf build .data .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log *.egg-info
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
