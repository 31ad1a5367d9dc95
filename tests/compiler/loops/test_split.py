"""Chunks of reductions that are split among threads."""

from __future__ import annotations

from math import ceil

import pytest

from jato.compiler.loops.split import LEAST_CHUNK, MOST_CHUNKS, chunk_length


@pytest.mark.parametrize("inner", [1, 7, 200, 5000])
@pytest.mark.parametrize("row", [1, 3, 100, 1030, 4096, 9000, 10**6])
@pytest.mark.parametrize("extent", [1, 10, 1000, 50_000, 10**6, 10**8])
def test_chunks(extent, inner, row):
    chunk = chunk_length(extent, inner, row)
    assert chunk >= 1
    assert ceil(extent / chunk) <= MOST_CHUNKS
    if extent * inner > 16 * LEAST_CHUNK:  # not far below, but where they are whole rows
        assert chunk * inner >= LEAST_CHUNK / 2
    if 2 * row <= chunk:
        assert chunk % row == 0
