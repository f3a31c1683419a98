"""The methods of the Caltech-101 benchmark: the machines, how each split is prepared for them, and their strengths."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from benchmarks.papers._gaussian_and_linear import GaussianAndLinear
from chimap import DirichletMap, HomogeneousMap, MultipleKernelLearner, OnlineIntersectionClassifier, OptimalMap, chi2
from chimap.features.additive.base import AdditiveMap
from chimap.images.reading import ImageSet
from chimap.kernels import as_kernel

CS = (1.0, 10.0, 100.0)


@dataclass
class Split:
    """The histograms of a split, and the kernel values that the machines on them take."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    y_new: np.ndarray
    images: ImageSet  # of the new rows
    levels: list[slice]  # columns of each level of the pyramid
    values: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


class Method(NamedTuple):
    """A method of the benchmark.

    machine: returns an unfitted machine for a strength. choices: the strengths to choose from, weakest penalty last.

    prepare: puts kernel values into the split. It returns the seconds taken by the kernel values among training rows,
    and by those between new rows and training rows.
    """

    machine: Callable[[float, Split], Any]
    choices: tuple[float, ...] = CS
    prepare: Callable[[Split], tuple[float, float]] | None = None


def main_methods() -> dict[str, Method]:
    return {
        "linear": Method(lambda c, s: _machine("linear", c / _spread(s.X))),
        "chi2 map": Method(_on_map(OptimalMap("chi2", 3))),
        "chi2 exact": Method(_precomputed("chi2 exact"), prepare=_exact("chi2 exact", chi2)),
        "exp-chi2 exact": Method(_precomputed("exp-chi2 exact"), prepare=_exponential),
    }


def table_methods() -> dict[str, Method]:
    """Return the other rows of Tables 3 and 4 of the paper on the Dirichlet kernel."""
    counts = as_kernel("jensen_shannon+pq")
    return {
        "homogeneous map": Method(_on_map(HomogeneousMap("chi2", 3))),
        "DPWT": Method(_on_map(DirichletMap())),
        "SIKMA": Method(lambda a, _: OnlineIntersectionClassifier(alpha=a, random_state=0), (1e-3, 1e-4, 1e-5)),
        # five in six bins are empty, and a bin that is empty in either row adds nothing
        "JS + PQ": Method(_precomputed("JS + PQ"), prepare=_exact("JS + PQ", counts, sp.csr_matrix)),
        "MKL": Method(lambda c, _: GaussianAndLinear(c), (7.6,)),  # the paper's penalty
        "MKL of levels": Method(_level_kernels, (9.0, 3.0)),
    }


def _level_kernels(strength: float, split: Split) -> MultipleKernelLearner:
    """Return multiple kernels at linear cost.

    There is one exponential kernel per level, by random features, and the weights of the kernels are learned.
    """
    return MultipleKernelLearner(
        "exp-chi2", blocks=split.levels, n_components=2048, alpha=strength, memory="4GiB", random_state=0
    )


def _spread(Z: np.ndarray) -> float:
    """Return the mean diagonal of the centred kernel of features, in units of which the strengths are 1/c."""
    return float(Z.var(axis=0).sum())


def _machine(kernel: str, C: float) -> OneVsRestClassifier:
    return OneVsRestClassifier(SVC(kernel=kernel, C=C))


def _on_map(psi: AdditiveMap) -> Callable[[float, Split], Pipeline]:
    def machine(c: float, split: Split) -> Pipeline:
        return make_pipeline(psi, _machine("linear", c / _spread(np.asarray(psi.fit_transform(split.X)))))

    return machine


def _precomputed(name: str) -> Callable[[float, Split], OneVsRestClassifier]:
    def machine(c: float, split: Split) -> OneVsRestClassifier:
        gram = split.values[name][0]
        return _machine("precomputed", c / float(gram.diagonal().mean() - gram.mean()))

    return machine


def _exact(name: str, kernel, of_rows: Callable = np.asarray) -> Callable[[Split], tuple[float, float]]:
    def prepare(split: Split) -> tuple[float, float]:
        began = time.perf_counter()
        X, new = of_rows(split.X), of_rows(split.new)
        gram = kernel(X)
        between = time.perf_counter()
        split.values[name] = gram, kernel(new, X)
        return between - began, time.perf_counter() - between

    return prepare


def _exponential(split: Split) -> tuple[float, float]:
    """Compute exp(-D^2 / mean D^2) from the chi2 values.

    If these exist already, their time is not counted again.
    """
    seconds = 0.0, 0.0
    if "chi2 exact" not in split.values:
        seconds = _exact("chi2 exact", chi2)(split)
    gram, values = split.values["chi2 exact"]
    own, new = np.diagonal(gram), chi2.diagonal(split.new)
    squares = own[:, None] + own - 2 * gram
    gamma = 1 / squares.mean()
    between = np.exp(-gamma * (new[:, None] + own - 2 * values))
    split.values["exp-chi2 exact"] = np.exp(-gamma * squares), between
    return seconds
