# Everything runs from .venv, which `make setup` builds from the pinned versions in requirements-dev.txt.

PYTHON ?= python3
JOBS ?= 2
TORCH ?= torch

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.ready
NATIVE := $(wildcard src/lattend/attend/kernels/native/build.py src/lattend/attend/kernels/native/source/* src/lattend/attend/replay/host/host.cpp)
GPU_TESTS := tests/attend tests/nn/grid tests/nn/convolution
PIP := $(PY) -m pip --disable-pip-version-check --quiet --quiet

.DEFAULT_GOAL := help
ON_A_GPU := gpu gpu-rules gpu-ranks gpu-check # what needs one

.PHONY: help setup demo docs docs-serve test test-newest browser test-long gpu-all $(ON_A_GPU) smoke lint format pictures page bench clean

help: ## print this list
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: $(STAMP) ## make .venv with everything in it (quick when nothing changed)

$(STAMP): requirements-dev.txt pyproject.toml hatch_build.py $(NATIVE)
	@command -v $(PYTHON) >/dev/null || { \
		echo "lattend needs Python 3.11 or newer, and '$(PYTHON)' was not found." \
			"Install it, or name one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "lattend needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
			"Name a newer one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up $(VENV): the first time takes a few minutes"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -r requirements-dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(PY) -m pip --disable-pip-version-check check >/dev/null || { $(PY) -m pip check >&2; exit 1; }
	@touch $@

demo: $(STAMP) ## every topic with its picture, every rule counted and checked; writes out/tour.html
	@$(PY) -m lattend.tour

docs: $(STAMP) ## the documentation site, in out/docs: chapters, gallery, questions, notebooks, speed, reference
	@$(PY) docs/site/make.py

docs-serve: $(STAMP) ## the same, shown on this machine
	@$(PY) docs/site/make.py --serve

test: lint browser ## everything: lint, format, types, tests, and those of transformers with its oldest and newest version
	$(PY) -m pytest -n $(JOBS)
	$(MAKE) transformers-oldest transformers-newest

# An environment on top of .venv, with another transformers and no second torch
ON_TOP = $(PY) -m venv --without-pip $(1) && $(PY) -c "import sysconfig, pathlib; \
	folder = sysconfig.get_path('purelib', vars={'base': '$(1)', 'platbase': '$(1)'}); \
	pathlib.Path(folder, 'on_top.pth').write_text(f'import site; site.addsitedir({sysconfig.get_path(\"purelib\")!r})')"
# Their own deprecations are no errors: one test runs with versions that differ in their names
TEST_TRANSFORMERS = -m pytest -n $(JOBS) -W default::FutureWarning $(addprefix tests/integrations/test_,$(addsuffix .py,$(PARTS)))
PARTS := transformers looking_ahead saved_rules training

$(VENV)/transformers-%/.ready: requirements-transformers-%.txt $(STAMP)
	@rm -rf $(@D)
	@$(call ON_TOP,$(@D))
	@$(PIP) --python $(@D)/bin/python install --no-deps -r $<
	@touch $@

.PRECIOUS: $(VENV)/transformers-%/.ready
transformers-%: $(VENV)/transformers-%/.ready
	$(VENV)/$@/bin/python $(TEST_TRANSFORMERS)

test-newest: $(STAMP) ## tests with the newest transformers and torch of the package index: gigabytes of CUDA (TORCH=torch==2.13.0 keeps it)
	@rm -rf $(VENV)/index && $(call ON_TOP,$(VENV)/index)
	$(PY) -m pip --python $(VENV)/index/bin/python install --upgrade transformers $(TORCH)
	$(VENV)/index/bin/python -c "import torch, transformers; print('torch', torch.__version__, 'transformers', transformers.__version__)"
	$(VENV)/index/bin/python $(TEST_TRANSFORMERS)

browser: $(STAMP) ## what the tests of the page need: its libraries, and a Chromium where there is none
	@$(PY) client/build.py --install || echo "npm is out of reach: the page is not built again, only tested"
	@$(PY) client/chromium.py

test-long: $(STAMP) ## the long sweeps
	$(PY) -m pytest -n $(JOBS) -m long

gpu-all: $(ON_A_GPU) ## everything that needs a GPU, the four below (make -k gpu-all PY=python3 JOBS=15 goes on after a failure)

gpu: ## what CI cannot run: the tests of kernels, on a machine with a GPU and by its own torch (make gpu PY=python3)
	$(PY) -m pytest -n $(JOBS) -p no:benchmark $(GPU_TESTS)

gpu-rules: ## a thousand random rules and the catalogue on a GPU, beside float64 (make gpu-rules PY=python3)
	$(PY) tests/attend/rules_on_gpu.py

gpu-ranks: ## attention over ranks that share a GPU, beside float64: 2 and 4 processes and gloo (make gpu-ranks PY=python3)
	$(PY) tests/parallel/ranks_on_gpu.py

# racecheck takes cuBLAS's products for races, and kernels of torch, which are not ours to check, take it minutes
SANITIZE := compute-sanitizer --report-api-errors no --error-exitcode 9 --print-limit 0 --tool
NOT_OURS := --kernel-name-exclude kns=nvjet,kns=cublas,kns=cutlass,kns=gemm,kns=_ZN2at

gpu-check: ## each kernel under compute-sanitizer: memory, barriers, races; a process a part (make gpu-check PY=python3)
	$(PY) tests/attend/each_kernel.py --processes $(JOBS) --under "$(SANITIZE) memcheck"
	$(PY) tests/attend/each_kernel.py --processes $(JOBS) --under "$(SANITIZE) synccheck"
	$(PY) tests/attend/each_kernel.py --processes $(JOBS) --under "$(SANITIZE) racecheck $(NOT_OURS)"

smoke: $(STAMP) ## the wheel, built and installed into an empty environment; a part of test-long
	$(PY) -m pytest -m long tests/test_wheel.py

lint: $(STAMP) ## ruff and pyright, changing nothing
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright

format: $(STAMP) ## let ruff rewrite what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

pictures: $(STAMP) ## draw the pictures of the README and the docs again, and the tables of docs/speed.md
	@$(PY) docs/pictures/make.py
	@$(PY) docs/site/speed.py

page: $(STAMP) ## build the page of `lattend serve` from client/
	@$(PY) client/build.py

bench: $(STAMP) ## counting, attention, layers, the page: on the CPU, and on the GPU where there is one
	@for file in counts plans attention_cpu from_conv grid_cpu grid_host attention_gpu grid_gpu web_typing web_frames web_load; do \
		echo "== benchmarks/$$file.py"; $(PY) "benchmarks/$$file.py" || exit 1; done

clean: ## remove .venv, out/ and caches
	rm -rf $(VENV) out build dist .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
