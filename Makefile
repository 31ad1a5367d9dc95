# The developer's commands.  A fresh clone needs Python 3.11 or later and a C++20 compiler.
#
#   make demo           blur a photograph eagerly, jitted and pmapped; pictures go to out/
#   make test           all tests, examples in docstrings included
#   make bench          the benchmark suite, beside JAX where it is installed
#   make fuzz           random programs, until FUZZ_SECONDS (default 300) have passed
#   make lint           ruff and mypy        make format   ruff format
#   make docs           the pages of docs/ that are generated
#   make native         the native module    make native-test   tests of native/core, sanitized
#   make check-install  `pip install .` in a clean environment, and a first program there
#
# Each command makes the environment .venv with what it needs.  PYTHON=... uses another one, as it is.

BASE_PYTHON ?= python3
EXTRAS ?= test
FUZZ_SECONDS ?= 300
TEST_JOBS ?= 2
TEST_ARGS ?=
BENCH_ARGS ?=

export PYTHONPATH := $(abspath src)

ifeq ($(origin PYTHON),undefined)
PYTHON := .venv/bin/python
environment = .venv/with-$(subst $(comma),-,$(1))
else
environment =
endif
comma := ,

include native/native.mk

.PHONY: demo test bench fuzz lint format docs check-install clean

demo: $(call environment,demo) native
	$(PYTHON) examples/demo.py

test: $(call environment,$(EXTRAS)) native
	$(PYTHON) -m pytest -q -n $(TEST_JOBS) --dist loadfile $(TEST_ARGS)

bench: $(call environment,$(EXTRAS)) native
	$(PYTHON) benchmarks/run.py $(BENCH_ARGS)

fuzz: $(call environment,test) native
	JATO_FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTHON) -m pytest -q -s tests/fuzz

lint: $(call environment,dev) native
	$(PYTHON) -m ruff check
	$(PYTHON) -m mypy

format: $(call environment,dev)
	$(PYTHON) -m ruff format

docs: $(call environment,test) native
	$(PYTHON) benchmarks/math_accuracy.py

check-install:
	rm -rf build/install-check && $(BASE_PYTHON) -m venv build/install-check
	build/install-check/bin/python -m pip install --quiet .
	cd build/install-check && PYTHONPATH= bin/python -m jato info && \
	  PYTHONPATH= bin/python -c "import jato.numpy as jnp; print(jnp.tanh(jnp.arange(4.0)))"

clean:
	rm -rf build out .pytest_cache .mypy_cache .ruff_cache

native native-test-plain native-test-address native-test-thread: | $(call environment,build)

# What pip needs to know comes from pyproject.toml, the one place where dependencies are listed.
.venv/bin/python:
	$(BASE_PYTHON) -m venv .venv

.venv/with-%: pyproject.toml | .venv/bin/python
	$(PYTHON) tools/requirements.py $* > .venv/requirements-$*.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -r .venv/requirements-$*.txt
	@touch $@
