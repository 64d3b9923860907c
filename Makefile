# Each target sets up what it needs in .venv on first use and is quick on the second.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test test-core lint format bench docs clean help

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.installed  ## Poison the digits data in the open, clean it, show the verdict and the report
	@rm -rf demo-output
	@$(BIN)/unpoison demo --out demo-output

test: lint  ## Lint, type-check, and run the whole test suite
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

test-core: $(VENV)-core/.installed  ## Run the core's tests with only numpy and scikit-learn installed
	PYTHONPATH=src $(VENV)-core/bin/python -m pytest tests/core -p no:cacheprovider

lint: $(VENV)/.developed  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.developed  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.developed  ## Measure: cost of the core, quality on digits and rows, speed of training
	$(BIN)/python benchmarks/core_scale.py
	$(BIN)/python benchmarks/demo_seeds.py
	$(BIN)/python benchmarks/digits_quality.py
	$(BIN)/python benchmarks/rows_and_text.py
	$(BIN)/python benchmarks/training_rate.py
	$(BIN)/python benchmarks/scheduler.py

docs: $(VENV)/.developed  ## Build the documentation into site/, to be opened from disk
	$(BIN)/python -m mkdocs build --strict
	@echo "documentation: site/index.html"

clean:  ## Remove what the other targets made
	rm -rf $(VENV) $(VENV)-core demo-output site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# A new enough pip for dependency groups; then the package itself, editable, with its pinned dependencies.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet --constraint constraints.txt pip
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --group dev --editable '.[torch,hub,ray,plots]'
	@touch $@

$(VENV)-core/.installed: constraints.txt
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
		numpy scikit-learn pytest hypothesis
	@touch $@
