# One verb per task; each sets up what it needs. `make help` lists them.

VENV := .venv
PYTHON := $(VENV)/bin/python
SAMPLES ?= 2000
DURATION ?= 6s
DEFAULT_DATA := data/imagenet-like

# Given to the shell by environment, so that no character of a path is ever interpreted.
export DATA

.DEFAULT_GOAL := help
.PHONY: help setup profile test check unit reports clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## */  make \1\t/' | expand -t 18

setup:  ## virtual environment, pinned packages, fio; a second time nothing is installed
	@sh scripts/setup.sh

ifdef DATA
profile: setup  ## profile DATA=DIR, or a synthetic ImageNet-like set; ARGS='--repeats 3' passes on
	@$(PYTHON) -m ioprof profile --data "$$DATA" $(ARGS)
else
profile: setup $(DEFAULT_DATA)
	@$(PYTHON) -m ioprof profile --data $(DEFAULT_DATA) --loader torch-files,dali-files \
	    --topology 1x1,1x2 --cache cold,warm --duration $(DURATION) $(ARGS)
endif

# Made under another name first: what an interrupt leaves is not taken for a dataset.
$(DEFAULT_DATA): | setup
	@rm -rf $@.partial && mkdir -p $(@D)
	@$(PYTHON) -m ioprof dataset make $@.partial --samples $(SAMPLES)
	@mv $@.partial $@

test: setup  ## all tests; what cannot run here is skipped and says why
	@sh scripts/setup.sh test
	@$(PYTHON) -m pytest

unit: setup  ## the fast tests
	@$(PYTHON) -m pytest tests/unit

check: setup  ## format, lint, types, import contracts
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy
	@$(VENV)/bin/lint-imports

reports: setup  ## make summary, figures and page of every run under reports/ again
	@for run in reports/*/; do \
	    [ ! -e "$$run/study.json" ] || $(PYTHON) -m ioprof report "$$run" || exit; \
	done

clean:  ## remove what was built here; data and reports stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './data/*' -prune -exec rm -rf {} +
