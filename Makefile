# Everything runs in .venv; the first use of a target sets it up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# One BLAS thread a test process: the processes are what runs in parallel.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: demo test test-slow lint docs bench bench-scale study reproduce clean

demo: $(VENV)/.demo  ## fit to the bundled Auto-mpg data, print a table, save a picture
	@echo "== Fitting and predicting (ten folds)"
	$(BIN)/python examples/auto_mpg.py

test: lint  ## lint, types and the fast lane of the tests
	@echo "== Tests (fast lane; 'make test-slow' checks the theorem statistically)"
	$(PYTEST) -n auto

test-slow: $(VENV)/.test  ## statistical checks of the theorem
	@echo "== Slow lane: coverage over tens of thousands of labels, and every page and example"
	$(PYTEST) -n auto -m slow tests/slow tests/docs

lint: $(VENV)/.test  ## style and types
	@echo "== Style (ruff) and types (mypy)"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench  ## speed beside scikit-learn, gpyconform and GPyTorch; writes docs/benchmarks.md
	@echo "== Benchmarks: leave the machine alone until they are done"
	$(BIN)/python -m benchmarks

bench-scale: $(VENV)/.bench  ## ten thousand to a million rows beside peers; writes docs/scale.md
	@echo "== Scale: leave the machine alone until it is done"
	$(BIN)/python -m benchmarks.scale

docs: $(VENV)/.docs  ## the documentation site, in build/docs; offline, warnings are errors
	@echo "== Documentation (runs the gallery's examples: a few minutes)"
	$(BIN)/python -m sphinx -q -E -W --keep-going docs build/docs
	@echo "Open build/docs/index.html"

reproduce: $(VENV)/.test  ## the paper's whole evaluation; writes docs/paper/
	@echo "== The paper, re-run; an interrupted run goes on where it stopped"
	$(BIN)/conformal-gp reproduce all --out docs/paper --raw build/paper/folds.jsonl

study: $(VENV)/.test  ## coverage after tuning, and the four benchmark data sets; writes docs/guarantee/
	@echo "== Studies: about an hour on two cores; an interrupted run goes on where it stopped"
	$(BIN)/python -m studies.coverage
	$(BIN)/python -m studies.benchmark_sets
	$(BIN)/python -m studies.starts
	$(BIN)/python -m studies.simulators

clean:  ## remove the environment and what was built
	rm -rf docs/gallery docs/api docs/sg_execution_times.rst
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@echo "== Creating a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with its plotting extra"
	$(PIP) -e '.[plot]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with what its tests need"
	$(PIP) -e '.[test,lint]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with the peers it is measured against"
	$(PIP) torch==2.13.0
	$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with what its documentation needs"
	$(PIP) -e '.[docs]'
	@touch $@
