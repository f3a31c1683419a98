"""CIFAR-10 visual words, five channels (the image, its quadrants) and a noise channel: what does learning weights cost?

The whole path of strengths of the square loss, for all classes, comes from moments. It is compared with skglm's group
LASSO on the equivalent rows (class by class, the same strengths and objective) and with as many plain fits with one
strength each. Then its accuracy is compared with that of the plain sum of kernels. On part of the rows the joint form
is run, in which widths are learned too. "--plot FILE" draws the path. "--rows N" takes fewer rows.
"""

import argparse
import time
import warnings
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import csr_of, data_file, report
from chimap import HistogramClassifier, MultipleKernelLearner
from chimap.penalties import L21
from chimap.solvers.groups import SquareProblem, follow
from chimap.solvers.sparse import PATH_END, equivalent_rows

D, STRENGTHS, PEER_CLASSES, PEER_STRENGTHS = 256, 30, 2, 10
WORDS = 500


def channels(n_rows):
    """Return (X, y, X_test, y_test, blocks).

    The channels are visual words of the image, of its quadrants, and the words of the image with the rows in another
    order.
    """
    with np.load(data_file("cifar10_bow.npz")) as z:
        X = csr_of(z)
        y, train = z["y"], z["is_train"]
    whole = sum(X[:, k * WORDS : (k + 1) * WORDS] for k in range(4))
    noise = whole[np.random.default_rng(0).permutation(whole.shape[0])]
    X = sp.hstack([whole, X, noise], format="csr")
    names = ["image", "top left", "top right", "bottom left", "bottom right", "noise"]
    blocks = {name: slice(j * WORDS, (j + 1) * WORDS) for j, name in enumerate(names)}
    chosen = np.sort(np.random.default_rng(1).permutation(np.flatnonzero(train))[:n_rows])
    return X[chosen], y[chosen], X[~train], y[~train], blocks


def timed(call):
    began = time.perf_counter()
    return call(), time.perf_counter() - began


def moments_of(model, X, y):
    """Return the moments of the features and of one target per class, as the fit has them."""
    from chimap.moments import Moments

    moments = None
    for first in range(0, X.shape[0], 8192):
        Z = model.features_.transform(X[first : first + 8192])
        Y = np.where(y[first : first + 8192, None] == model.classes_, 1.0, -1.0)
        moments = moments or Moments(Z.shape[1], Y.shape[1])
        moments.update(Z, Y)
    return moments


