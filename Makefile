# Every target makes and uses .venv in this checkout; nothing else on the machine is touched.
PYTHON ?= python3
MINUTES ?= 5
# Another Python has an environment of its own: make test PYTHON=python3.12
VENV := .venv$(if $(filter-out python3,$(notdir $(PYTHON))),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
BENCH_READY := $(VENV)/.bench-ready
INTEGRATIONS_READY := $(VENV)/.integrations-ready
BROWSER_READY := $(VENV)/.browser-ready
BROWSERS := $(CURDIR)/$(VENV)/browsers
LIBRARY := .venv-library-$(notdir $(PYTHON))
LIBRARY_READY := $(LIBRARY)/.ready
# Only these are imported where only kernels are tested: collecting all of the tests takes three times as long.
KERNEL_TESTS = $$(grep -rl 'mark\.kernels' tests --include='test_*.py')

# Hundreds of processes of the tests import the library; without bytecode on disk each would compile all of it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo wheel test test-library torture test-integrations test-browser test-gpu lint docs bench bench-gpu clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@echo "Installing into $(VENV): some minutes, the first time only."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(DEMO_READY)

# The demo needs less than the tests do.
$(DEMO_READY): pyproject.toml constraints.txt
	@echo "Installing into $(VENV): some minutes, the first time only."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[report]'
	@touch $@

$(BENCH_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

$(INTEGRATIONS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[integrations]'
	@touch $@

# The system's Chromium (or the one that CHROMIUM names) will do; without one Playwright downloads its own.
$(BROWSER_READY): $(READY)
	@for name in "$$CHROMIUM" chromium chromium-browser google-chrome; do \
		if command -v "$$name" >/dev/null 2>&1; then exit 0; fi; \
	done; PLAYWRIGHT_BROWSERS_PATH=$(BROWSERS) $(BIN)/playwright install chromium \
		|| { echo "no Chromium: install your system's chromium package, or set CHROMIUM to its path"; exit 1; }
	@touch $@

$(LIBRARY_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LIBRARY)
	$(LIBRARY)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[tests]'
	@touch $@

demo: $(DEMO_READY) ## Train uniform, TER and graph values on a small task and draw who solves it when
	$(BIN)/backsweep demo

test: $(READY) ## Run the test suite, then the kernels' tests interpreted and with bounds checks
	$(BIN)/python -m pytest -m 'not ray' -n 2 --dist worksteal
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m kernels -n 2 --dist worksteal $(KERNEL_TESTS)
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -m kernels -n 2 --dist loadfile $(KERNEL_TESTS)
	TRITON_INTERPRET=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/agent/learner/test_triton_interpreted.py

test-library: $(LIBRARY_READY) ## Run every test that needs no torch, in an environment without it (PYTHON=python3.13)
	PYTHONPATH=tests $(LIBRARY)/bin/python -m pytest -p without_torch -n 2 --dist worksteal

wheel: $(READY) ## Build a wheel for this platform with compiled kernels, into dist/
	rm -rf src/backsweep/compiled
	$(BIN)/backsweep compile --wheel src/backsweep/compiled replay
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	rm -rf src/backsweep/compiled

torture: $(READY) ## Attack everything with new random seeds, for MINUTES=5 or longer
	$(BIN)/python tests/torture.py --minutes $(MINUTES)

test-integrations: $(INTEGRATIONS_READY) ## Run the adapters and their pages inside the real frameworks
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests/integrations tests/test_docs.py

test-browser: $(BROWSER_READY) ## Open the report in Chromium, desktop and phone; screenshots go to .screenshots
	PLAYWRIGHT_BROWSERS_PATH=$(BROWSERS) BROWSER_SHOTS=$(CURDIR)/.screenshots \
		$(BIN)/python -m pytest $$(find tests -name 'test_*browser*.py')

test-gpu: $(READY) ## Compare the learner on a GPU with the CPU; skips without one
	$(BIN)/python -m pytest tests/gpu

lint: $(READY) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY) ## Build the documentation into site/index.html and run its code
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/backsweep report results --out site/report.html
	$(BIN)/python -m pytest tests/test_docs.py tests/test_examples.py tests/test_site.py

bench: $(BENCH_READY) ## Measure speed and memory against the floor and the peers, for this kind of processor
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.tasks
	$(BIN)/python -m benchmarks.trainer
	$(BIN)/python -m benchmarks.updates
	$(BIN)/python -m benchmarks.reporting
	$(BIN)/python -m benchmarks.integrations
	$(BIN)/python -m benchmarks.planning
	$(BIN)/python -m benchmarks.exploring
	$(BIN)/python -m benchmarks.view
	$(BIN)/python -m benchmarks.first_use

bench-gpu: $(READY) ## Measure a fleet and its networks on a GPU
	$(BIN)/python -m benchmarks.learner --device cuda --streams 2 4
	$(BIN)/python -m benchmarks.fleet --device cuda
	$(BIN)/python -m benchmarks.fleet --device cuda --families sokoban --runs 4 --processes 8 --ratio 0.25 --steps 16000
	$(BIN)/python -m benchmarks.fleet --device cuda --families minigrid --runs 6 --processes 16 --ratio 0.25 --steps 40000

clean: ## Remove the environment and caches
	rm -rf .venv .venv-* site .pytest_cache .mypy_cache .ruff_cache .hypothesis
