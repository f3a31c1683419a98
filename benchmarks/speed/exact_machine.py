"""Ten thousand rows, all kept: how fast is the exact machine, with alpha and gamma chosen, and how accurate is it?

The factor of the n x n matrix, counted as n^3/3 operations, is compared with the best product of this machine. Whole
fits on shared sets are compared with SVC (LIBSVM) with given parameters on the same kernel, on fewer rows, because
its time grows by more than the square of their number (10 000 rows took 568 s here on two cores). Generalised
cross-validation is compared with the pass that it chooses for in time, and with five folds in accuracy. On words,
gradient boosting (LightGBM) with early stopping is the competitor.

    python -m benchmarks.speed.exact_machine            # about 5 minutes on two cores
    python -m benchmarks.speed.exact_machine --rows 2000
    python -m benchmarks.speed.exact_machine --boosting    # the comparison with LightGBM alone
"""

import argparse
import time

from benchmarks.measure import report, sgemm_rates
from benchmarks.sets import SETS

# measure sets up the BLAS before NumPy loads it
import numpy as np  # isort: skip
from sklearn.metrics.pairwise import chi2_kernel  # isort: skip
from sklearn.svm import SVC  # isort: skip

from benchmarks.accuracy.against_others import lightgbm  # isort: skip
from chimap import HistogramClassifier  # isort: skip
from chimap._cholesky import factorise, inverse_diagonal  # isort: skip

TARGETS = {"mnist": 0.976, "newsgroups": 0.80}  # test accuracy at 10 000 rows
REPEATS, SVC_ROWS, TEST_BLOCK = 3, 2_000, 2_000


def factor_rates(n):
    """Return the rates of a factor and of the inverse's diagonal, as shares of SGEMM's rate."""
    rng = np.random.default_rng(0)
    U = rng.standard_normal((n, 64), dtype=np.float32) / 8
    square = U @ U.T
    square[np.diag_indices(n)] += 1
    best, product = [np.inf, np.inf], max(sgemm_rates().values())
    for _ in range(REPEATS):
        R = square.copy()
        for k, step in enumerate((factorise, inverse_diagonal)):
            began = time.perf_counter()
            step(R)
            best[k] = min(best[k], time.perf_counter() - began)
    return [n**3 / 3 / seconds / product for seconds in best]


def timed(model, some):
    """Return (seconds of the fit, test score)."""
    few = some.some(300, 0)
    model.fit(few.X, few.y)  # compiles the loops before the clock starts
    began = time.perf_counter()
    model.fit(some.X, some.y)
    return time.perf_counter() - began, model.score(some.X_test, some.y_test)


def libsvm(some, gamma):
    """Return the seconds of SVC with given parameters on the kernel matrix of some rows, and its accuracy."""
    rows = some.X / some.X.sum(axis=1, keepdims=True)
    began = time.perf_counter()
    machine = SVC(C=10.0, kernel="precomputed").fit(chi2_kernel(rows, gamma=gamma), some.y)
    seconds = time.perf_counter() - began
    tests = some.X_test / some.X_test.sum(axis=1, keepdims=True)
    right = [
        (machine.predict(chi2_kernel(tests[i : i + TEST_BLOCK], rows, gamma=gamma)) == some.y_test[i : i + TEST_BLOCK])
        for i in range(0, len(tests), TEST_BLOCK)
    ]
    return seconds, float(np.concatenate(right).mean())


def exact(**options):
    return HistogramClassifier(
        "exp-chi2", features="exact", gamma="auto", normalize="l1", memory="4GiB", random_state=0, **options
    )


def beside_boosting(n_rows):
    """Return seconds and accuracy of LightGBM and of the exact machine, on words.

    LightGBM stops when a held-out tenth of the rows gains nothing more.
    """
    some = SETS["newsgroups"]().some(n_rows, 0)
    seconds, score = timed(exact(), some)
    print(f"  exact {seconds:.1f} s, {score:.4f}", flush=True)
    began = time.perf_counter()
    peer = lightgbm(some, 0)
    peer_seconds = time.perf_counter() - began
    peer_score = float((peer.predict(some.X_test) == some.y_test).mean())
    print(f"  LightGBM {peer_seconds:.1f} s, {peer_score:.4f}", flush=True)
    report(f"newsgroups, {some.X.shape[0]} rows: LightGBM / exact, seconds", round(peer_seconds / seconds, 2), ">= 2")
    report("points above LightGBM", round(100 * (score - peer_score), 1), ">= 5")


def main(n_rows, n_components):
    rate, diagonal = factor_rates(min(n_rows, 5000))
    report("factor of the kernel matrix / SGEMM", round(rate, 2), ">= 0.6")
    report("diagonal of its inverse / SGEMM", round(diagonal, 2), "")
    for name, target in TARGETS.items():
        some = SETS[name]().some(n_rows, 0)
        seconds, score = timed(exact(), some)
        report(f"{name}, {some.X.shape[0]} rows: accuracy", round(score, 4), f">= {target} at 10 000 rows")
        report(f"{name}: seconds of the fit", round(seconds, 1), "< 45 (mnist, 10 000 rows)")
    some = SETS["mnist"]().some(min(n_rows, SVC_ROWS), 0)
    model = exact()
    seconds, score = timed(model, some)
    peer, peer_score = libsvm(some, model.kernel_.gamma)
    report(f"LIBSVM / exact, {some.X.shape[0]} rows, seconds", round(peer / seconds, 2), "")
    report("accuracy of both", f"{peer_score:.4f} / {score:.4f}", "")
    some = SETS["mnist"]().some(n_rows, 0)
    common = {"n_components": n_components, "normalize": "l1", "memory": "4GiB", "random_state": 0}
    by_gcv = HistogramClassifier("exp-chi2", selection="gcv", features="fourier", **common)
    _, score = timed(by_gcv, some)
    stages = by_gcv.stage_seconds_
    choice = stages["choose alpha"]
    passing = sum(stages.get(stage, 0.0) for stage in ("read", "check", "features", "moments"))
    report(f"gcv / pass, {some.X.shape[0]} x {n_components}", round(choice / passing, 2), "<= 1.0 at 10 000 x 8192")
    _, folds_score = timed(HistogramClassifier("exp-chi2", selection=5, features="fourier", **common), some)
    report("accuracy by gcv less that by five folds", round(score - folds_score, 4), ">= -0.001")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--boosting", action="store_true", help="run only the comparison with LightGBM")
    arguments = parser.parse_args()
    if arguments.boosting:
        beside_boosting(arguments.rows)
    else:
        main(arguments.rows, arguments.components)
