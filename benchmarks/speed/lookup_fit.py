"""Does training on codes beat training on features? MNIST, 10 000 rows as in Table 1 of the paper on ANNFM.

The competitor is scikit-learn's LinearSVC (dual coordinate descent) on sparse features of Vedaldi and Zisserman's
map.
"""

import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from benchmarks.measure import mnist, report
from chimap import AnchorMap, HomogeneousMap, LookupClassifier

X, y, Xt, yt = mnist(normalize=True)
chosen = np.random.default_rng(0).permutation(len(X))[:10000]
X, y, Xt = sp.csr_matrix(X[chosen]), y[chosen], sp.csr_matrix(Xt)
alpha = 0.05  # for both
print(f"{'':<44} {'accuracy':>9} {'seconds':>8} {'terms':>6}")
times = {}
for kernel in ("chi2", "jensen_shannon", "intersection"):
    for n_anchors in (30, 50):  # the paper's are 30, 40, 50
        model = LookupClassifier(AnchorMap(kernel, n_anchors=n_anchors), alpha=alpha)
        model.fit(X[:100], y[:100])  # compiles the loops
        began = time.perf_counter()
        model.fit(X, y)
        times[kernel] = time.perf_counter() - began
        name = f"codes, {kernel}, {n_anchors} anchors, {model.n_iter_} iterations"
        print(f"{name:<44} {model.score(Xt, yt):9.4f} {times[kernel]:8.2f} {model.map_.n_terms_:6}")
for kernel in ("chi2", "intersection"):
    psi = HomogeneousMap(kernel, 3).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops at its iteration limit
        began = time.perf_counter()
        peer = LinearSVC(C=1 / alpha, max_iter=100).fit(psi.transform(X), y)
        seconds = time.perf_counter() - began
    print(f"{'features, LinearSVC, ' + kernel:<44} {peer.score(psi.transform(Xt), yt):9.4f} {seconds:8.2f} {3:6}")
    report(f"{kernel}: LinearSVC on features / look-ups on codes", f"{seconds / times[kernel]:.1f}", "1")
