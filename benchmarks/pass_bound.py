"""How far is one pass (map + random features + moments) from the bare matrix products in it?

Bound: SGEMM n x p x m (m projections) and SSYRK n x D x D, in the same blocks, through the same BLAS. MNIST, D = 4096.
"""

import sys

import numpy as np
from scipy.linalg.blas import sgemm, ssyrk

from _measure import mnist, ratio, report, seconds
from chimap import FourierFeatures, OptimalMap
from chimap.moments import FoldMoments

D, PIECE, BLOCK = int(sys.argv[1]) if len(sys.argv) > 1 else 4096, 2048, 512
X = mnist(normalize=True)[0]
n = X.shape[0]


def bare(p, m):
    C, W = np.full((BLOCK, p), 0.5, np.float32), np.full((p, m), 0.5, np.float32)
    A = np.empty((BLOCK, m), np.float32)
    Z, H = np.full((PIECE, D), 0.5, np.float32), np.empty((D, D), np.float32)
    for first in range(0, n, PIECE):
        rows = min(PIECE, n - first)
        for block in range(0, rows, BLOCK):
            b = min(BLOCK, rows - block)
            sgemm(1.0, W.T, C[:b].T, beta=0.0, c=A[:b].T, overwrite_c=1)
        ssyrk(1.0, Z[:rows].T, beta=0.0, c=H.T, lower=1, overwrite_c=1)


def whole(features, shift):
    moments = FoldMoments(1, D, 10, shift, np.zeros(10), np.dtype(np.float32))
    Y = np.zeros((PIECE, 10))
    for first in range(0, n, PIECE):
        rows = X[first : first + PIECE]
        Z = moments.buffer(rows.shape[0])
        features.features_into(rows, Z, shift)
        moments.add_shifted(0, Z, Y[: rows.shape[0]])


shift = np.zeros(D)
for form in ("pair", "offset"):
    for n_terms in (2, 3):
        features = FourierFeatures(
            n_components=D, form=form, map=OptimalMap(n_terms=n_terms), random_state=0
        ).fit(X[:4096])
        p, m = features.frequencies_.shape
        bound, full = seconds(lambda p=p, m=m: bare(p, m), 3), seconds(lambda f=features: whole(f, shift), 3)
        flops = n * (2 * p * m + D * D)
        report(f"{form}, {n_terms} terms: pass / bare products", ratio(full, bound), "<= 1.25")
        print(
            f"  pass {np.median(full):.2f} s, bare {np.median(bound):.2f} s = {flops / np.median(bound) / 1e9:.0f} GFLOP/s"
        )
