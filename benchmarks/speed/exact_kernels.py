"""How fast are the exact kernels, per pair of bins, compared with scikit-learn's chi-square?"""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel

from benchmarks.measure import ratio, report, seconds
from chimap._threads import threads
from chimap.kernels import CATALOGUE

rng = np.random.default_rng(0)
X = rng.dirichlet(np.full(500, 0.5), size=600)
S = sp.csr_matrix(np.where(rng.random(X.shape) < 0.1, X, 0))
pairs = X.shape[0] ** 2 * X.shape[1]


def line(question: str, call: object, unit: float, peer: np.ndarray | None = None) -> None:
    times = seconds(call, 5)
    share = f"  scikit-learn's time / ours {ratio(peer, times)}" if peer is not None else ""
    report(question, f"{1e9 * np.median(times) / unit:.3f} ns", "-" + share)


with threads(1):
    for dtype in (np.float32, np.float64):
        A = X.astype(dtype)
        peer = seconds(lambda A=A: additive_chi2_kernel(A), 3)
        for name, k in CATALOGUE.items():
            kind = f"{name}, {np.dtype(dtype).name}, one thread"
            chi2 = peer if name == "chi2" else None
            line(f"{kind}: kernel, a pair of bins", lambda k=k, A=A: k(A), pairs)
            line(f"{kind}: distance, a pair of bins", lambda k=k, A=A: k.distance(A), pairs, chi2)
            B, unit = S.astype(dtype), X.shape[0] * S.nnz
            line(f"{kind}: kernel, CSR of density 0.1, an entry of Y", lambda k=k, B=B: k(B), unit)
