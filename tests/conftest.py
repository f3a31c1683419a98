"""Settings of every test: the same examples each time, and one thread for each library that multiplies matrices."""

import gc
import os
from pathlib import Path

# The matrices of tests are small: threads of BLAS would wait for each other longer than they work, and several
# copies of the suite, or of its child processes, would spin for each other's cores. Loops of chimap keep their threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from .covering import mark_what_is_thorough

gc.disable()  # until the tests are collected: hundreds of thousands of objects are made, and stay
threadpool_limits(1, user_api="blas")  # plugins of pytest, such as zarr's, have loaded NumPy before this file

settings.register_profile("chimap", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("chimap")


# Where no loop is compiled yet, each process compiles what it calls. The file that calls most loops comes first, in one
# process, beside files that call few in the others; what comes after finds the loops on disk. Long tests that are alone
# in their file come next, so that no process ends with one while others have nothing left.
_FIRST = ("laws/test_estimators.py", "data", "docs", "test_doctests.py", "test_readme.py")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the files of ``_FIRST`` to the front, in their order, and mark what only a thorough run needs."""
    folder = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(folder).as_posix()
        return next((i for i, first in enumerate(_FIRST) if path.startswith(first)), len(_FIRST))

    items.sort(key=place)
    mark_what_is_thorough(items)


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what the collection of tests has made."""
    gc.freeze()
    gc.enable()
