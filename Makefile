# Everything runs in .venv; the first use of a target sets it up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# One BLAS thread a test process: the processes are what runs in parallel.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest

# Both have their own environments: the lowest versions that are declared, and the wheel in place of the checkout.
LOWEST := .venv-lowest
WHEEL := .venv-wheel
# A part of the fast lane that meets every package, for `make test-fast`.
PART := tests/conformal tests/gp tests/targets tests/test_architecture.py tests/test_validation.py tests/test_datasets.py \
	tests/evaluation tests/test_files.py tests/test_saving.py tests/test_metrics.py tests/test_regressor.py \
	tests/test_distributions.py tests/test_testing.py tests/cli/test_reading.py

.PHONY: help demo test test-fast test-slow test-reproduction test-lowest test-wheel coverage lint lint-workflows docs dist bench bench-scale bench-real study \
	reproduce clean
.DEFAULT_GOAL := help

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## coverage of error bars with 30 rows, computed now, and the picture of the README
	@echo "== Fitting and predicting (ten draws of 30 patients)"
	MPLBACKEND=Agg $(BIN)/python examples/standard_gps.py

test: lint  ## lint, types and the fast lane of the tests
	@echo "== Tests (fast lane; 'make test-slow' checks the theorem statistically)"
	$(PYTEST) -n auto

test-fast: $(VENV)/.test  ## a part of the tests: for between two commits
	@echo "== Tests (a part that meets every package; 'make test' runs all)"
	$(PYTEST) -n auto -q $(PART)

coverage: $(VENV)/.test  ## the fast lane with the lines it reaches; fails below the share in pyproject.toml
	@echo "== Tests, and which lines they reach"
	$(PYTEST) -n auto -q --cov --cov-report=term --cov-report=html:build/coverage

test-lowest: $(LOWEST)/.test  ## the fast lane with the lowest versions of dependencies that are declared
	@echo "== Tests with the lowest declared versions"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n auto -q $(TESTS)

test-wheel: dist  ## the fast lane on the installed wheel, not on the checkout
	@echo "== Tests of the wheel"
	rm -rf $(WHEEL) && $(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[test]"
	$(WHEEL)/bin/python -c "import conformal_gp; print(conformal_gp.__file__); assert 'site-packages' in conformal_gp.__file__"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(WHEEL)/bin/python -m pytest -n auto -q $(or $(TESTS),tests --pyargs conformal_gp)

test-slow: $(VENV)/.test  ## statistical checks of the theorem
	@echo "== Slow lane: coverage over tens of thousands of labels, and every page and example"
	$(PYTEST) -n auto -m slow tests

test-reproduction: $(VENV)/.test  ## the paper's methods, tables and studies: tests of reproduction/
	@echo "== Tests of the reproduction"
	$(PYTEST) -n auto reproduction

lint: $(VENV)/.test  ## style and types
	@echo "== Style (ruff) and types (mypy)"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-workflows: $(VENV)/.workflows  ## workflows, issue templates and citation, checked offline
	@echo "== Workflows (zizmor), and the schemas of workflows, issue templates and citation"
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

dist: $(VENV)/.release  ## wheel and source distribution in dist/, checked
	@echo "== Wheel and source distribution"
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

bench: $(VENV)/.bench  ## speed beside scikit-learn, gpyconform and GPyTorch; writes benchmarks/results/speed.md
	@echo "== Benchmarks: leave the machine alone until they are done"
	$(BIN)/python -m benchmarks

bench-scale: $(VENV)/.bench  ## ten thousand to a million rows beside peers; writes benchmarks/results/scale.md
	@echo "== Scale: leave the machine alone until it is done"
	$(BIN)/python -m benchmarks.scale

bench-real: $(VENV)/.bench-real  ## seventy real tables beside peers; writes benchmarks/real/results/
	@echo "== Real tables: half an hour on one core and more; an interrupted run resumes"
	$(BIN)/python -m benchmarks.real

docs: $(VENV)/.docs  ## the documentation site, in build/docs; offline, warnings are errors
	@echo "== Documentation (runs the gallery's examples: a few minutes)"
	$(BIN)/python -m sphinx -q -E -W --keep-going docs build/docs
	@echo "Open build/docs/index.html"

reproduce: $(VENV)/.test  ## the paper's whole evaluation; writes reproduction/results/paper/
	@echo "== The paper, re-run; an interrupted run resumes"
	$(BIN)/python -m reproduction all --out reproduction/results/paper --raw build/paper/folds.jsonl

study: $(VENV)/.test  ## coverage after tuning, and the four benchmark data sets; writes reproduction/results/
	@echo "== Studies: about an hour on two cores; an interrupted run resumes"
	$(BIN)/python -m reproduction.studies.coverage
	$(BIN)/python -m reproduction.studies.benchmark_sets
	$(BIN)/python -m reproduction.studies.few_rows
	$(BIN)/python -m reproduction.studies.replicates
	$(BIN)/python -m reproduction.studies.starts
	$(BIN)/python -m reproduction.studies.simulators
	$(BIN)/python -m reproduction.studies.distributions
	$(BIN)/python -m reproduction.studies.shifts
	$(BIN)/python -m reproduction.studies.scatter
	$(BIN)/python -m reproduction.studies.agreement
	$(BIN)/python docs/_ext/figures.py

clean:  ## remove the environment and what was built
	rm -rf docs/gallery docs/api docs/sg_execution_times.rst
	rm -rf $(VENV) $(LOWEST) $(WHEEL) build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis

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

$(VENV)/.workflows: pyproject.toml | $(BIN)/python
	@echo "== Installing what checks workflows"
	$(PIP) -e '.[workflows]'
	@touch $@

$(VENV)/.release: pyproject.toml | $(BIN)/python
	@echo "== Installing what builds a release"
	$(PIP) -e '.[release]'
	@touch $@

$(LOWEST)/.test: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with the lowest versions that it declares, in $(LOWEST)"
	rm -rf $(LOWEST) && $(PYTHON) -m venv $(LOWEST)
	$(PIP) 'uv>=0.9'
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[test]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with the peers it is measured against"
	$(PIP) torch==2.13.0
	$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/.bench-real: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with the peers and tables of the comparison on real data"
	$(PIP) torch==2.13.0
	$(PIP) -e '.[bench-real]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "== Installing conformal-gp with what its documentation needs"
	$(PIP) -e '.[docs]'
	@touch $@
