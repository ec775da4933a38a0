# Everything is set up from a clean clone: Python 3.11+, make and git are enough.
#   make run    the five threads, replayed           make lab    the notebooks
#   make test   lint, types and tests                make bench  how fast the model is
#   make outputs   run the notebooks and store what they print, after a change of the model
#   make fuzz   mangled pastes for the readers, FUZZ_SECONDS of them (60); what breaks one is saved in runs/fuzz
#   make slides, make handouts   the notebooks as pages that need neither kernel nor network (npm fetches reveal.js)
#   make binder-check            what Binder would build, and the first notebook in it

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test fuzz lab bench outputs slides handouts binder-check clean
.DELETE_ON_ERROR:

# The main kernels of all threads. `numalab replay all` has 12 runs of each and takes longer.
run: $(VENV)/.core
	@echo "Runs a case: 12 of convergence, 4 of the other threads (\`numalab replay all\`: 12 of all)."
	$(BIN)/numalab replay convergence --seeds 12 -o runs
	set -e; for thread in shared_cow scan_overhead policy_lock marginal_moves; do \
		echo; $(BIN)/numalab replay $$thread --seeds 4 -o runs; \
	done

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadscope --ignore tests/browser
	$(BIN)/pytest --nbval notebooks --nbval-sanitize-with tests/notebooks/sanitize.cfg -n 2 --dist loadscope
	$(BIN)/pytest tests/browser

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.dev
	mkdir -p runs/fuzz
	$(BIN)/python -m tests.fuzz.read -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=runs/fuzz/

lab: $(VENV)/.lab
	$(BIN)/jupyter lab $(firstword $(wildcard notebooks/00_start_here.ipynb notebooks))

outputs: $(VENV)/.dev
	$(BIN)/python tools/store_outputs.py

slides handouts: $(VENV)/.lab
	$(BIN)/python tools/publish.py $@

binder-check: $(VENV)/.lab
	$(BIN)/python tools/check_binder.py

bench: $(VENV)/.core
	$(BIN)/python tests/bench/bench.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of packages: a second call does nothing until pyproject.toml changes.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v < (3, 11) and "numalab needs Python 3.11 or newer, but $(PYTHON) is %d.%d: call make PYTHON=python3.12, say" % v)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet -e .
	@touch $@

$(VENV)/.lab: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet -e '.[lab]'
	@touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet -e '.[dev,lab,sweep]'
	@touch $@ $(VENV)/.core $(VENV)/.lab
