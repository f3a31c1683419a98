"""What does the Dirichlet map cost beside the logarithm that no way to it can do without, and signs beside their product?"""

import numpy as np

from _measure import ratio, report, seconds
from chimap import DirichletKernel, DirichletMap, SignStableProjection
from chimap._threads import threads

for dtype in (np.float32, np.float64):
    X = np.random.default_rng(0).dirichlet(np.full(1000, 0.5), size=20000).astype(dtype)
    psi = DirichletMap(DirichletKernel(np.full(1000, 0.5), 1e-3)).fit(X[:10])
    out, name = np.empty_like(X), X.dtype.name
    logarithm, in_place = seconds(lambda: np.log(X)), seconds(lambda: np.log(X, out=out))
    report(
        f"DirichletMap.transform / np.log(X), {name}",
        ratio(seconds(lambda: psi.transform(X)), logarithm),
        "3",
    )
    into = seconds(lambda: psi.features_into(X, out))
    report(f"the same into an array that is there, {name}", ratio(into, in_place), "3")
    with threads(1):
        into = seconds(lambda: psi.features_into(X, out))
    report(f"the same on one thread, as np.log is, {name}", ratio(into, in_place), "3")
    fit = seconds(lambda: DirichletMap().fit(X), 1)
    report(f"DirichletMap.fit / np.log(X), {name}", ratio(fit, logarithm), "-")

X = np.random.default_rng(0).dirichlet(np.full(500, 0.5), size=4000).astype(np.float32)
signs = SignStableProjection(2048, random_state=0).fit(X)
R, Z = signs.frequencies_, np.empty((4000, 2048))
product = seconds(lambda: np.matmul(X.astype(np.float64), R, out=Z), 3)
report(
    "SignStableProjection.transform / the product x'R, float64",
    ratio(seconds(lambda: signs.transform(X), 3), product),
    "1.3",
)
bits = signs.set_params(output="bits").transform(X)
features = signs.set_params(output="features").transform(X)
dense = seconds(lambda: features @ features.T, 3)
report(
    "kernel of 4000 rows from packed bits / from their features",
    ratio(seconds(lambda: signs.estimate(bits), 3), dense),
    "-",
)
