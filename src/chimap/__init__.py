"""chimap predicts from tables of counts: kernel machines for histograms, chosen and scored on held-out rows.

The path of the data, with the folders of the package along it::

    source  --chunks-->  map  --features-->  moments  --merge-->  solve  -->  model  -->  predict / report
    (data)               (features)          (moments)            (solvers)   (estimators)

Start with ``HistogramClassifier`` or ``HistogramRegressor``, which run all these steps.

    >>> from sklearn.datasets import load_digits
    >>> import chimap
    >>> X, y = load_digits(return_X_y=True)
    >>> model = chimap.HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X, y)

The exact kernels, against which everything else is tested, are ``chi2``, ``intersection``, ``jensen_shannon``,
``hellinger`` and ``Exponential(kernel, gamma)``. Explicit maps of additive kernels are ``OptimalMap``, ``DirectMap``,
``HomogeneousMap``, ``AnchorMap`` and ``StaircaseMap``. Two maps mix the bins: ``DirichletMap`` (exact for the
``DirichletKernel``) and ``SignStableProjection`` (bits for the chi-square kernel). ``LookupClassifier`` is a linear
model on codes of one byte for each bin. ``FourierFeatures`` are random features of exponential kernels,
``NystroemFeatures`` landmark features of any kernel. ``Moments`` are sums over rows that can be merged and subtracted;
``ridge``, ``lasso`` and ``group_lasso`` are solved from them.
``open_source`` reads files and arrays in chunks. ``load`` opens a saved model, and ``export_model`` writes it for other
programs. ``ImageHistograms`` turns images into histograms. ``FourierKernelLearner`` and ``MultipleKernelLearner`` learn
the kernel together with the weights: its widths, and the weights of channels.
"""

from typing import TYPE_CHECKING

from chimap._version import __version__ as __version__

if TYPE_CHECKING:
    from chimap.data import Source, with_covariates
    from chimap.diagnostics.audit import audit
    from chimap.diagnostics.forget import forget
    from chimap.diagnostics.ordination import ordinate
    from chimap.diagnostics.permanova import permanova
    from chimap.diagnostics.suggestion import suggest
    from chimap.estimators import HistogramClassifier, HistogramRegressor, load, save
    from chimap.estimators.compiled import CompiledClassifier, CompiledRegressor
    from chimap.export import export_model
    from chimap.features.additive import DirectMap, HomogeneousMap, OptimalMap
    from chimap.features.families import AutomaticFeatures, PrincipalFeatures
    from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures, WidthFeatures
    from chimap.features.landmarks import LandmarkFeatures, NystroemFeatures
    from chimap.features.minmax import MinMaxFeatures
    from chimap.features.principal import PCA
    from chimap.images import ImageHistograms, open_images
    from chimap.kernel_learning import (
        FourierKernelLearner,
        FourierKernelRegressor,
        MultipleKernelLearner,
        MultipleKernelRegressor,
    )
    from chimap.kernels import (
        AdditiveKernel,
        ArccosKernel,
        Exponential,
        Gaussian,
        Kernel,
        Linear,
        MinMax,
        PQKernel,
        SkewedChi2,
        SkewedIntersection,
        chi2,
        hellinger,
        intersection,
        jensen_shannon,
    )
    from chimap.moments import Moments
    from chimap.papers.anchors import AnchorMap
    from chimap.papers.chebyshev import ChebyshevMap
    from chimap.papers.compressed import CompressedMap
    from chimap.papers.dirichlet import DirichletKernel, DirichletMap
    from chimap.papers.kpca import AdditiveKPCA
    from chimap.papers.lookup import LookupClassifier
    from chimap.papers.online import OnlineIntersectionClassifier
    from chimap.papers.sign_stable import SignStableProjection
    from chimap.papers.staircase import StaircaseMap
    from chimap.papers.stationary import (
        StationaryKernel,
        StationaryMap,
        stationary_gaussian,
        stationary_laplace,
        stationary_student,
    )
    from chimap.readers import open_source
    from chimap.reports import report
    from chimap.selection.sums import group_lasso, lasso, ridge

__all__ = [
    "HistogramClassifier",
    "HistogramRegressor",
    "FourierKernelLearner",
    "FourierKernelRegressor",
    "MultipleKernelLearner",
    "MultipleKernelRegressor",
    "LookupClassifier",
    "CompiledClassifier",
    "CompiledRegressor",
    "load",
    "save",
    "with_covariates",
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
    "PrincipalFeatures",
    "AutomaticFeatures",
    "Moments",
    "PCA",
    "ridge",
    "lasso",
    "group_lasso",
    "OnlineIntersectionClassifier",
    "report",
    "permanova",
    "ordinate",
    "suggest",
    "audit",
    "forget",
]

# The module of each name, which is imported when the name is first used. So the command line can answer --help at once,
# and set up the BLAS before NumPy loads it.
_HOMES = {
    "data": ("Source", "with_covariates"),
    "diagnostics": (),
    "diagnostics.ordination": ("ordinate",),
    "diagnostics.permanova": ("permanova",),
    "diagnostics.audit": ("audit",),
    "diagnostics.forget": ("forget",),
    "diagnostics.suggestion": ("suggest",),
    "engines": (),
    "explain": (),
    "export": ("export_model",),
    "features.fourier": ("FourierFeatures", "SkewedFourierFeatures", "WidthFeatures"),
    "kernels": (
        "AdditiveKernel",
        "ArccosKernel",
        "Exponential",
        "Gaussian",
        "Kernel",
        "Linear",
        "MinMax",
        "PQKernel",
        "SkewedChi2",
        "SkewedIntersection",
        "chi2",
        "hellinger",
        "intersection",
        "jensen_shannon",
    ),
    "estimators": ("HistogramClassifier", "HistogramRegressor", "load", "save"),
    "estimators.compiled": ("CompiledClassifier", "CompiledRegressor"),
    "kernel_learning": (
        "FourierKernelLearner",
        "FourierKernelRegressor",
        "MultipleKernelLearner",
        "MultipleKernelRegressor",
    ),
    "losses": (),
    "features.additive": ("DirectMap", "HomogeneousMap", "OptimalMap"),
    "mlflow": (),
    "moments": ("Moments",),
    "features.principal": ("PCA",),
    "features.families": ("AutomaticFeatures", "PrincipalFeatures"),
    "features.minmax": ("MinMaxFeatures",),
    "features.landmarks": ("LandmarkFeatures", "NystroemFeatures"),
    "papers": (
        "AdditiveKPCA",
        "AnchorMap",
        "ChebyshevMap",
        "CompressedMap",
        "DirichletKernel",
        "DirichletMap",
        "LookupClassifier",
        "OnlineIntersectionClassifier",
        "SignStableProjection",
        "StaircaseMap",
        "stationary_gaussian",
        "stationary_laplace",
        "stationary_student",
        "StationaryKernel",
        "StationaryMap",
    ),
    "penalties": (),
    "readers": ("open_source",),
    "reports": ("report",),
    "sc": (),
    "selection.sums": ("group_lasso", "lasso", "ridge"),
    "solvers": (),
    "tables": (),
    "images": ("ImageHistograms", "open_images"),
}

if not TYPE_CHECKING:  # with __getattr__ in view, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name or a folder of the package at its first use (PEP 562)."""
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
