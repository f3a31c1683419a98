"""Methods of published papers that no default takes, a file each: the index.

Each is held to the laws of its kind, and the catalogues of kernels and maps name it, so that ``kernel="dirichlet"`` or
``AnchorMap()`` work as any other. A module is imported when its method is first used, and no other folder imports one.
"""

from __future__ import annotations

from dataclasses import dataclass

from chimap._catalogue import at_address
from chimap.model_files import register_addresses

_VZ = "Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps"
_LLS = "Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel with geometric convergence"
_ANNFM = "Wang, Yuan, Liu and Yan, Additive nearest neighbor feature maps"
_DPWT = "Gui, Chi, Zhang and Bao, A probability distribution kernel based on whitening transformation"
_SIKMA = "Wang, Hoiem and Forsyth, Learning image similarity from Flickr groups using stochastic intersection kernels"
_SCAN = "Maji, Berg and Malik, Classification using intersection kernel support vector machines is efficient"


@dataclass(frozen=True)
class PublishedMethod:
    """A method of a paper: what it is called here, and where it is described, tested and measured.

    Parameters
    ----------
    module : str
        The file in this folder.
    names : tuple of str
        Its public names.
    paper : str
        Authors and title.
    place : str
        The section, equation or algorithm.
    test : str
        The file of its tests, in ``tests/papers``.
    benchmark : str or None
        The file of ``benchmarks`` that measures it.
    """

    module: str
    names: tuple[str, ...]
    paper: str
    place: str
    test: str
    benchmark: str | None = None


METHODS = (
    PublishedMethod("anchors", ("AnchorMap",), _ANNFM, "secs. 3.2-3.4, 4", "test_anchors.py", "papers/annfm_table1.py"),
    PublishedMethod("lookup", ("LookupClassifier",), _ANNFM, "secs. 3.4-3.5", "test_lookup.py", "speed/lookup_fit.py"),
    PublishedMethod("chebyshev", ("ChebyshevMap",), _LLS, "sec. 5", "test_chebyshev.py", "papers/chi2_tables.py"),
    PublishedMethod(
        "stationary",
        ("StationaryMap", "StationaryKernel", "stationary_gaussian", "stationary_laplace", "stationary_student"),
        _VZ,
        "secs. 2-4, eq. 18",
        "test_stationary.py",
    ),
    PublishedMethod(
        "dirichlet",
        ("DirichletKernel", "DirichletMap"),
        _DPWT,
        "eqs. 13-22",
        "test_dirichlet.py",
        "papers/dirichlet.py",
    ),
    PublishedMethod(
        "kpca",
        ("AdditiveKPCA",),
        "Perronnin, Sanchez and Liu, Large-scale image categorization with explicit data embedding",
        "sec. 3.2",
        "test_kpca.py",
        "accuracy/kernel_errors.py",
    ),
    PublishedMethod(
        "compressed", ("CompressedMap",), _LLS, "sec. 6", "test_compressed.py", "accuracy/kernel_errors.py"
    ),
    PublishedMethod(
        "staircase",
        ("StaircaseMap",),
        "Maji and Berg, Max-margin additive classifiers for detection",
        "sec. 3",
        "test_staircase.py",
        "accuracy/kernel_errors.py",
    ),
    PublishedMethod(
        "sign_stable",
        ("SignStableProjection",),
        "Li, Samorodnitsky and Hopcroft, Sign Cauchy projections and chi-square kernel",
        "sec. 4",
        "test_sign_stable.py",
    ),
    PublishedMethod("online", ("OnlineIntersectionClassifier",), _SIKMA, "sec. 3", "test_online.py"),
    PublishedMethod(
        "detection",
        (
            "Detection",
            "WindowDetector",
            "MissRates",
            "hard_negatives",
            "matched",
            "mined_detector",
            "scene_miss_rates",
            "window_miss_rates",
        ),
        _SCAN,
        "sec. 4",
        "detection",
        "speed/detector.py",
    ),
)
"""The methods; a new one takes a file in this folder and a line here."""

_MODULES = {name: method.module for method in METHODS for name in method.names}

register_addresses({name: f"{__name__}.{module}:{name}" for name, module in _MODULES.items()})
register_addresses({"CodeTables": f"{__name__}.anchors:CodeTables"})  # what models of these methods hold


def __getattr__(name: str) -> object:
    """Import a method at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return at_address(f"{__name__}.{_MODULES[name]}:{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
