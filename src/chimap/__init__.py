"""chimap trains kernel machines on histograms at linear cost.

The data pass through these steps; the folders of the package are in brackets::

    source  --chunks-->  map  --features-->  moments  --merge-->  solve  -->  model  -->  predict / report
    (data)               (features)          (moments)            (solvers)   (estimators)

Start with ``HistogramClassifier`` or ``HistogramRegressor``: they run all of these steps.

    >>> from sklearn.datasets import load_digits
    >>> import chimap
    >>> X, y = load_digits(return_X_y=True)
    >>> model = chimap.HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X, y)

Exact kernels, the reference for everything else: ``chi2``, ``intersection``, ``jensen_shannon``, ``hellinger``,
``Exponential(kernel, gamma)``. Explicit maps of additive kernels: ``OptimalMap``, ``DirectMap``,
``HomogeneousMap``, ``AnchorMap``, ``StaircaseMap``. Maps that mix the bins: ``DirichletMap`` (exact for the
``DirichletKernel``) and ``SignStableProjection`` (bits for the chi-square kernel). Random features of exponential
kernels: ``FourierFeatures``; landmark features of any kernel: ``NystroemFeatures``. A linear model on codes of one byte
per bin: ``LookupClassifier``. Sums that can be merged and subtracted: ``Moments``.

``open_source`` reads files and arrays in chunks. ``load`` opens a saved model, and ``export_model`` writes it for other
programs. ``ImageHistograms`` turns images into histograms. ``FourierKernelLearner`` learns the widths of a kernel with
the weights, and ``MultipleKernelLearner`` the weights of channels.
"""

from typing import TYPE_CHECKING

from chimap._version import __version__ as __version__

if TYPE_CHECKING:
    from chimap.data import Source, open_source
    from chimap.estimators import (
        CompiledClassifier,
        CompiledRegressor,
        ExactKernelLearner,
        ExactKernelRegressor,
        FourierKernelLearner,
        FourierKernelRegressor,
        HistogramClassifier,
        HistogramRegressor,
        KernelClassifier,
        LookupClassifier,
        MomentsGroupLasso,
        MomentsLasso,
        MomentsRidge,
        MomentsRidgeClassifier,
        MultipleKernelLearner,
        MultipleKernelRegressor,
        OnlineIntersectionClassifier,
        load,
        save,
    )
    from chimap.export import export_model
    from chimap.features.additive import (
        AdditiveKPCA,
        AnchorMap,
        ChebyshevMap,
        CompressedMap,
        DirectMap,
        DirichletMap,
        HomogeneousMap,
        OptimalMap,
        SignStableProjection,
        StaircaseMap,
        StationaryMap,
    )
    from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures, WidthFeatures
    from chimap.features.landmarks import LandmarkFeatures, NystroemFeatures
    from chimap.features.minmax import MinMaxFeatures
    from chimap.images import ImageHistograms, open_images
    from chimap.kernels import (
        AdditiveKernel,
        ArccosKernel,
        DirichletKernel,
        Exponential,
        Gaussian,
        Kernel,
        Linear,
        MinMax,
        PQKernel,
        SkewedChi2,
        SkewedIntersection,
        StationaryKernel,
        chi2,
        hellinger,
        intersection,
        jensen_shannon,
        stationary_gaussian,
        stationary_laplace,
        stationary_student,
    )
    from chimap.moments import PCA, Moments

__all__ = [
    "HistogramClassifier",
    "HistogramRegressor",
    "ExactKernelLearner",
    "ExactKernelRegressor",
    "FourierKernelLearner",
    "FourierKernelRegressor",
    "MultipleKernelLearner",
    "MultipleKernelRegressor",
    "KernelClassifier",
    "LookupClassifier",
    "CompiledClassifier",
    "CompiledRegressor",
    "load",
    "save",
    "export_model",
    "open_source",
    "Source",
    "open_images",
    "ImageHistograms",
    "chi2",
    "intersection",
    "jensen_shannon",
    "hellinger",
    "Exponential",
    "Gaussian",
    "Linear",
    "SkewedChi2",
    "SkewedIntersection",
    "MinMax",
    "PQKernel",
    "DirichletKernel",
    "ArccosKernel",
    "AdditiveKernel",
    "Kernel",
    "StationaryKernel",
    "stationary_gaussian",
    "stationary_laplace",
    "stationary_student",
    "OptimalMap",
    "DirectMap",
    "ChebyshevMap",
    "HomogeneousMap",
    "AnchorMap",
    "AdditiveKPCA",
    "CompressedMap",
    "StaircaseMap",
    "StationaryMap",
    "DirichletMap",
    "SignStableProjection",
    "FourierFeatures",
    "SkewedFourierFeatures",
    "WidthFeatures",
    "LandmarkFeatures",
    "MinMaxFeatures",
    "NystroemFeatures",
    "Moments",
    "PCA",
    "MomentsRidge",
    "MomentsRidgeClassifier",
    "MomentsLasso",
    "MomentsGroupLasso",
    "OnlineIntersectionClassifier",
]

# The home module of each name. A name is imported when it is first used, so that the command line can answer --help at
# once and set up the BLAS before NumPy loads it.
_HOMES = {
    "comparison": (),
    "data": ("Source", "open_source"),
    "engines": (),
    "explain": (),
    "export": ("export_model",),
    "features.fourier": ("FourierFeatures", "SkewedFourierFeatures", "WidthFeatures"),
    "kernels": (
        "AdditiveKernel", "ArccosKernel", "DirichletKernel", "Exponential", "Gaussian", "Kernel", "Linear", "MinMax",
        "PQKernel", "SkewedChi2", "SkewedIntersection", "StationaryKernel", "chi2", "hellinger",
        "intersection", "jensen_shannon", "stationary_gaussian", "stationary_laplace", "stationary_student",
    ),
    "estimators": (
        "CompiledClassifier", "CompiledRegressor", "ExactKernelLearner", "ExactKernelRegressor",
        "FourierKernelLearner", "FourierKernelRegressor",
        "HistogramClassifier", "HistogramRegressor", "KernelClassifier", "load", "save", "LookupClassifier",
        "MomentsGroupLasso", "MomentsLasso", "MomentsRidge", "MomentsRidgeClassifier", "MultipleKernelLearner",
        "MultipleKernelRegressor", "OnlineIntersectionClassifier",
    ),
    "losses": (),
    "features.additive": (
        "AdditiveKPCA", "AnchorMap", "ChebyshevMap", "CompressedMap", "DirectMap", "DirichletMap",
        "HomogeneousMap", "OptimalMap", "SignStableProjection", "StaircaseMap", "StationaryMap",
    ),
    "moments": ("Moments", "PCA"),
    "features.minmax": ("MinMaxFeatures",),
    "features.landmarks": ("LandmarkFeatures", "NystroemFeatures"),
    "penalties": (),
    "report": (),
    "solvers": (),
    "tables": (),
    "images": ("ImageHistograms", "open_images"),
}  # fmt: skip

if not TYPE_CHECKING:  # hidden from type checkers, which would then accept any name

    def __getattr__(name: str) -> object:
        """Return a public name or a folder of the package, imported at its first use (PEP 562)."""
        from importlib import import_module

        if name in _HOMES:
            return import_module(f"chimap.{name}")
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'chimap' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"chimap.{home}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})
