"""chimap trains kernel machines on histograms at linear cost.

The way of the data, and the folders that follow it::

    source  --chunks-->  map  --features-->  moments  --merge-->  solve  -->  model  -->  predict / report
    (data)               (maps, fourier)     (moments)            (solvers)   (learning)  (report)

Start with ``HistogramClassifier`` or ``HistogramRegressor``: they are all of it under one roof.

    >>> from sklearn.datasets import load_digits
    >>> import chimap
    >>> X, y = load_digits(return_X_y=True)
    >>> model = chimap.HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X, y)

Exact kernels, the oracle for everything else: ``chi2``, ``intersection``, ``jensen_shannon``, ``hellinger``,
``Exponential(kernel, gamma)``. Explicit maps of additive kernels: ``OptimalMap``, ``DirectMap``, ``HomogeneousMap``.
Random features of exponential kernels: ``FourierFeatures``. Sums that merge and subtract: ``Moments``. Files and
arrays read in chunks: ``open_source``. ``load`` opens a saved model.
"""

from chimap.data import Source, open_source
from chimap.fourier import FourierFeatures
from chimap.kernels import AdditiveKernel, Exponential, Kernel, chi2, hellinger, intersection, jensen_shannon
from chimap.learning import HistogramClassifier, HistogramRegressor, load
from chimap.maps import DirectMap, HomogeneousMap, OptimalMap
from chimap.moments import Moments

__version__ = "0.1.0"

__all__ = [
    "HistogramClassifier",
    "HistogramRegressor",
    "load",
    "open_source",
    "Source",
    "chi2",
    "intersection",
    "jensen_shannon",
    "hellinger",
    "Exponential",
    "AdditiveKernel",
    "Kernel",
    "OptimalMap",
    "DirectMap",
    "HomogeneousMap",
    "FourierFeatures",
    "Moments",
]
