.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow test-real test-lowest test-newest conformance check docs wheels bench bench-compare clean

# The caller may stand in an environment of its own. Without bytecode each worker would compile every test anew.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

# -P: nothing of the current folder is importable by accident.
PY := .venv/bin/python -P
# Tests wait for other programs for a third of their time: four workers keep two cores busy. Each collects all tests.
WORKERS := 4
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist loadgroup
DISTRIBUTIONS := marvin-core marvin-tools-coding marvin-tools-web marvin-tools-life marvin-pipeline

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make or refresh .venv (nothing to do when its inputs did not change)
	@scripts/setup

run: ## chat, in the plain interface
	@./marvin --plain

test: setup ## every test that needs no outside service and is not slow
	@scripts/compile-tests
	$(PYTEST) -m "not real and not slow" --durations=20 --durations-min=2

test-slow: setup ## tests that install packages or start many programs, and each property with all of its examples
	@scripts/compile-tests
	$(PYTEST) -m "(slow or hypothesis) and not real" --hypothesis-profile=thorough

test-real: setup ## tests against the real services and programs, which scripts/setup-real installs
	@scripts/setup-real
	.venv-real/bin/python -P -m pytest -n 3 --dist loadgroup -m real

test-lowest: setup ## the tests of `make test` with the lowest versions that the distributions allow
	scripts/test-versions lowest

test-newest: setup ## the same with the newest versions there are
	scripts/test-versions newest

conformance: setup ## the conformance suite of the Model Context Protocol, client and server, as a table
	@scripts/setup-real
	.venv-real/bin/python -P tests/conformance/run.py

check: setup ## lint, formatting, types, and what no file may name
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo --cache-dir .mypy_cache/imports
	scripts/check-repo
	$(PY) scripts/reference.py --check
	.venv/bin/zensical build --clean --strict

docs: setup ## regenerate the reference pages and build the site into site/
	$(PY) scripts/reference.py
	.venv/bin/zensical build --clean --strict

wheels: setup ## build the wheel and the sdist of every distribution into dist/
	rm -rf dist
	.venv/bin/uv build --quiet --all-packages --python .venv/bin/python --no-build-isolation --out-dir dist
	@ls dist

bench: setup ## run the benchmarks
	$(PY) benchmarks/run.py

bench-compare: setup ## measure this checkout against another one: make bench-compare OLD=PATH [ARGS=--pairs=40]
	$(PY) benchmarks/compare.py "$(OLD)" $(ARGS)

clean: ## remove what was built and cached (.venv and .venv-real stay)
	rm -rf dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(DISTRIBUTIONS) tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