def against_skglm(model, moments):
    import skglm

    borders = model.features_.borders_.tolist()
    penalty = L21(1.0, [slice(*pair) for pair in pairwise(borders)], borders[-1])
    problem, build = timed(lambda: SquareProblem(moments, penalty))
    alphas = np.geomspace(problem.largest, PATH_END * problem.largest, STRENGTHS)
    path, seconds = timed(lambda: follow(problem, alphas))
    part = alphas[:: STRENGTHS // PEER_STRENGTHS]
    R, Q = equivalent_rows(moments)
    rows, scale = len(R), np.sqrt(moments.count)
    R, Q = np.asfortranarray(scale * R), scale * Q
    groups = [list(map(int, g)) for g in penalty.members]

    def peer(t, tol):
        fit = skglm.GroupLasso(
            groups, weights=np.ones(len(groups)), fit_intercept=False, warm_start=True, tol=tol, max_iter=200
        )
        return [fit.set_params(alpha=s / rows).fit(R, Q[:, t]).coef_.copy() for s in part]

    tol = 1e-7 * float(alphas[0]) / rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer(0, 1e-2 * float(alphas[0]) / rows)  # compiles the loops
        found = [timed(lambda t=t: peer(t, tol)) for t in range(PEER_CLASSES)]
    ours, _ = timed(lambda: follow(problem, part))

    def objective(w, t, alpha):
        return np.square(R @ w - Q[:, t]).sum() / 2 + alpha * L21.value(penalty, w)

    gaps = [
        objective(mine.coef[:, t], t, s) / objective(w, t, s) - 1
        for t, (coefs, _) in enumerate(found)
        for mine, w, s in zip(ours, coefs, part, strict=True)
    ]
    each_ours = (build + seconds) / (STRENGTHS * moments.n_targets)
    each_peer = np.mean([s for _, s in found]) / len(part)
    report("seconds per strength and class: skglm over ours", f"{each_peer / each_ours:.1f}", "> 1")
    report("objective over skglm's, less 1: smallest, largest", f"{min(gaps):.1e}, {max(gaps):.1e}", "< 1e-8")
    report("largest optimality residual of the path", f"{max(one.residual for one in path):.1e}", "< 1e-6")
    print(
        f"  ours {build + seconds:.2f} s for {STRENGTHS} strengths of {moments.n_targets} classes ({build:.2f} s of it the "
        f"eigenvectors); skglm {1e3 * each_peer:.1f} ms per strength and class"
    )
    return build + seconds


def plot(model, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from chimap.reports.figures import LINES

    alphas, weights = model.path_.alphas, model.path_.weights.sum(axis=1)
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, height_ratios=(3, 2))
    for j, (name, colour) in enumerate(zip(model.channels_, LINES, strict=False)):
        top.semilogx(alphas, weights[:, j], color=colour, label=name)
    errors = model.selection_.scores.mean(axis=1)
    bottom.semilogx(alphas, errors / errors[0], color="black")
    bottom.axvline(model.alpha_, color="gray", lw=0.8)
    top.axvline(model.alpha_, color="gray", lw=0.8)
    top.set_ylabel("kernel weights, summed over classes")
    bottom.set_ylabel("held-out error, share")
    bottom.set_xlabel("strength (the line: chosen by folds)")
    bottom.invert_xaxis()
    top.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot")
    parser.add_argument("--rows", type=int, default=50_000)
    options = parser.parse_args()
    X, y, Xt, yt, blocks = channels(options.rows)
    common = {"blocks": blocks, "n_components": D, "random_state": 0, "memory": "4GiB"}
    HistogramClassifier(**{"kernel": "exp-chi2"} | common).fit(X[::50], y[::50])  # loads the compiled loops
    plain, plain_s = timed(lambda: HistogramClassifier(**{"kernel": "exp-chi2"} | common).fit(X, y))
    _, given_s = timed(lambda: HistogramClassifier(**{"kernel": "exp-chi2"} | common, alpha=plain.alpha_).fit(X, y))
    model, model_s = timed(lambda: MultipleKernelLearner(**common).fit(X, y))
    _, fixed_s = timed(lambda: MultipleKernelLearner(**common, alpha=model.alpha_).fit(X, y))
    path_s = against_skglm(model, moments_of(model, X, y))
    report("path of 30 strengths from moments over one plain fit", f"{path_s / given_s:.2f}", "< 30")
    report("fit with the path and its five folds over 30 plain fits", f"{model_s / (30 * given_s):.2f}", "< 1")
    accuracies = [100 * m.score(Xt, yt) for m in (plain, model)]
    report("points of test accuracy over the plain sum of kernels", f"{accuracies[1] - accuracies[0]:.2f}", "> 0")
    shares = ", ".join(f"{name} {share:.2f}" for name, share in model.describe()["channels"].items())
    print(
        f"  plain sum {accuracies[0]:.2f} %, {plain_s:.1f} s (strength given {given_s:.1f} s); weighted {accuracies[1]:.2f} "
        f"%, {model_s:.1f} s (given {fixed_s:.1f} s); kernel weights: {shares}; uses of the noise by classes: "
        f"{int((model.kernel_weights_[:, -1] > 0).sum())}; residual {model.kkt_residual_:.1e}"
    )
    if options.plot:
        plot(model, options.plot)


if __name__ == "__main__":
    main()
