# Two commands for a fresh machine with Python 3.11+ and make: `make run` and `make test`.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

.PHONY: run test test-fast lint setup bench lock clean help

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

run: .venv/.ready-run ## Measure this machine, load public results, open the dashboard (ARGS=--no-dashboard ends after the table)
	$(BIN)/weigh run quick $(filter-out --no-dashboard,$(ARGS))
	$(BIN)/weigh import reference
	$(if $(filter --no-dashboard,$(ARGS)),@echo "The dashboard: $(BIN)/weigh dashboard",$(BIN)/weigh dashboard)

test: .venv/.ready-dev ## Set up and pass every test
	@bash tests/system_packages.sh
	$(BIN)/python -m pytest $(ARGS)

test-fast: .venv/.ready-dev ## The tests for daily use, under two minutes
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

lint: .venv/.ready-dev ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.ready-dev ## The product's own speed beside its peers, as ratios
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks

setup: .venv/.ready-dev ## Everything a developer needs, in .venv

lock: .venv/.ready-dev ## Write constraints.txt anew from pyproject.toml
	$(BIN)/uv pip compile -q pyproject.toml --extra dev --extra bench --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --upgrade -o constraints.txt

clean: ## Remove the environment and all caches of the checkout
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Weighbridge needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 run"; exit 1; }
	$(PYTHON) -m venv .venv || { echo "Python's venv module is not complete here (on Debian: apt install python3-venv)."; rm -rf .venv; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

.venv/.ready-run: .venv/bin/uv pyproject.toml constraints.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --editable '.[all]'
	@touch $@

.venv/.ready-dev: .venv/bin/uv pyproject.toml constraints.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'
	@touch $@ .venv/.ready-run
