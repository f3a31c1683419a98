"""Settings of every test: the same examples each time, and one thread for each library that multiplies matrices."""

import os

# The matrices of tests are small: threads of BLAS would wait for each other longer than they work, and several
# copies of the suite, or of its child processes, would spin for each other's cores. Loops of chimap keep their threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from hypothesis import settings
from threadpoolctl import threadpool_limits

threadpool_limits(1, user_api="blas")  # plugins of pytest, such as zarr's, have loaded NumPy before this file

settings.register_profile("chimap", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("chimap")
