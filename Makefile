# Two commands: `make demo` and `make test`. Both start from nothing; the rest are parts of them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
MAKEFLAGS += --no-print-directory

# so that the tools that build the package are pinned too
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
# so that Python keeps what it compiled: else every process that a test starts compiles all that it imports
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow check lint docs site wheel release pythons catalogues verbs bench soak proofs clean postgresql chromium java coq nginx prometheus glewlwyd mosquitto tumult
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/wallflower demo

# What fails is run once more, alone, and named. CI reads the last line, a summary.
test: lint postgresql chromium java nginx prometheus glewlwyd mosquitto
	$(BIN)/python scripts/run_tests.py -m "not heavy"

test-slow: $(VENV)/.dev coq tumult
	$(BIN)/python scripts/run_tests.py -m heavy

check: lint
	$(BIN)/python scripts/run_tests.py -m "not slow and not heavy"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Generated pages and pictures are written anew and the site built; then every block is run and every link followed.
docs: verbs
	$(BIN)/python scripts/cli_page.py > docs/cli.md
	$(BIN)/python scripts/api_pages.py
	$(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/benchmarks_page.py
	$(BIN)/python scripts/references_page.py
	$(BIN)/python scripts/site.py
	$(BIN)/python -m pytest tests/test_docs.py tests/test_proofs.py tests/test_reference.py tests/test_site.py

# The site alone, to build/site/VERSION, beside the versions that are there already.
site: $(VENV)/.dev
	$(BIN)/python scripts/site.py

# What pip installs anywhere, to dist/.
wheel: $(VENV)/.demo
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# Wheel and sdist, the same bytes for the same commit; a bill of materials, licences and checksums. To dist/.
release: $(VENV)/.dev
	$(BIN)/python scripts/release.py

# The wheel and the quick tests of the core, with every other Python from 3.11 to 3.13 that is at hand.
pythons: $(VENV)/.dev
	$(BIN)/python scripts/pythons.py

# Every marked sentence, into the catalogues of translations.
catalogues: $(VENV)/.dev
	$(BIN)/python scripts/catalogues.py

# The methods of a data set as editors and type checkers see them, written anew from the list of questions.
verbs: $(VENV)/.dev
	$(BIN)/python scripts/verbs.py > src/wallflower/verbs.py

# real data sets may lie beside the repository
bench: export WALLFLOWER_DATA ?= ../shared/data
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks
	$(BIN)/python scripts/benchmarks_page.py

# Services on either database under honest and hostile calls and kills, SECONDS each, and then the bill.
SECONDS ?= 600
soak: $(VENV)/.dev postgresql
	$(BIN)/python benchmarks/soak.py --seconds $(SECONDS)

# The theorems that Coq checks: builds them, prints the axioms of each, compares statements with those that are pinned.
proofs: coq
	@$(MAKE) -C proofs check

clean:
	@$(MAKE) -C proofs clean > /dev/null 2>&1
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build wallflower-demo
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

postgresql chromium java nginx prometheus coq glewlwyd mosquitto tumult:
	@scripts/setup $@

$(BIN)/python:
	@scripts/setup venv $(PYTHON) $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing wallflower into $(VENV), once. This takes a minute or two."
	@$(INSTALL) --editable '.[plots,sklearn]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing wallflower and its tests into $(VENV), once. This takes a few minutes."
	@$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.demo
