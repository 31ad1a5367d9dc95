# Rules for the native half, included by the Makefile.
#
#   make native         build the extension module in build/dev and put it into src/jato
#   make native-test    build and run the tests of native/core: plain, ASan+UBSan, TSan
#
# PYTHON is the interpreter of an environment with cmake, ninja, nanobind and numpy.

PYTHON ?= .venv/bin/python
NATIVE_JOBS ?= 2
NATIVE_CMAKE = $(PYTHON) -m cmake
NATIVE_NINJA = $(dir $(PYTHON))ninja
# Two builds at once in one folder would disturb each other.
NATIVE_LOCK = $(if $(shell command -v flock),flock build/.lock,)
NATIVE_CONFIGURE = $(NATIVE_CMAKE) -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(NATIVE_NINJA)) --log-level=WARNING

.PHONY: native native-test native-test-plain native-test-address native-test-thread

native:
	@mkdir -p build
	@$(NATIVE_LOCK) $(MAKE) --no-print-directory native-locked

.PHONY: native-locked
# The module is moved into place, so that a running interpreter keeps the one it has mapped.
native-locked:
	$(NATIVE_CONFIGURE) -B build/dev -DPython_EXECUTABLE=$(abspath $(PYTHON)) > build/dev-configure.log || (cat build/dev-configure.log; false)
	$(NATIVE_CMAKE) --build build/dev --target _native -j $(NATIVE_JOBS)
	@for module in build/dev/_native*.so; do \
	  name=$$(basename $$module); \
	  if cmp -s $$module src/jato/$$name; then touch src/jato/$$name; \
	  else cp $$module src/jato/.$$name.part && mv src/jato/.$$name.part src/jato/$$name; fi; done

native-test: native-test-plain native-test-address native-test-thread

native-test-plain: SANITIZE =
native-test-address: SANITIZE = address,undefined
native-test-thread: SANITIZE = thread
native-test-plain native-test-address native-test-thread:
	@mkdir -p build
	$(NATIVE_CONFIGURE) -B build/$@ -DJATO_MODULE=OFF -DJATO_NATIVE_TESTS=ON -DJATO_SANITIZE=$(SANITIZE) > build/$@.log || (cat build/$@.log; false)
	$(NATIVE_CMAKE) --build build/$@ -j $(NATIVE_JOBS)
	ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 \
	$(dir $(PYTHON))ctest --test-dir build/$@ --output-on-failure
