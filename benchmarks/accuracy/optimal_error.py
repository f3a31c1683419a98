"""How far is OptimalMap from the Eckart-Young bound on real data?

The error is the relative Frobenius error of the kernel over pairs of values drawn from the data. The bound is the
error of the best matrix of the same rank. The map is fitted on values from which the pairs are not drawn. If a heavy
tail differs between the two halves, the same figure for a map fitted on the very values says how much of the excess
comes from that.
"""

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import counts, mnist, report
from chimap import OptimalMap, chi2, intersection, jensen_shannon
from chimap.features.additive.densities import counted, density


def values(X):
    data = X.data if sp.issparse(X) else X[X > 0]
    return np.random.default_rng(0).permutation(data.astype(np.float64))


SETS = {
    "mnist": lambda: mnist(normalize=True)[0][:10000],
    "hmp_otu_counts": lambda: counts("hmp_otu_counts.npz"),
    "cifar10_bow": lambda: counts("cifar10_bow.npz"),
    "newsgroups20_counts": lambda: counts("newsgroups20_counts.npz"),
}
for name, load in SETS.items():
    v = values(load())
    fit, held_out = v[: v.size // 2], v[v.size // 2 :]
    points, weights = density(*counted(held_out), 2500)
    root = np.sqrt(weights / weights.sum())
    for kernel, target in ((chi2, "1.02"), (jensen_shannon, "1.05"), (intersection, "1.05")):
        gram = root[:, None] * kernel(points[:, None]) * root
        spectrum = np.linalg.eigvalsh(gram)[::-1]
        ratios, own, bounds = [], [], []
        for n_terms in range(1, 7):
            bound = np.sqrt((spectrum[n_terms:] ** 2).sum() / (spectrum**2).sum())
            for seen, found in ((fit, ratios), (held_out, own)):
                Z = OptimalMap(kernel, n_terms).fit(seen[:, None]).transform(points[:, None])
                error = np.linalg.norm(gram - root[:, None] * (Z @ Z.T) * root) / np.linalg.norm(gram)
                found.append(error / bound)
            bounds.append(bound)
        listed = " ".join(f"{r:.4f}" for r in ratios)
        report(f"{name}, {kernel.name}: error / bound at 1..6 terms", listed, f"<= {target}")
        report("  of a map of the same values", " ".join(f"{r:.4f}" for r in own), f"<= {target}")
        print("  bound " + " ".join(f"{b:.1e}" for b in bounds))
