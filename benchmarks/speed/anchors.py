"""What do codes of nearest anchors gain? Time against scikit-learn's sampler and against features, error, and bytes."""

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import AdditiveChi2Sampler

from benchmarks.measure import mnist, ratio, report, seconds
from chimap import AnchorMap, HomogeneousMap, StaircaseMap, chi2
from chimap.papers.codes import look_up


def stored_bytes(transform, rows):
    """Bytes of what a transform makes of dense rows: as an array, and as CSR without its zeros."""
    n, dense, entries = rows.shape[0], 0, 0
    for first in range(0, n, 1000):
        made = transform(rows[first : first + 1000])
        dense, entries = dense + made.nbytes, entries + np.count_nonzero(made)
    index = 4 if max(entries, made.shape[1]) < 2**31 else 8
    return dense, entries * (made.itemsize + index) + (n + 1) * index


# --- time: 10 million float32 values, three terms, two threads at most; into = into an existing array

X = np.random.default_rng(0).dirichlet(np.full(500, 0.5), size=20000).astype(np.float32)
peer = AdditiveChi2Sampler(sample_steps=2).fit(X)
buffer = np.empty((X.shape[0], 3 * X.shape[1]), np.float32)
sampler = seconds(lambda: peer.transform(X))
for anchors in ("uniform", "kmeans"):
    psi = AnchorMap(n_terms=3, n_anchors=50, anchors=anchors).fit(X)
    codes = seconds(lambda psi=psi: psi.encode(X), 15)
    features = seconds(lambda psi=psi: psi.transform(X), 15)
    into = seconds(lambda psi=psi: psi.transform_into(X, buffer), 15)
    name = f"AnchorMap, 50 anchors, {anchors}"
    report(f"{name}: codes, times as fast as the sampler", ratio(sampler, codes), "20")
    report(f"{name}: features, new array, times as fast", ratio(sampler, features), "-")
    report(f"{name}: features, into, times as fast", ratio(sampler, into), "20")
    print(
        "  "
        + ", ".join(
            f"{k} {1e3 * np.median(t):.1f} ms"
            for k, t in (("sampler", sampler), ("codes", codes), ("features", features), ("into", into))
        )
    )

psi = AnchorMap(n_terms=3, n_anchors=50).fit(X)
codes = psi.encode(X)
for outputs in (1, 10):
    W = np.random.default_rng(1).normal(size=(outputs, 1500)).astype(np.float32)
    tables = psi.tables_by_bin(W).astype(np.float32)
    dot = seconds(lambda W=W: psi.transform(X) @ W.T, 15)
    looked_up = seconds(lambda tables=tables: look_up(codes, tables), 15)
    whole = seconds(lambda tables=tables: look_up(psi.encode(X), tables), 15)
    report(f"{outputs} outputs from codes, times as fast as map and dot", ratio(dot, looked_up), "5")
    report(f"{outputs} outputs from rows (encode, look up), times as fast", ratio(dot, whole), "-")

# --- error of the kernel with all terms, against the spacing: sec. 4 of the paper

x = np.random.default_rng(2).uniform(0.1, 1, 200_000)
x[:2] = 1  # the range of the values
sizes = np.array([9, 17, 33, 65, 129])
for label, settings in (("nearest", {}), ("two, interpolated", {"n_neighbors": 2})):
    worst, mean = [], []
    for n_anchors in sizes:
        Z = AnchorMap(chi2, energy=1.0, n_anchors=int(n_anchors), **settings).fit_transform(x[:, None])
        left, right = Z.reshape(-1, 2, Z.shape[1]).transpose(1, 0, 2)
        a, b = x[::2], x[1::2]
        gap = np.einsum("ij,ij->i", left, right) - 2 * a * b / (a + b)
        worst.append(np.abs(gap).max())
        mean.append(abs(gap.mean()))
    for kind, errors, target in (("worst", worst, "-1"), ("mean", mean, "-2")):
        slope = np.polyfit(np.log(sizes - 1), np.log(errors), 1)[0]
        report(f"{label}: {kind} error, slope against the number of anchors", f"{slope:.2f}", target)
        print("  " + " ".join(f"{n}: {e:.1e}" for n, e in zip(sizes, errors, strict=True)))

# --- bytes of the training rows of MNIST

X = mnist(normalize=True)[0]
rows = sp.csr_matrix(X)
MIB = 2**20
print(f"MNIST, {X.shape[0]} rows of {X.shape[1]} bins, MiB: dense, CSR (the rows themselves {X.nbytes / MIB:.0f})")
for name, psi in (
    ("VZ, 3 terms, features", HomogeneousMap(n_terms=3)),
    ("VZ, 5 terms, features", HomogeneousMap(n_terms=5)),
    ("Maji-Berg, 10 steps, features", StaircaseMap(n_terms=10)),
    ("Maji-Berg, 20 steps, features", StaircaseMap(n_terms=20)),
    ("ANNFM, 30 anchors, codes", AnchorMap(n_anchors=30, n_terms=3)),
    ("ANNFM, 50 anchors, codes", AnchorMap(n_anchors=50, n_terms=3)),
):
    psi.fit(X)
    dense, sparse = stored_bytes(getattr(psi, "encode", psi.transform), X)
    if isinstance(psi, StaircaseMap):
        form = psi.transform_sparse_form(rows)
        size = form.data.nbytes + form.indices.nbytes + form.indptr.nbytes
        print(f"  {name.replace('features', 'sparse form'):<32} {'':>8} {size / MIB:8.1f}")
    print(f"  {name:<32} {dense / MIB:8.1f} {sparse / MIB:8.1f}")
