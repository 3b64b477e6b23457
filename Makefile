# `make demo` and `make test` set up everything they need; they require only Python 3.11+ and make.
PYTHON ?= python3
INSTALL := -m pip --disable-pip-version-check install --quiet

CODE := hatch_build.py $(wildcard src/truerank/compiled/*.[chi]*)
TARGETS := linux-x86_64 linux-aarch64 macos-arm64 macos-x86_64 windows-amd64
SANITIZER := -fsanitize=address,undefined
SANITIZED := tests/counting/test_best.py tests/counting/test_counts.py tests/counting/test_histories.py \
  tests/counting/test_pairs.py tests/compiled \
  tests/recommenders/test_recommender_definitions.py tests/recommenders/test_cooccurrence.py

NUMERIC := $(addprefix tests/,analysis compiled corrections counting evaluation lists metrics ranking recommenders sampling scoring) \
  src docs README.md --ignore docs/how-to --ignore docs/tutorials --ignore tests/counting/test_interrupts.py
READING := tests/compiled tests/data tests/display tests/formats tests/lists tests/ranking tests/recommenders tests/scoring src README.md

.PHONY: setup demo test test-spark test-variants test-lowest test-newest check docs sanitize wheels clean

setup: .venv/.installed

demo: setup
	.venv/bin/truerank reproduce krichene-rendle --figures demo

test: export OPENBLAS_NUM_THREADS := 1
test: .venv/.test .venv-peers/.installed .venv-models/.installed
	.venv/bin/python -m pytest -n auto --ignore tests/peers --ignore tests/models --ignore tests/website --ignore tests/wheels
	.venv-peers/bin/python -m pytest tests/peers tests/models/test_rectools.py
	.venv-models/bin/python -m pytest tests/models tests/engines/test_elsewhere.py docs/how-to/pytorch-model.md docs/models.md \
	  --ignore tests/models/test_rectools.py
	$(MAKE) test-spark

# a cluster of two executors on this machine, if there is Java for Spark
test-spark:
	@if command -v java > /dev/null || test -n "$$JAVA_HOME"; \
	then $(MAKE) .venv-spark/.installed && .venv-spark/bin/python -m pytest tests/engines; \
	else echo 'skipped: tests/engines/test_spark.py needs Java 17'; fi

# what computes, with the loops for older processors and with BLAS rounding as it does on them
test-variants: export OPENBLAS_NUM_THREADS := 1
test-variants: .venv/.test
	@for pair in x86-64:Nehalem x86-64-v3:Haswell x86-64-v4:Zen; do \
	  loops=$${pair%:*} core=$${pair#*:}; \
	  if ! TRUERANK_LOOPS=$$loops .venv/bin/truerank --version; \
	  then echo "skipped: loops $$loops; $$core is tested with those that run here"; loops=; fi; \
	  TRUERANK_LOOPS=$$loops OPENBLAS_CORETYPE=$$core .venv/bin/python -m pytest -n auto $(NUMERIC) || exit 1; \
	done

# what reads and ranks, with the lowest versions that pyproject.toml allows, and with the newest that there are
test-lowest test-newest: export OPENBLAS_NUM_THREADS := 1
test-lowest test-newest: test-%: .venv-%/.installed
	.venv-$*/bin/truerank --version
	.venv-$*/bin/python -m pytest -n auto $(READING)

check: .venv/.lint
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/codespell *.md src docs benchmarks

# the documentation site, built without a network connection; its start page is build/docs/index.html
docs: .venv/.docs
	.venv/bin/python docs/make_figures.py
	.venv/bin/python docs/make_api.py
	mkdir -p docs/extra
	.venv/bin/truerank explore -o docs/extra/explore.html
	.venv/bin/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs build/docs
	.venv/bin/python -m pytest tests/website

# the compiled loops under the address and undefined-behaviour sanitizers, if the compiler has them
sanitize: .venv/.test
	@if echo 'int main(void) { return 0; }' | $(CC) $(SANITIZER) -x c - -o /dev/null 2> /dev/null; \
	then $(MAKE) sanitized-native $(if $(filter x86_64,$(shell uname -m)),sanitized-x86-64); \
	else echo 'skipped: $(CC) does not have the sanitizers'; fi

# as for this processor, and without its wide registers and fused multiply-add
.PHONY: sanitized-native sanitized-x86-64
sanitized-native sanitized-x86-64: sanitized-%:
	mkdir -p build/$@
	$(CC) -std=c11 -O1 -g -march=$* -ffp-contract=off -fvisibility=hidden -fPIC -shared $(SANITIZER) -fno-sanitize-recover=all \
	  src/truerank/compiled/*.c -lm -o build/$@/kernels-native.so
	LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 OPENBLAS_NUM_THREADS=1 \
	  .venv/bin/python -m pytest -n auto --library build/$@ $(SANITIZED)

# one wheel built from the source distribution in an isolated environment; those for other computers are cross-compiled
wheels: .venv/.wheels
	rm -rf dist
	.venv/bin/python -m build
	for target in $(TARGETS); do TRUERANK_TARGET=$$target .venv/bin/python -m build --wheel --no-isolation || exit 1; done
	.venv/bin/python -m pytest tests/wheels

clean:
	rm -rf .venv .venv-peers .venv-models .venv-spark .venv-lowest .venv-newest build dist src/truerank/compiled/kernels-*.*

.venv/.installed: pyproject.toml constraints.txt $(CODE)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truerank needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[plots]'
	touch $@

.venv/.test: .venv/.installed
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,browser]'
	touch $@

.venv/.wheels: .venv/.test
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,wheels]'
	touch $@

.venv/.docs: .venv/.test
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,docs]'
	touch $@

.venv/.lint: .venv/.test
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,lint]'
	touch $@

# the other libraries pin older versions of NumPy and pandas, so they have a separate environment
.venv-peers/.installed: .venv/.installed constraints-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(INSTALL) --constraint constraints-peers.txt --editable '.[peers]'
	touch $@

# these need newer versions than RecTools; torch comes first, so that nothing else chooses a larger build of it, and
# RecBole without its dependencies, because it wants an old version of ray
.venv-models/.installed: .venv/.installed constraints-models.txt
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python $(INSTALL) torch==2.13.0
	.venv-models/bin/python $(INSTALL) --constraint constraints-models.txt --editable '.[models]'
	.venv-models/bin/python $(INSTALL) --constraint constraints-models.txt --no-deps recbole
	touch $@

LOWEST := import re, tomllib; needed = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; \
  print(*(re.sub(r'>=([^,; ]+)[^;]*', r'==\1', each) for each in needed), sep='\n')

.venv-lowest/.installed: .venv/.installed
	mkdir -p build
	$(PYTHON) -c "$(LOWEST)" > build/constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(INSTALL) --constraint build/constraints-lowest.txt --editable '.[test]'
	touch $@

# PyArrow comes last, because pyproject.toml allows the newest only on newer Pythons
.venv-newest/.installed: .venv/.installed
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python $(INSTALL) --upgrade --editable '.[test]'
	.venv-newest/bin/python $(INSTALL) --upgrade --no-deps pyarrow
	touch $@

# Spark supports other versions of pandas
.venv-spark/.installed: .venv/.installed constraints-spark.txt
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/python $(INSTALL) --constraint constraints-spark.txt --editable '.[spark]' 'pyspark[connect]' hypothesis pytest
	touch $@
