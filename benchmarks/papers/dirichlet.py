"""What does the Dirichlet map cost beside the logarithm that it needs, and signs beside a matrix product?"""

import numpy as np

from benchmarks.measure import ratio, report, seconds
from chimap import DirichletKernel, DirichletMap, SignStableProjection
from chimap._threads import threads


def map_beside_logarithm(X: np.ndarray) -> None:
    psi = DirichletMap(DirichletKernel(np.full(X.shape[1], 0.5), 1e-3)).fit(X[:10])
    out, name = np.empty_like(X), X.dtype.name
    new = seconds(lambda: np.log(X))
    report(f"transform / np.log(X), {name}", ratio(seconds(lambda: psi.transform(X)), new), "3")
    there, into = seconds(lambda: np.log(X, out=out)), seconds(lambda: psi.features_into(X, out))
    report(f"the same into an array that is there, {name}", ratio(into, there), "3")
    with threads(1):
        into = seconds(lambda: psi.features_into(X, out))
    report(f"the same on one thread, as np.log is, {name}", ratio(into, there), "3")
    fit = seconds(lambda: DirichletMap().fit(X), 1)
    report(f"fit / np.log(X), {name}", ratio(fit, new), "-")


def signs_beside_product(X: np.ndarray, D: int) -> None:
    signs = SignStableProjection(D, random_state=0).fit(X)
    R, Z = signs.frequencies_, np.empty((X.shape[0], D))
    product = seconds(lambda: np.matmul(X.astype(np.float64), R, out=Z), 3)
    own = seconds(lambda: signs.transform(X), 3)
    report("SignStableProjection.transform / the product x'R in float64", ratio(own, product), "1.3")
    features = signs.transform(X)
    bits = signs.set_params(output="bits").transform(X)
    own, dense = seconds(lambda: signs.estimate(bits), 3), seconds(lambda: features @ features.T, 3)
    report("kernel matrix from packed bits / from the features, float32", ratio(own, dense), "1")


rows = np.random.default_rng(0).dirichlet(np.full(1000, 0.5), size=20000)
map_beside_logarithm(rows.astype(np.float32))
map_beside_logarithm(rows)
signs_beside_product(rows[:4000].astype(np.float32), 2048)
