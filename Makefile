# `make demo` and `make test` set up what they need; nothing but Python 3.11+ and make is assumed.
PYTHON ?= python3
INSTALL := -m pip --disable-pip-version-check install --quiet

.PHONY: setup demo test check clean

setup: .venv/.installed

demo: setup
	.venv/bin/truerank reproduce krichene-rendle --figures demo

test: .venv/.test .venv-peers/.installed
	OPENBLAS_NUM_THREADS=1 .venv/bin/python -m pytest -n auto --ignore tests/peers
	.venv-peers/bin/python -m pytest tests/peers

check: .venv/.lint
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

clean:
	rm -rf .venv .venv-peers

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truerank needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[plots]'
	touch $@

.venv/.test: .venv/.installed
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test]'
	touch $@

.venv/.lint: .venv/.test
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,lint]'
	touch $@

# other libraries pin older versions of NumPy and pandas than ours, so they live apart
.venv-peers/.installed: .venv/.installed constraints-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(INSTALL) --constraint constraints-peers.txt --editable '.[peers]'
	touch $@
