"""Settings of numba under which loops cannot be compiled or kept: they work, or say what to change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

USE = "import chimap, numpy as np; print(chimap.chi2(np.eye(2)).sum())"
NOWHERE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
"""


def run(program: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True, check=False
    )


def test_without_compilation():
    done = run(USE, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("Unset this variable.")


def test_nowhere_to_keep_what_was_compiled():
    done = run(NOWHERE + USE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.0\n"
    assert "Set NUMBA_CACHE_DIR to a writable folder" in done.stderr
