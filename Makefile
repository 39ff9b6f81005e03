# The one door. Needs Python 3.11 or newer with venv and pip, make and git; fetches the rest itself.
# Everything lands in .venv/ (and .uv/ when uv is not installed); the system Python is not touched.

PYTHON ?= python3
WORKERS ?= 2
DEMO ?= examples/review_loop/demo.sh

# Extras whose clients the tests talk through; the heavy ones (claude, codex, local) stay out.
DEV_EXTRAS := anthropic,ollama,openai

VENV := .venv
BIN := $(VENV)/bin
FAST := tests/unit tests/property tests/architecture
CACHES := .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Trust the certificates the machine trusts (company proxies); use no other Python than $(PYTHON).
export UV_SYSTEM_CERTS ?= 1
export UV_NATIVE_TLS ?= 1
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# A uv on the PATH is used when it knows dependency groups; otherwise a pinned one goes into .uv/.
UV := $(shell uv pip install --help 2>/dev/null | grep -q -e --group && echo uv || echo .uv/bin/uv)
LOCAL_UV := $(filter .uv/%,$(UV))

# The stamp is named after the checkout's place: a copied or moved checkout is set up afresh.
STAMP := $(VENV)/.ready-$(shell pwd | cksum | cut -d ' ' -f 1)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check fast lint types imports format bench bench-peers pins clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## run the main job, end to end, without keys
	@test -f $(DEMO) || { echo "make demo: $(DEMO) is not there yet" >&2; exit 1; }
	@$(MAKE) --no-print-directory setup
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash $(DEMO)

test: lint types imports ## everything: lint, types, import contracts and the whole test suite
	@$(BIN)/pytest -q -rs -n $(WORKERS) --dist worksteal

check: lint types imports fast ## the quick round: lint, types, import contracts, fast tests

bench: setup ## measure this engine against the raw SQLite floor
	@$(BIN)/python -m benchmarks

bench-peers: setup ## the same work side by side with other engines
	@$(BIN)/python -m benchmarks.peers

format: setup ## format, and repair what the linter can repair
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

pins: $(LOCAL_UV) ## recompile constraints/ (make pins UPGRADE=1 moves to the newest versions)
	@mkdir -p constraints
	@$(COMPILE) --all-extras --group dev -o constraints/dev.txt pyproject.toml
	@$(COMPILE) -c constraints/dev.txt -o constraints/runtime.txt pyproject.toml

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) .uv dist $(CACHES)

setup: $(STAMP) ## make the environment (the others do this by themselves)

fast: setup
	@$(BIN)/pytest -q -rs -m "not slow" $(wildcard $(FAST))
	@echo "left out: tests marked slow, and tests/ beyond $(FAST); make test runs them"

lint: setup
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check

types: setup
	@$(BIN)/mypy

imports: setup
	@$(BIN)/lint-imports --no-logo

# No header and no annotations: the files say nothing about who compiled them, where and how.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	$(if $(UPGRADE),--upgrade)

REFUSE_OLD_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "signoff needs Python 3.11 or newer; say which: make PYTHON=/path/to/python3.11" >&2; exit 1; }

$(STAMP): pyproject.toml constraints/dev.txt src/signoff/_version.py | $(LOCAL_UV)
	@$(REFUSE_OLD_PYTHON)
	@echo "setting up $(VENV)"
	@test -f $@ && $(BIN)/python -c '' 2>/dev/null || { rm -rf $(VENV) && $(UV) venv --quiet \
		--python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV); }
	@$(UV) pip install --quiet --python $(VENV) --group dev --editable ".[$(DEV_EXTRAS)]" \
		--constraints constraints/dev.txt --build-constraints constraints/dev.txt
	@rm -f $(VENV)/.ready-* && touch $@

.uv/bin/uv:
	@$(REFUSE_OLD_PYTHON)
	@echo "uv is not installed: putting the pinned one into .uv/"
	@$(PYTHON) -m venv --clear .uv
	@.uv/bin/python -m pip install --quiet --constraint constraints/dev.txt uv
