"""Outputs of machines of every kind, to compare versions of NumPy, SciPy, scikit-learn and numba.

``python -m tests.estimators.golden FILE`` writes them to FILE, or compares with what another environment wrote there.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, HistogramRegressor

MACHINES = {
    "sums": HistogramClassifier("chi2", features="additive", alpha=1.0),
    "chosen strength": HistogramClassifier("intersection", features="additive"),
    "kernel matrix": HistogramClassifier("exp-chi2", features="exact"),
    "landmarks": HistogramClassifier("exp-chi2", features="landmarks", n_components=64),
    "random features": HistogramClassifier("gaussian", features="fourier", n_components=64),
    "race": HistogramClassifier(),
    "passes": HistogramClassifier("hellinger", loss="logistic", features="additive"),
    "numbers": HistogramRegressor("jensen_shannon"),
}
# Of the largest output. Versions agreed to the bit where this was written, but for the passes, whose steps are SciPy's;
# BLAS of other versions may add in another order on other processors, and float32 rounds to 1e-7.
CLOSE = dict.fromkeys(MACHINES, 1e-5) | {"passes": 1e-2}


def outputs() -> dict[str, np.ndarray]:
    """Fit each machine on 200 scans of digits, and return its outputs for 100 others."""
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    found = {}
    for name, machine in MACHINES.items():
        has_classes = isinstance(machine, HistogramClassifier)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = machine.set_params(random_state=0).fit(X[:200], y[:200] if has_classes else y[:200] + 0.0)
        found[name] = fitted.decision_function(X[200:]) if has_classes else fitted.predict(X[200:])
    return found


def main(path: Path) -> int:
    """Write the outputs, or compare with those that are there and return 1 where they differ."""
    found = outputs()
    if not path.exists():
        np.savez(path, **found)
        return 0
    code = 0
    with np.load(path) as others:
        for name, ours in found.items():
            apart = float(np.abs(ours - others[name]).max() / np.abs(ours).max())
            is_close, told = apart <= CLOSE[name], f"{apart:.1e} apart" if apart else "the same to the bit"
            print(f"{name:<16} {told}{'' if is_close else ': too far'}")
            code = code or int(not is_close)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
