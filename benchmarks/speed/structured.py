"""What does a structured projection gain, and what error do the samplings of the frequencies cost?"""

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.measure import mnist, ratio, report, seconds
from chimap import FourierFeatures
from chimap._blas import multiply
from chimap.features.fourier.sampling import CATALOGUE

# --- time of the projection alone, float32, against SGEMM of the same shape

for n, p, m in ((1024, 1024, 8192), (1024, 4096, 8192)):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float32)
    W = rng.standard_normal((p, m), dtype=np.float32)
    out, buffer = np.empty((n, m), np.float32), np.empty((n, p), np.float32)
    fast = CATALOGUE["structured"](p, m, rng, np.dtype(np.float32))
    gemm = seconds(lambda X=X, W=W, out=out: multiply(X, W, out))
    own = seconds(lambda fast=fast, X=X, buffer=buffer, out=out: fast.project(X, buffer, out))
    report(f"structured projection, {p} inputs, {m} frequencies: times as fast", ratio(gemm, own), "5")

# --- error of the kernel, mean over seeds, relative to independent frequencies

SETS = {"mnist": mnist(normalize=True)[0][:600], "digits": load_digits().data[:600].astype(np.float32)}
for name, X in SETS.items():
    for D in (512, 2048):
        errors = {}
        for sampling in CATALOGUE:
            found = []
            for seed in range(8):
                features = FourierFeatures("exp-chi2", D, sampling=sampling, random_state=seed).fit(X)
                Z = features.transform(X)
                K = features.kernel_(X)
                found.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))
            errors[sampling] = np.mean(found)
        for sampling, error in errors.items():
            share = f"{error / errors['iid']:.2f}"
            report(f"{name}, {D} features, {sampling}: error {error:.4f}, share of iid's", share, "<= 1.10")
