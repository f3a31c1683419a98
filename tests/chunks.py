"""Chunks of a few rows, so that a fit of few rows has several of them."""

from __future__ import annotations

import pytest

CHUNK_ROWS = 256


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks as short as under the smallest budget of memory, which allows a single unit of rows."""
    monkeypatch.setattr("chimap.engines.memory.CHUNK_UNIT", CHUNK_ROWS)
    monkeypatch.setattr("chimap.engines.memory.MOST_ROWS", 0)
    monkeypatch.setattr("chimap.fit.collecting.kernel.CHUNK_ROWS", CHUNK_ROWS)
