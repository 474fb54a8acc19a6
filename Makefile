# The commands of this project. `make` alone lists them; CI calls the same ones.

python := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup demo up down test check format bench pins clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv with everything in it (quick when nothing changed); PYTHON=… names the Python to use
	@PYTHON="$(PYTHON)" sh tools/setup.sh

demo: setup ## the first minute: real data, a live ranking, checked against brute force
	@.venv/bin/skyband demo

up: setup ## everything on this machine: a real Kafka, one process per service; ARGS=… as in skyband up --help
	@.venv/bin/skyband up $(ARGS)

down: ## stop what make up runs
	@.venv/bin/skyband down $(ARGS)

test: setup ## all tests, the fast ones first; ARGS=… goes to pytest, JOBS=1 uses one process
	@JOBS=$(JOBS) sh tools/test.sh $(ARGS)

check: setup ## lint, format, types, directions of imports, architecture
	$(python) -m ruff check
	$(python) -m ruff format --check
	$(python) -m mypy
	.venv/bin/lint-imports --no-logo
	$(python) -m pytest tests/test_architecture.py

format: setup ## format the code and mend what the linter can
	$(python) -m ruff check --fix-only
	$(python) -m ruff format

bench: setup ## run the benchmarks and hold them against benchmarks/bounds.json; ARGS=… names some, without those on Kafka
	$(python) -m benchmarks $(ARGS)
	$(if $(ARGS),,$(python) -m benchmarks.bench_pipeline)
	$(if $(ARGS),,$(python) -m benchmarks.bench_pipeline w1 --serve --label pipeline-serve)
	$(if $(ARGS),,$(python) -m benchmarks.bench_spark)

pins: ## choose the versions in requirements/*.txt anew, with their hashes (needs Python 3.11)
	@PYTHON="$(PYTHON)" sh tools/pins.sh

clean: ## remove .venv, caches and build outputs
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .kernels
	find . -name .git -prune -o -type d \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +
