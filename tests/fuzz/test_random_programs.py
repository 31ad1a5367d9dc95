"""Random programs for as long as JATO_FUZZ_SECONDS says: eager = jit = NumPy.  `make fuzz` runs it.

Seeds are fresh in each run, so that runs add up; JATO_FUZZ_SEED fixes the first one.  A failure
shows the seed and the program.  tests/test_differential.py has the fixed seeds of every day.
"""

from __future__ import annotations

import os
import time

import pytest
from random_programs import DTYPES, WIDE_DTYPES, build
from test_differential import check

import jato

SECONDS = float(os.environ.get("JATO_FUZZ_SECONDS", "0"))
FIRST_SEED = int(os.environ.get("JATO_FUZZ_SEED", time.time_ns() % 10**9))


@pytest.mark.skipif(SECONDS <= 0, reason="JATO_FUZZ_SECONDS is not set: make fuzz")
def test_random_programs() -> None:
    end = time.monotonic() + SECONDS
    seed = FIRST_SEED
    while time.monotonic() < end:
        wide = seed % 4 == 0
        length = 60 if seed % 10 == 0 else None
        try:
            with jato.enable_x64(wide):
                check(build(seed, WIDE_DTYPES if wide else DTYPES, length=length))
        except Exception as error:
            error.add_note(f"seed {seed}, {seed - FIRST_SEED} programs passed before")
            raise
        seed += 1
        if seed % 50 == 0:
            jato.clear_caches()  # fresh code from time to time, and flat memory
            print(f"\r{seed - FIRST_SEED} programs", end="", flush=True)
    print(f"\r{seed - FIRST_SEED} programs agree, from seed {FIRST_SEED}")
