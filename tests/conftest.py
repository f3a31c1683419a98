"""Settings of every test: the same examples each time, and BLAS threads that sleep when they have nothing to do."""

import os

# Several copies of the suite, or of its child processes, would otherwise spin for each other's cores.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

from hypothesis import settings

settings.register_profile("chimap", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("chimap")
