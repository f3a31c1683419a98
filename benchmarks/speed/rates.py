"""Does the error of each map fall with its number of terms at the rate that its paper proves?

The error is that of the chi2 kernel over pairs of values in [1/1000, 1], evenly spread on the log scale: the relative
Frobenius norm or, where the output says so, the worst error relative to sqrt(xy). A line is fitted to its logarithm:
against n for a geometric rate, against sqrt(n), or against ln n for a power. The rates of the anchors are in
anchors.py.
"""

import numpy as np

from benchmarks.measure import report
from chimap import ChebyshevMap, DirectMap, HomogeneousMap, OptimalMap, chi2

x = np.geomspace(1e-3, 1, 601)[:, None]
exact, scale = chi2(x), np.sqrt(x * x.T)


def worst(psi) -> float:
    Z = psi.fit_transform(x)
    return float(np.abs((Z @ Z.T - exact) / scale).max())


def mean(psi) -> float:
    Z = psi.fit_transform(x)
    return float(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))


def line(places: np.ndarray, errors: list[float]) -> tuple[float, float]:
    """Return the slope of ln error, and the share of its variance that the line explains."""
    logs = np.log(errors)
    slope, start = np.polyfit(places, logs, 1)
    left = logs - (slope * places + start)
    return float(slope), 1 - float(left @ left / np.square(logs - logs.mean()).sum())


n = np.arange(1, 11)
for name, error, make in (
    ("DirectMap, minimax nodes, worst", worst, lambda k: DirectMap(n_terms=k, nodes="minimax")),
    ("DirectMap, greedy nodes", mean, lambda k: DirectMap(n_terms=k)),
    ("OptimalMap", mean, lambda k: OptimalMap(n_terms=k)),
):
    errors = [error(make(int(k))) for k in n]
    slope, explained = line(n, errors)
    report(f"{name}: factor per term (line explains {explained:.3f})", f"{np.exp(slope):.3f}", "< 1, geometric")
    print("  " + " ".join(f"{k}: {e:.1e}" for k, e in zip(n, errors, strict=True)))

# Zolotarev's numbers: max |prod (x-k)/(x+k)| on [a, 1] falls by exp(-pi^2 / (2 ln(4/a))) per node. The remainder
# contains the product for x and for y
theory = np.exp(-(np.pi**2) / np.log(4 / 1e-3))
print(f"  theory for minimax nodes: factor per term {theory:.3f}")

n = 2 ** np.arange(2, 11)
errors = [mean(ChebyshevMap(n_terms=int(k))) for k in n]
slope, explained = line(np.log(n), errors)
report(f"ChebyshevMap: power of n (line explains {explained:.3f})", f"{slope:.2f}", "-1")
print("  " + " ".join(f"{k}: {e:.1e}" for k, e in zip(n, errors, strict=True)))

n = np.arange(3, 32, 4)
for window in ("uniform", "rectangular"):
    errors = [mean(HomogeneousMap(n_terms=int(k), window=window)) for k in n]
    for place, label in ((n, "n"), (np.sqrt(n), "sqrt(n)")):
        slope, explained = line(place, errors)
        report(
            f"HomogeneousMap, {window}: ln error a unit of {label} (line explains {explained:.3f})",
            f"{slope:.2f}",
            "< 0",
        )
    print("  " + " ".join(f"{k}: {e:.1e}" for k, e in zip(n, errors, strict=True)))
