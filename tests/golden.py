"""Golden values, which lie in tests/golden, and real data sets beside the repository.

A test that asks for an absent data set is skipped; golden values are always there.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

VALUES = Path(__file__).parent / "golden"
SHARED = Path(__file__).resolve().parents[1].parent / "shared"
RELATIVE = {np.float64: 1e-12, np.float32: 1e-5}  # what golden values must hold to


def golden(name: str) -> dict[str, Any]:
    """The contents of tests/golden/<name>.json."""
    return _read(VALUES / f"{name}.json")


@lru_cache
def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def counts(name: str) -> sp.csr_matrix:
    """The counts, float64, of ../shared/data/<name>.npz."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data")
    with np.load(path) as file:
        parts = (file["data"].astype(np.float64), file["indices"].astype(np.int32), file["indptr"].astype(np.int32))
        return sp.csr_matrix(parts, shape=tuple(file["shape"]))


def column(rows: list[dict[str, Any]], name: str, dtype: Any = np.float64) -> np.ndarray:
    """One entry of every row of a table."""
    return np.array([row[name] for row in rows], dtype=dtype)
