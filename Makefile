# Everything a person or CI does, in one place. `make help` lists it.
PYTHON ?= python3
CONFIG ?= config/config.yaml
CORES ?= all
BIN := .venv/bin
UV_VERSION := 0.11.2

help:  ## this list
	@grep -hE '^[a-z0-9_-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'
