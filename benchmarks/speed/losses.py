"""MNIST, exp-chi2, D = 1024, all training rows: what do losses other than the square gain, and what do they cost?

The benchmark times fits with the strength chosen and with it given. On part of the rows it compares features kept in
memory with features computed again at each pass, under a budget that they do not fit. Then, with the same features
and strength, it compares the search in whitened weights with the same search without whitening (passes to the same
gradient), and with scikit-learn's L-BFGS, class by class, for two classes (seconds, and the objective that each
reached: lower is better).
"""

import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import mnist, report
from chimap import HistogramClassifier
from chimap.losses import Logistic
from chimap.moments import Moments
from chimap.solvers.lbfgs import lbfgs, over, zero_solution
from chimap.solvers.ridge import Factor

D, ROWS, CLASSES = 1024, 2048, 2  # the solvers are compared on the first classes, each against the rest
SMALL_BUDGET = "60MiB"  # the features of 10 000 rows are 39 MiB


def fitted(X, y, loss, **settings):
    began = time.perf_counter()
    model = HistogramClassifier("exp-chi2", n_components=D, loss=loss, random_state=0, **settings).fit(X, y)
    return model, time.perf_counter() - began


def estimators(X, y, Xt, yt):
    fitted(X[:3000], y[:3000], "square")  # loads the compiled loops
    square, seconds = fitted(X, y, "square")
    accuracy = square.score(Xt, yt)
    print(f"square: test accuracy {accuracy:.4f}, {seconds:.1f} s, strength {square.alpha_:.3g} chosen")
    for loss in ("logistic", "squared_hinge"):
        chosen, chosen_s = fitted(X, y, loss)
        given, given_s = fitted(X, y, loss, alpha=chosen.alpha_)
        report(
            f"{loss}: points of test accuracy over the square loss",
            f"{100 * (chosen.score(Xt, yt) - accuracy):.2f}",
            "> 0",
        )
        report(f"{loss}, strength chosen: time over the square loss", f"{chosen_s / seconds:.2f}", "< 3")
        print(
            f"  {chosen_s:.1f} s and {chosen.n_passes_} passes with the strength chosen ({chosen.alpha_:.3g}); "
            f"{given_s:.1f} s and {given.n_passes_} with it given; accuracies {chosen.score(Xt, yt):.4f}, "
            f"{given.score(Xt, yt):.4f}; stages { {k: round(v, 1) for k, v in given.stage_seconds_.items()} }"
        )
    part = slice(10_000)
    kept, kept_s = fitted(X[part], y[part], "squared_hinge", alpha=1.0)
    again, again_s = fitted(X[part], y[part], "squared_hinge", alpha=1.0, memory=SMALL_BUDGET)
    report("10 000 rows, features computed again at each pass: times as long", f"{again_s / kept_s:.1f}", "< passes")
    print(
        f"  kept {kept_s:.1f} s, {kept.n_passes_} passes; in {SMALL_BUDGET} {again_s:.1f} s, {again.n_passes_} passes"
    )
    return given


def features_of(model, X):
    Z = np.empty((X.shape[0], D), dtype=np.float32)
    model.features_.features_into(X, Z)
    return Z - Z.mean(axis=0)


def solvers(Z, y, alpha):
    Y = np.where(y[:, None] == np.arange(CLASSES), 1.0, -1.0)
    start = zero_solution(D, CLASSES)

    def chunks():
        for first in range(0, len(Z), ROWS):
            yield Z[first : first + ROWS], Y[first : first + ROWS]

    def objective(W, b):
        return Logistic().value(Y, Z @ W + b).sum() + alpha / 2 * np.square(W).sum()

    lbfgs(Logistic(), over(chunks), 1e3, start)  # warm-up
    began = time.perf_counter()
    factor, moments = Factor(D), Moments(D, CLASSES)
    for part, targets in chunks():
        moments.update(part, targets)
    factor.of(moments, alpha / Logistic().curvature)
    whitened = lbfgs(Logistic(), over(chunks), alpha, start, whitening=factor, tolerance=3e-4)
    ours = time.perf_counter() - began
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        plain = lbfgs(Logistic(), over(chunks), alpha, start, tolerance=1e-5, max_passes=200)
        plain_s = time.perf_counter() - began
        began = time.perf_counter()
        peers = [LogisticRegression(C=1 / alpha, tol=1e-6, max_iter=300).fit(Z, Y[:, t]) for t in range(CLASSES)]
        peer_s = time.perf_counter() - began
    peer = objective(
        np.array([p.coef_[0] for p in peers]).T.astype(np.float32), np.ravel([p.intercept_ for p in peers])
    )
    report(
        f"logistic, strength {alpha:.3g}: objective without whitening over with it",
        f"{plain.objective / whitened.objective:.4f}",
        ">= 1",
    )
    report("  passes without whitening over with it", f"{plain.passes / whitened.passes:.1f}", "> 2")
    report("  scikit-learn: seconds over ours (moments and factor included)", f"{peer_s / ours:.2f}", "> 1")
    print(
        f"  whitened {whitened.passes} passes, {ours:.1f} s, objective {whitened.objective:.1f}; without {plain.passes} "
        f"passes, {plain_s:.1f} s, {plain.objective:.1f}; scikit-learn {peer_s:.1f} s, {peer:.1f}"
    )


def main():
    X, y, Xt, yt = mnist(normalize=True)
    model = estimators(X, y, Xt, yt)
    solvers(features_of(model, X), y, alpha=0.0285)


if __name__ == "__main__":
    main()
