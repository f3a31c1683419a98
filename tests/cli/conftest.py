"""A folder with small real data, and models fitted on them by the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_digits

from .terminal import run_many

NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
SMALL = ["--kernel", "exp-chi2", "--components", "128", "--seed", "0"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Scans of digits in every format, and models of some."""
    folder = tmp_path_factory.mktemp("cli")
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    np.savez_compressed(folder / "digits.npz", X=X, y=y)
    np.savez(folder / "parts.npz", x_train=X[:1200], y_train=y[:1200], x_test=X[1200:], y_test=y[1200:])
    np.savez(folder / "unlabelled.npz", X=X[:300])
    sp.save_npz(folder / "sparse.npz", sp.csr_matrix(X))
    np.save(folder / "rows.npy", X)
    (folder / "names.csv").write_text("digit\n" + "\n".join(NAMES[y]))
    (folder / "numbers.txt").write_text("\n".join(map(str, y)))
    dump_svmlight_file(X[:600].astype(float), y[:600] % 2, str(folder / "first.svm"), zero_based=False)
    # the last bins are empty here, so the text has fewer columns
    dump_svmlight_file(X[600:900, :60].astype(float), y[600:900] % 2, str(folder / "second.svm"), zero_based=False)
    np.savez(folder / "ink.npz", X=X, y=np.sqrt(X[:, 20:30].sum(axis=1)) + X[:, 40] / 7)
    for result in run_many(
        [
            ["fit", "digits.npz", "-o", "digits.model", "--test-fraction", "0.3", *SMALL],
            [
                "fit",
                "sparse.npz",
                "--labels",
                "names.csv",
                "-o",
                "names.model",
                "--kernel",
                "intersection",
                "--terms",
                "3",
            ],
            ["fit", "first.svm", "-o", "parity.model", *SMALL],
            ["fit", "ink.npz", "-o", "ink.model", "--test-fraction", "0.25", *SMALL],
        ],
        folder,
    ):
        assert result.code == 0, result.err
    return folder
