# Everything a person or CI does, in one place. `make help` lists it.
PYTHON ?= python3
CORES ?= all
CONFIG ?= config/config.yaml
BIN := .venv/bin
GROUPS := workflow questions scenes services embed score people holistic dev
SNAKEMAKE := $(BIN)/snakemake --cores $(CORES)
# `make table2 CONFIG=config/tiny.yaml`: merged over config/config.yaml
ifneq ($(CONFIG),config/config.yaml)
CONFIGFILE := --configfile $(CONFIG)
endif

# The embedded models are small: several at once are faster than many threads for one. A model of yours gets its threads.
THREADS ?= $(shell $(PYTHON) -c 'import os; print(max(1, (os.cpu_count() or 1) // 4))')
ifeq ($(CONFIG),config/config.yaml)
AT_ONCE := --max-threads $(THREADS)
endif

.PHONY: help table2 transfer ablations tiny default-thresholds test report check generated lock benchmarks clean

help:  ## this list
	@grep -hE '^[a-z0-9_-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9_-]+):.*## */  make \1\t/' | expand -t 20

table2: .venv/ready  ## SABER's Table 2 with the embedded models, offline but for the first fetch (CONFIG=..., CORES=...)
	$(BIN)/python -m bindbench check-config config/config.yaml $(CONFIG)
	$(SNAKEMAKE) $(AT_ONCE) results/saber_table2.csv $(CONFIGFILE)

transfer: .venv/ready  ## does finetuning on texts reach images? nano, three seeds, an hour on two cores
	$(SNAKEMAKE) --max-threads $(THREADS) results/saber_table2.csv results/single_objects.csv results/triplet_accuracy.csv --configfile config/transfer.yaml

ablations: .venv/ready  ## tables of ablations of MiniLM and nano: trains 15 small adapters and measures them, some hours on two cores
	$(SNAKEMAKE) $(AT_ONCE) results/ablations.csv results/figures/attention.svg --configfile config/ablations.yaml $(CONFIGFILE:--configfile=)

# A program's start takes longer than its work here, so each has one core.
tiny: .venv/ready  ## every stage on a handful of questions, into results/
	$(SNAKEMAKE) all --configfile config/tiny.yaml --max-threads 1

default-thresholds: .venv/ready  ## the uncalibrated thresholds of MultiBind that ship, anew, into resources/multibind/
	$(BIN)/python -m bindbench.devtools.known_photographs results/known_photographs
	$(SNAKEMAKE) results/multibind/default_thresholds.csv --configfile config/default_thresholds.yaml
	cp results/multibind/default_thresholds.* resources/multibind/

report: .venv/ready  ## results/report.html: tables, figures and sheets in one file
	$(SNAKEMAKE) all $(CONFIGFILE)
	$(BIN)/snakemake all $(CONFIGFILE) --report results/report.html

test: .venv/ready  ## the tests, two at a time with a thread each
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

check: .venv/ready  ## style, lint, and that generated files are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile rules
	$(BIN)/snakemake --lint
	$(BIN)/python -m bindbench.devtools --check

generated: .venv/ready  ## config/config.yaml, its schema and README, envs/*.yaml from the models, pyproject.toml and the lock
	$(BIN)/python -m bindbench.devtools

lock: .venv/uv  ## requirements.lock from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml $(GROUPS:%=--group %) --universal --generate-hashes --no-emit-index-url --no-header -q -o requirements.lock

benchmarks: .venv/ready  ## speed and memory against peers (in an environment of their own), into benchmarks/*.md
	$(BIN)/uv venv -q --allow-existing .venv/peers
	$(BIN)/uv pip install -q --python .venv/peers/bin/python -r requirements.lock ranx torchmetrics pybullet
	$(BIN)/uv pip install -q --python .venv/peers/bin/python --no-deps --no-build-isolation -e .
	cd benchmarks && for script in embedding finetuning photographs planning pretraining renderer scoring services triplet_building triplet_grammar triplet_validation; do ../.venv/peers/bin/python $$script.py || exit 1; done

clean:  ## removes results/, which holds the caches too
	rm -rf results .snakemake

.venv/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bindbench needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check uv
	touch .venv/uv

.venv/ready: .venv/uv requirements.lock pyproject.toml
	$(BIN)/uv pip install -q --require-hashes --compile-bytecode -r requirements.lock
	$(BIN)/uv pip install -q --no-deps --no-build-isolation -e .
	touch .venv/ready
