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

.PHONY: lint
lint: setup ## ruff, formatting, types, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python scripts/typecheck.py
	@$(BIN)/lint-imports
