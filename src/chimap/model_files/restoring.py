"""The state of a saved object before the object is restored: completed, and checked.

Compiled loops trust the shapes of their arguments, so a table with fewer rows than bins would be read beyond its end.
Each class has a ``Shape`` beside the annotation of every array that a prediction reads, and an entry here for what
shapes do not say.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import JSON, Shape
from chimap.kernels import as_kernel
from chimap.model_files import attributes

Agreeing = list[tuple[str, object, object]]


def width(features: object, bins: object) -> object:
    """Return the number of columns of a map, or of the bins if there is no map."""
    return getattr(features, "_n_features_out", bins)


def _of_points(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [("range of its points", list(state["range_"]), [*map(float, state["points_"][[0, -1]])])]


def _of_nodes(state: JSON, sizes: dict[str, int]) -> Agreeing:
    wanted = (state["n_terms"], state["n_features_in_"]) if state["per_bin"] else (state["n_terms"],)
    return [("nodes", state["nodes_"].shape, wanted)]


def _of_lines(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [("whether the power of its pieces is from 0 to 15", state["power"] in range(16), True)]


def _of_waves(state: JSON, sizes: dict[str, int]) -> Agreeing:
    n = state["n_components"]
    n_waves = (n + 1) // 2 if state["form"] == "pair" else n
    return [("components", state["_n_features_out"], n), ("frequencies", sizes["n_waves"], n_waves)]


def _of_factors(state: JSON, sizes: dict[str, int]) -> Agreeing:
    mapped = sum(factor.map._n_features_out for factor in state["factors"])
    wide = [factor.map.n_features_in_ for factor in state["factors"] if factor.columns is not None]
    columns = [factor.columns.size for factor in state["factors"] if factor.columns is not None]
    is_within = bool(np.isin(state["centred"], np.arange(sizes["p"])).all())
    return [
        ("mapped bins", mapped, sizes["p"]),
        ("bins of each factor", wide, columns),
        ("centred bins", is_within, True),
    ]


def _of_landmarks(state: JSON, sizes: dict[str, int]) -> Agreeing:
    bins, psi = state["n_features_in_"], state["unit_map_"]
    whole = [factor.map.n_features_in_ for factor in psi.factors if factor.columns is None]
    last = max((int(factor.columns.max()) for factor in psi.factors if factor.columns is not None), default=0)
    return [
        ("mapped bins", psi.n_mapped, sizes["p"]),
        ("bins of its maps", whole, [bins] * len(whole)),
        ("columns of its maps", last < bins, True),
    ]


def _of_covariates(state: JSON, sizes: dict[str, int]) -> Agreeing:
    columns = sum(len(code.column_names) for code in state["codes"])
    return [
        ("columns of its covariates", state["features"].n_features_in_, columns),
        ("whether its weight is not below 0", bool(state["weight"] >= 0), True),
        ("whether its deviations are above 0", all(code.deviation > 0 for code in state["codes"]), True),
    ]


def _of_any_blocks(state: JSON) -> Agreeing:
    features, columns, bins = state["features_"], state["columns_"], state["n_features_in_"]
    is_within = all(block.dtype.kind in "iu" and np.isin(block, np.arange(bins)).all() for block in columns)
    return [
        ("columns of its blocks", is_within, True),
        ("blocks", len(state["names_"]), len(features)),
        ("bins of its blocks", [f.n_features_in_ for f in features], [block.size for block in columns]),
    ]


def _of_blocks(state: JSON, sizes: dict[str, int]) -> Agreeing:
    borders = np.cumsum([0, *(f._n_features_out for f in state["features_"])])
    return [*_of_any_blocks(state), ("borders", state["borders_"].tolist(), borders.tolist())]


def _of_exact_blocks(state: JSON, sizes: dict[str, int]) -> Agreeing:
    n_rows = {f._n_features_out for f in state["features_"]}
    return [*_of_any_blocks(state), ("rows of its blocks", len(n_rows), 1)]


def _of_exact(state: JSON, sizes: dict[str, int]) -> Agreeing:
    rows, bins, map_ = state["rows_"], state["n_features_in_"], state["map_"]
    return [
        ("whether gamma is a number", isinstance(getattr(state["kernel_"], "gamma", 1.0), str), False),
        ("rows", rows.shape[0], state["_n_features_out"]),
        ("columns", rows.shape[1], width(map_, bins)),
        ("whether rows are prepared", hasattr(rows, "values_into"), map_ is not None),
    ]


def _of_selection(state: JSON, sizes: dict[str, int]) -> Agreeing:
    n, n_folds = state["scores"].shape
    tried = [values.size for values in state["settings"].values()]
    return [
        ("settings", tried, [n] * len(tried)),
        ("weights of its folds", np.size(state["weights"]), n_folds),
        ("whether its choice is one of them", 0 <= state["chosen"] < n, True),
    ]


def _of_kept_rows(state: JSON, sizes: dict[str, int]) -> Agreeing:
    shape = (sizes["n"], state["n_columns"])
    sp.csc_matrix((state["data"], state["rows"], state["starts"]), shape).check_format(full_check=True)
    return [("columns", bool(np.isin(state["columns"], np.arange(shape[1])).all()), True)]


AGREEMENTS: dict[str, Callable[[JSON, dict[str, int]], Agreeing]] = {
    "OptimalMap": _of_points,
    "DirectMap": _of_nodes,
    "Covariates": _of_covariates,
    "LineTables": _of_lines,
    "FourierFeatures": _of_waves,
    "SkewedFourierFeatures": _of_waves,
    "UnitGaussianMap": _of_factors,
    "LandmarkFeatures": _of_landmarks,
    "BlockFeatures": _of_blocks,
    "ExactFeatures": _of_exact,
    "ExactBlocks": _of_exact_blocks,
    "KeptRows": _of_kept_rows,
    "LearningCurve": lambda state, sizes: [("scores", np.shape(state["scores"]), np.shape(state["rows"]))],
    "SelectionResult": _of_selection,
}
"""Functions by class name; each takes the state of an object and the sizes of its axes."""


# The weights of the features, for every estimator that has them.
_WEIGHTS = {"_coef": Shape("D", "t"), "_intercept": Shape("t")}


def check(cls: type, state: JSON, known: tuple[type, ...]) -> None:
    """Give parameters that the state lacks their defaults, and check it.

    ``known`` are all classes that files hold. Raises ValueError saying what is wrong.
    """
    _complete_parameters(cls, state)
    attributes.check(cls, state, known)
    if state.get("n_jobs") == 0:
        raise InputError(f"{cls.__name__}.n_jobs is 0")
    if {"kernel", "kernel_"} <= state.keys() and "features_" not in state:  # an estimator's may be "auto"
        as_kernel(state["kernel"])  # which features ask whether bins may be negative
    sizes: dict[str, int] = {k: v for k, v in state.items() if isinstance(v, int)}
    shapes = attributes.shapes_of(cls, known)
    for name, axes in (_WEIGHTS | shapes).items():
        if name in state and state[name] is not None:
            _check_array(f"{cls.__name__}.{name}", state[name], axes, sizes)
        elif name in shapes and "n_features_in_" in state:
            raise InputError(f"{cls.__name__} has no {name}")
    _check_together(cls.__name__, state, sizes)


def _complete_parameters(cls: type, state: JSON) -> None:
    """Give parameters that are younger than the file their defaults; raise ValueError for one without a default."""
    if not hasattr(cls, "get_params"):
        return
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in state or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.default is parameter.empty:
            raise InputError(f"{cls.__name__} has no {name}")
        state[name] = parameter.default


def _check_array(name: str, array: object, axes: Shape, sizes: dict[str, int]) -> None:
    if not (isinstance(array, np.ndarray) or _arrays.is_sparse(array)) or array.ndim != len(axes):
        raise InputError(f"{name} is not an array of {len(axes)} axes")
    wanted = [
        sizes.setdefault(axis, n) if isinstance(axis, str) else axis for axis, n in zip(axes, array.shape, strict=True)
    ]
    if list(array.shape) != wanted:
        raise InputError(f"{name} has shape {array.shape}, but the other attributes need {tuple(wanted)}")
    values = array.data if _arrays.is_sparse(array) else array
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise InputError(f"{name} holds a value that is not a finite number")


def _check_together(name: str, state: JSON, sizes: dict[str, int]) -> None:
    """Check that all parts of an object have the same number of bins, features and outputs."""
    bins, features = state.get("n_features_in_"), state.get("features_")
    tables: object = state.get("tables_")
    projection: object = state.get("projection_")
    agreeing: Agreeing = []
    if bins is not None:  # an estimator sets n_features_in_ last, so it is missing in the middle of a fit
        columns = bins + state["covariates_"].n_columns if "covariates_" in state else bins
        agreeing += [
            ("bins of its features", getattr(features, "n_features_in_", columns), columns),
            ("bins of its map", getattr(state.get("map_"), "n_features_in_", bins), bins),
            ("bins of its tables", getattr(tables, "n_bins", bins), bins),
            ("frequencies of words", np.size(getattr(state.get("normalization_"), "idf", range(bins))), bins),
            ("names of its bins", np.size(state.get("feature_names_in_", range(bins))), bins),
        ]
        agreeing += [(name, state[name].shape, (columns,)) for name in _OF_COLUMNS if name in state]
        mass = state.get("mass_")
        agreeing.append(("shares of the training mass", bins if mass is None else np.size(mass.shares), bins))
    if "D" in sizes:
        agreeing.append(("features", getattr(features, "_n_features_out", sizes["D"]), sizes["D"]))
        agreeing.append(
            (
                "weights of its posterior",
                np.size(getattr(state.get("_posterior"), "mean", range(sizes["D"]))),
                sizes["D"],
            )
        )
    if hasattr(projection, "n_inputs") and hasattr(projection, "n_frequencies"):
        agreeing += [
            ("inputs of the projection", projection.n_inputs, width(state.get("map_"), bins)),
            ("means of inputs", sizes.get("n_centred", projection.n_inputs), projection.n_inputs),
            ("frequencies", projection.n_frequencies, sizes.get("n_waves", projection.n_frequencies)),
        ]
    if "padded" in sizes:
        padded = sizes["padded"]
        fits = padded & (padded - 1) == 0 and state["n_inputs"] <= padded and sizes["m"] <= sizes["blocks"] * padded
        agreeing.append(("whether the sizes of its transforms fit", fits, True))
    outputs = sizes.get("t", getattr(tables, "n_outputs", None))
    if outputs is not None:
        agreeing += _of_answers(state, outputs)
    if name in AGREEMENTS and ("n_features_in_" in state or name in _FITTED):  # templates lack these attributes
        agreeing += AGREEMENTS[name](state, sizes)
    for what, actual, wanted in agreeing:
        if actual != wanted:
            raise InputError(f"{name}: {what}: {actual}, but the other attributes need {wanted}")


def _of_answers(state: JSON, outputs: int) -> Agreeing:
    """Return what has to agree of the classes or tasks of an estimator with so many outputs."""
    classes, conformal, tasks = state.get("classes_"), state.get("_conformal"), state.get("task_names_")
    agreeing: Agreeing = [] if tasks is None else [("names of its tasks", np.size(tasks), outputs)]
    if not isinstance(classes, np.ndarray):
        n_scored = outputs if conformal is None else conformal.scores.shape[1]
        return [
            *agreeing,
            ("whether its held-out scores are of all outputs or of each", n_scored in (1, outputs), True),
        ]
    novelty = state.get("_novelty")
    if novelty is not None:
        agreeing.append(("whether its signs of novelty are one or two", novelty.signs.shape[1] in (1, 2), True))
    is_multilabel, offsets = state.get("multilabel_", False), getattr(state.get("_calibration"), "offsets", None)
    wanted = 2 if outputs == 1 and not is_multilabel else outputs
    agreeing.append(("classes", classes.size, wanted))
    if offsets is not None:
        agreeing.append(("offsets of its probabilities", offsets.size, outputs))
    if conformal is not None:
        agreeing.append(("columns of its held-out scores", conformal.scores.shape[1], outputs if is_multilabel else 1))
    if not is_multilabel:
        known = getattr(state.get("_codec"), "classes", classes)
        agreeing.append(("classes of its targets", np.size(known), wanted))
    return agreeing


# Arrays with a value for each column of prepared rows.
_OF_COLUMNS = ("mean_row_", "deviation_row_", "largest_row_")

# Classes whose objects are always fitted.
_FITTED = frozenset(
    {"CodeTables", "Covariates", "KeptRows", "LearningCurve", "LineTables", "SelectionResult", "UnitGaussianMap"}
)
