"""Synthetic histograms of any size, written chunk by chunk, for tests, demonstrations and benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from chimap._files import replacing, write_npy_header
from chimap._validation import check_positive

BLOCK_VALUES = 2**18
PROTOTYPES_PER_CLASS = 3


def write_histograms(
    path: str | os.PathLike[str],
    n_rows: int,
    n_features: int,
    n_classes: int = 10,
    *,
    seed: int = 0,
    labels_path: str | os.PathLike[str] | None = None,
) -> Path:
    """Write histograms to a ``.npy`` file and their classes to another; return the path of the classes.

    The histograms have shape (n_rows, n_features), are float32 and sum to 1 in each row; the classes are int64. Row i
    of class c has the profile

        w P_a + (1 - w) P_b

    with P_a one of the three prototypes of its class, P_b one of the prototypes of any class, and w uniform in (0.45,
    1). Its bins are the profile times independent exponential noise, cut off below so that about a quarter of them are
    empty, and normalised: a scaled Dirichlet distribution with zeros. Several prototypes per class and the mixing keep
    the classes from being easy.

    The same arguments give the same files. Memory is bounded for any size. Both files are written to temporary names
    and renamed when they are complete.

    Parameters
    ----------
    path : str or path
        The ``.npy`` file of the histograms.
    n_rows, n_features : int
        Shape of the histograms.
    n_classes : int, default=10
        Number of classes.
    seed : int, default=0
        Seed of all draws.
    labels_path : str or path, default=None
        The ``.npy`` file of the classes; None stands for ``path`` with ``_labels`` before its ending.

    Returns
    -------
    Path
        ``labels_path``.

    Raises
    ------
    ValueError
        If a size is not positive.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     labels = write_histograms(f"{folder}/rows.npy", n_rows=50, n_features=8, n_classes=2)
    ...     labels.name, np.load(f"{folder}/rows.npy").shape
    ('rows_labels.npy', (50, 8))
    """
    for name, value in (("n_rows", n_rows), ("n_features", n_features), ("n_classes", n_classes)):
        check_positive(value, name, integer=True)
    path = Path(path)
    labels_path = path.with_name(f"{path.stem}_labels.npy") if labels_path is None else Path(labels_path)
    prototypes = _prototypes(n_classes * PROTOTYPES_PER_CLASS, n_features, seed)
    block_rows = max(1, BLOCK_VALUES // n_features)
    block_of_rows, *work = np.empty((3, block_rows, n_features), np.float32)
    with (
        replacing(path) as whole_rows,
        replacing(labels_path) as whole_labels,
        whole_rows.open("wb") as rows_file,
        whole_labels.open("wb") as labels_file,
    ):
        write_npy_header(rows_file, (n_rows, n_features), np.dtype(np.float32))
        write_npy_header(labels_file, (n_rows,), np.dtype(np.int64))
        for block, start in enumerate(range(0, n_rows, block_rows)):
            # Blocks have a fixed size, and each has its own generator, so that the values do not depend on how they
            # are written.
            rng = np.random.default_rng([seed, 1, block])
            X = block_of_rows[: n_rows - start]
            y = _fill(rng, prototypes, X, work)
            rows_file.write(X.data)
            labels_file.write(y.data)
    return labels_path


def _prototypes(count: int, n_features: int, seed: int) -> np.ndarray:
    """Return profiles that share a long-tailed background and differ by log-normal factors; each row sums to 1."""
    rng = np.random.default_rng([seed, 0])
    background = rng.standard_gamma(0.5, n_features) + 1e-3
    profiles = background * np.exp(0.5 * rng.standard_normal((count, n_features)))
    return (profiles / profiles.sum(axis=1, keepdims=True)).astype(np.float32)


def _fill(rng: np.random.Generator, prototypes: np.ndarray, X: np.ndarray, work: list[np.ndarray]) -> np.ndarray:
    """Fill X with histograms and return their classes; ``work`` holds two buffers of the shape of X.

    All operations are in place: allocating fresh memory would cost more than the arithmetic.
    """
    own_class, any_class = rng.integers(len(prototypes), size=(2, len(X)))
    w = rng.uniform(0.45, 1.0, size=(len(X), 1)).astype(np.float32)
    noise, profile = work[0][: len(X)], work[1][: len(X)]
    # The indices are valid; any mode but "raise" lets take write to out without an extra buffer.
    np.take(prototypes, own_class, axis=0, out=X, mode="clip")
    np.take(prototypes, any_class, axis=0, out=profile, mode="clip")
    X *= w
    profile *= 1 - w
    X += profile
    rng.standard_exponential(dtype=np.float32, out=noise)
    noise -= np.float32(0.3)
    np.maximum(noise, np.float32(0), out=noise)
    X *= noise
    totals = X.sum(axis=1, keepdims=True)
    # With very few bins a row may come out empty: all its mass then goes to the first bin.
    X[totals[:, 0] == 0, 0] = 1
    X /= np.where(totals > 0, totals, 1)
    return own_class // PROTOTYPES_PER_CLASS
