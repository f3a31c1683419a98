"""Fits beside each other: in threads, in processes that joblib starts, and in a process that was forked after a fit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed

from chimap import HistogramClassifier

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).dirichlet(np.ones(8), 300)
Y = (X[:, 0] > 0.1).astype(int)


def scores_of(seed):
    model = HistogramClassifier("exp-chi2", features="fourier", n_components=64, alpha=1.0, random_state=seed)
    return model.fit(X, Y).decision_function(X)


def test_fits_in_threads_are_those_of_one_after_the_other():
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(scores_of, range(8)))
    for seed, scores in enumerate(beside):
        np.testing.assert_allclose(scores, scores_of(seed), rtol=1e-6, atol=1e-6)


def test_fits_in_processes_of_joblib():
    found = Parallel(n_jobs=2, backend="loky")(delayed(scores_of)(seed) for seed in range(2))
    np.testing.assert_allclose(found, [scores_of(0), scores_of(1)], rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_a_process_that_is_forked_after_a_fit_fits_too(request):
    program = textwrap.dedent(
        """
        import multiprocessing, numpy as np
        from tests.estimators.test_concurrent_fits import scores_of
        before = scores_of(0)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for scores in pool.map(scores_of, [0, 0]):
                np.testing.assert_allclose(scores, before, rtol=1e-6, atol=1e-6)
        """
    )
    # in a process of its own: what hangs must fail, and not the suite with it
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
