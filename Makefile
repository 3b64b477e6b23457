# `make demo` and `make test` set up what they need; nothing but Python 3.11+ and make is assumed.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: setup demo test check clean

setup: .venv/.installed

demo: setup
	$(BIN)/truerank reproduce krichene-rendle

test: .venv/.test
	$(BIN)/python -m pytest -n auto

check: .venv/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

clean:
	rm -rf .venv

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truerank needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/.test: .venv/.installed
	$(PIP) --editable '.[test]'
	touch $@

.venv/.lint: .venv/.test
	$(PIP) --editable '.[test,lint]'
	touch $@
