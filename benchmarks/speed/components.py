"""Principal components from moments: what does the choice of (components, strength) cost, and what do they bring?

MNIST. The benchmark compares the partial with the full eigensolver on the same moments. It compares five folds of
every pair of 6 numbers of components and 8 strengths from moments with scikit-learn's PCA + Ridge, fitted for one
pair and one fold (from which the time of 240 such fits follows). It compares components that have seen all rows
(transductive) with those of 600 labelled rows alone. And it compares the two passes of components per block, where
the blocks are the halves of the images, with one pass that has as many random features in all.
"""

import time

import numpy as np
from sklearn.decomposition import PCA as TheirPCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.measure import mnist, ratio, report, seconds
from chimap import HistogramClassifier, PrincipalFeatures, open_source, ridge
from chimap.features.additive import OptimalMap
from chimap.features.principal import PCA
from chimap.moments import FoldMoments, Moments, fold_of_rows
from chimap.selection.components import score_principal

ROWS, FOLDS = 20_000, 5
X, y, Xt, yt = mnist(normalize=True)
Z = OptimalMap(n_terms=2).fit(X[:4096]).transform(X[:ROWS])
Z = np.ascontiguousarray(Z, dtype=np.float64)
Y = np.where(y[:ROWS, None] == np.arange(10), 1.0, -1.0)
D = Z.shape[1]


def solvers():
    moments = Moments(D, 10).update(Z, Y)
    full = seconds(lambda: PCA.of(moments), 3)
    for share in (20, 7):
        part = seconds(lambda share=share: PCA.of(moments, D // share), 3)
        report(f"D = {D}: {D // share} components / all of them, seconds", ratio(part, full), "< 1")


def pairs():
    folds = fold_of_rows(0, ROWS, FOLDS, seed=0)
    parts = [Moments(D, 10, Z[:1000].mean(axis=0), np.zeros(10)) for _ in range(FOLDS)]
    began = time.perf_counter()
    for k, part in enumerate(parts):
        part.update(Z[folds == k], Y[folds == k])
    moments = FoldMoments.of(parts, np.float64)
    numbers, alphas = [50, 100, 200, 400, 800, D], np.geomspace(1e-4, 1e3, 8)
    scores = score_principal(moments, moments.whole(), numbers, alphas)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    held = folds == 0
    make_pipeline(TheirPCA(400, svd_solver="covariance_eigh"), Ridge(1.0)).fit(Z[~held], Y[~held])
    once = time.perf_counter() - began
    n = len(numbers) * alphas.size * FOLDS
    report(f"all {n} fits from moments, the pass included / scikit-learn's {n}", f"{ours / (n * once):.4f}", "< 0.05")
    print(f"  ours {ours:.1f} s; one of theirs {once:.1f} s; best {scores.best}, held-out R2 {scores.r2.max():.4f}")


def transductive():
    few = 600
    labelled = Moments(D, 0).update(Z[:few], np.zeros((few, 0)))
    everyone = Moments(D, 0).update(Z, np.zeros((ROWS, 0)))
    own = OptimalMap(n_terms=2).fit(X[:4096]).transform(Xt)
    for name, moments in (("the 600 labelled rows", labelled), (f"all {ROWS} rows", everyone)):
        pca = PCA.of(moments, 100)
        C = pca.transform(Z[:few])
        model = ridge([Moments(100, 10).update(C[k:few:FOLDS], Y[k:few:FOLDS]) for k in range(FOLDS)])
        outputs = pca.transform(np.asarray(own, dtype=np.float64)) @ model.coef + model.intercept
        score = np.mean(outputs.argmax(axis=1) == yt)
        report(f"600 labels, 100 components of {name}: test accuracy", f"{score:.4f}", "-")


def blocks():
    halves = [slice(0, 392), slice(392, 784)]
    source = open_source(X, y)
    common = {"blocks": halves, "random_state": 0, "memory": "2GiB"}
    for name, settings in (
        ("one pass, 2 x 500 features", {"n_components": 500}),
        (
            "two passes, 2 x 500 components of 2 x 2000 features",
            {"n_components": 2000, "features": PrincipalFeatures(500)},
        ),
        ("one pass, 2 x 2000 features", {"n_components": 2000}),
    ):
        began = time.perf_counter()
        model = HistogramClassifier(**{"kernel": "exp-chi2"} | common, **settings).fit_source(source)
        took = time.perf_counter() - began
        report(f"{name}: test accuracy ({took:.1f} s)", f"{model.score(Xt, yt):.4f}", "-")


if __name__ == "__main__":
    solvers()
    pairs()
    transductive()
    blocks()
