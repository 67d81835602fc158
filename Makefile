# Needs Python 3.11 or 3.12 and make; everything else goes into .venv.

SCALE ?= quick
HOURS ?= 1
ROOMS := data partition models metrics evidence methods engine flower
READY := .venv/.ready
PY := .venv/bin/python
SUITS := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))
# The first Python that suits; override with `make PYTHON=/path/to/python book`.
PYTHON ?= $(shell for p in python3.11 python3.12 python3 python; do \
            "$$p" -c '$(SUITS)' 2>/dev/null && { command -v "$$p"; break; }; done)
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export JUPYTER_PREFER_ENV_PATH = 1

.PHONY: help book execute test check lint fill gpu lab data lock clean python
.DEFAULT_GOAL := help

help: ## this list
	@echo "make [SCALE=smoke|quick|paper] TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1 \2/p' Makefile | \
	  while read -r target text; do printf '  %-8s %s\n' "$$target" "$$text"; done

book: data ## execute the notebooks that changed, build the pages, say where they are
	@$(PY) book/build.py --scale $(SCALE)

execute: data ## execute the notebooks that changed, without building pages
	@$(PY) book/build.py --scale $(SCALE) --no-html

test: data ## run all tests but those in a browser; MARK="not book" leaves the notebooks out
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n logical --maxprocesses 8 --dist worksteal \
	  -m "not drawn$(if $(MARK), and ($(MARK)))" $(ARGS)

check: lint data ## form, style, types, directions and quick tests: about a minute
	@OMP_NUM_THREADS=1 $(PY) -m pytest -q -n logical --maxprocesses 8 \
	  -m "not book and not slow and not mirror and not drawn" tests/test_directions.py tests/test_diagram.py \
	  $(addprefix tests/,$(ROOMS))

lint: $(READY) ## form, style and types alone
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy

fill: data ## run what is worth most for the scoreboard; HOURS=2 says for how long
	@$(PY) -m lgfed_core fill --hours $(HOURS)

gpu: data ## fifteen minutes on a CUDA machine: check, time, then fill Table 8
	@timeout 120 $(PY) -m lgfed_core gpu-check | tee data/gpu_check.txt; test -s data/gpu_check.txt
	-@timeout 180 $(PY) -m lgfed_core bench --rounds 6 --json data/bench_gpu.json
	@for run in 1 2 3 4; do $(PY) -m lgfed_core fill --hours 0.15 --device cuda & done; wait

lab: data ## open the notebooks in JupyterLab
	@$(PY) -m jupyterlab

data: $(READY) ## fetch the data that the notebooks need
	@$(PY) -m lgfed_core data --stand-ins mnist cifar10 adult usps easy_vqa chitchat

lock: $(READY) ## bring constraints.txt in line with pyproject.toml; UPGRADE="numpy pandas" renews
	@$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-annotate \
	  --custom-compile-command "make lock" $(addprefix --upgrade-package ,$(UPGRADE)) \
	  --output-file constraints.txt pyproject.toml

clean: ## remove what was built (not .venv, not the data)
	rm -rf book/_build book/_vendor .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find book lgfed_core tests -name __pycache__ -prune -exec rm -rf {} +

python: # say which Python .venv is made with
	@test -n "$(PYTHON)" || { \
	  echo "No Python 3.11 or 3.12 with its venv module was found. Install one" >&2; \
	  echo "(Debian: apt-get install python3 python3-venv) or name it: make PYTHON=..." >&2; exit 1; }
	@echo "Python: $(PYTHON)"

# Made once, and again when what is to be installed changes.
$(READY): pyproject.toml constraints.txt
	@$(PY) -c '$(SUITS)' 2>/dev/null || { \
	  $(MAKE) --silent python && "$(PYTHON)" -m venv --clear .venv; }
	@$(PY) book/install.py
	@touch $@
