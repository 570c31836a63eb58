# make run and make test are all one needs; `make help` lists the rest.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin

.PHONY: help setup lock
help:   ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup:  ## make .venv (once; then a check of well under a second)
	@scripts/setup.sh

lock:   ## resolve anew and write requirements.lock (UPGRADE=1: newest versions)
	@scripts/lock.sh

.PHONY: run run-octavia run-ovn down
run: setup ## the whole stack on this machine, with examples/quickstart.yaml applied
	@$(BIN)/roadstead up --quickstart

run-octavia: setup ## the same with the Octavia API in place of the simulated one
	@$(BIN)/roadstead up --quickstart --octavia

run-ovn: setup ## the same with a real OVN and its worker behind that API (deploy/ovn/ovn install, once, as root)
	@$(BIN)/roadstead up --quickstart --ovn

down: ## end what `make run` started in the background
	@$(BIN)/roadstead down

.PHONY: lint test soak invariants bench bench-octavia docs
lint: setup ## ruff, formatting, types, directions of imports
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "lint: run .venv/bin/ruff format on the files named above" >&2; exit 1; }
	@$(BIN)/python scripts/typecheck.py
	@$(BIN)/lint-imports --no-logo

test: setup ## every level this machine can run (REQUIRE=all LEVELS="unit chaos" ARGS="-k name")
	@$(BIN)/python scripts/levels.py --require "$(REQUIRE)" $(LEVELS:%=--only %) -- $(ARGS)

HISTORIES ?= 5000
soak: setup ## thousands of simulated histories (HISTORIES=5000), long chaos runs, ten minutes of clients and of nonsense on the Octavia API, octavia-tempest-plugin, taking the place of a cloud's own Octavia
	@ROADSTEAD_HISTORIES=$(HISTORIES) $(BIN)/pytest -m simulation --timeout=0 $(ARGS)
	@ROADSTEAD_SOAK=1 $(BIN)/pytest -m chaos --timeout=900 $(ARGS)
	@ROADSTEAD_SOAK=1 $(BIN)/pytest tests/octavia/test_storm.py tests/octavia/test_fuzz.py $(ARGS)
	@$(BIN)/python -m tests.octavia.tempest.run
	@ROADSTEAD_SOAK=1 $(BIN)/python scripts/levels.py --require all --only cloud -- -k takeover $(ARGS)
	@ROADSTEAD_OVN_SEQUENCES=$(HISTORIES) $(BIN)/pytest services/ovn-worker/tests/test_sequences.py --timeout=900 $(ARGS)

invariants: setup ## which test proves which numbered requirement; fails when an owed one has none
	@$(BIN)/python scripts/invariants.py

bench: setup ## measured figures
	@$(BIN)/python -m tests.bench $(ARGS)

bench-octavia: setup ## the Octavia API beside the original 19.0.0, in one run (ARGS="--quick --fsync --profile")
	@$(BIN)/python -m tests.bench.octavia $(ARGS)

docs: setup ## write the generated parts of docs/ anew
	@$(BIN)/python scripts/docs.py
	@$(BIN)/python scripts/dashboards.py

.PHONY: conformance
conformance: setup ## recorded exchanges of the original Octavia, replayed (DATA=FOLDER, ARGS="--files pool --show 20")
	@$(BIN)/python -m tests.conformance.run $(if $(DATA),--data $(DATA)) $(ARGS)

.PHONY: conformance-ovn
conformance-ovn: setup ## recorded scenarios of the original OVN provider on a real Northbound database (DATA=FOLDER, ARGS="--only hm- --show")
	@$(BIN)/python -m tests.conformance_ovn.run $(if $(DATA),--data $(DATA)) $(ARGS)

.PHONY: cloud cloud-down test-cloud
cloud: setup ## real OpenStack services with pretended hypervisors (root on Debian)
	@deploy/cloud/cloud install
	@deploy/cloud/cloud up

cloud-down: ## end them
	@deploy/cloud/cloud down

test-cloud: setup ## the cloud level alone
	@$(BIN)/python scripts/levels.py --require all --only cloud -- $(ARGS)

.PHONY: test-ovn bench-ovn
test-ovn: setup ## the ovn level alone: a real OVN, packets in network namespaces (root on Debian)
	@$(BIN)/python scripts/levels.py --require all --only ovn -- $(ARGS)

bench-ovn: setup ## the OVN worker beside the original 11.0.0, and from an accepted creation to ACTIVE (root on Debian; ARGS="--quick --only path")
	@deploy/ovn/ovn install
	@$(BIN)/python -m tests.bench.ovn $(ARGS)
