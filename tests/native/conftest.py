"""Fixtures of the tests of jato._native."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jato import _native
from jato.base import dtypes

assert dtypes.DTYPES  # importing it gives the runtime its dtype objects


@pytest.fixture
def x64() -> Iterator[None]:
    _native.set_thread_x64(True)
    yield
    _native.set_thread_x64(None)


@pytest.fixture
def operators() -> Iterator[None]:
    """Restores the table of operators."""
    before = _native.array_operators()
    yield
    now = _native.array_operators()
    _native.set_array_operators({name: before.get(name) for name in {**now, **before}})


@pytest.fixture
def two_devices() -> Iterator[None]:
    before = _native.num_devices()
    _native.set_num_devices(max(before, 2))
    yield
    _native.synchronize()
    _native.set_num_devices(before)
