"""Agreements within saved objects beyond the shapes of their arrays, as tuples (name, actual value, required value)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from chimap._types import JSON

Agreeing = list[tuple[str, object, object]]


def width(features: object, bins: object) -> object:
    """Return the number of columns of a map, or of the bins if there is no map."""
    return getattr(features, "_n_features_out", bins)


def _of_points(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [("range of its points", list(state["range_"]), [*map(float, state["points_"][[0, -1]])])]


def _of_nodes(state: JSON, sizes: dict[str, int]) -> Agreeing:
    wanted = (state["n_terms"], state["n_features_in_"]) if state["per_bin"] else (state["n_terms"],)
    return [("nodes", state["nodes_"].shape, wanted)]


def _of_dirichlet(state: JSON, sizes: dict[str, int]) -> Agreeing:
    kernel = state["kernel_"]
    is_fitted = not isinstance(kernel.beta, str) and not isinstance(kernel.offset, str)
    return [("a fitted kernel", is_fitted, True), ("bins", np.shape(kernel.beta), (state["n_features_in_"],))]


def _of_harmonics(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [("terms", state["n_terms"], 2 * sizes["harmonics"] - 1)]


def _of_anchors(state: JSON, sizes: dict[str, int]) -> Agreeing:
    bins, n_anchors, k = state["n_features_in_"], state["n_anchors"], state["n_neighbors"]
    codes = n_anchors - k + 2 if k > 1 and state["weights"] == "uniform" else n_anchors
    n_tables = bins if state["anchors"] == "kmeans" else 1
    both = 2 * codes - 1 if state["kernel_"].is_signed else codes
    return [
        ("anchors", state["anchors_"].shape, (bins, n_anchors)), ("tables", sizes["tables"], n_tables),
        ("codes", sizes["codes"], codes), ("codes of both signs", state["n_codes_"], both),
    ]  # fmt: skip


def _of_compressed(state: JSON, sizes: dict[str, int]) -> Agreeing:
    base = state["base_"]
    n_tables = state["n_features_in_"] if state["per_bin"] or base._differs_by_bin else 1
    return [
        ("bins of the long map", base.n_features_in_, state["n_features_in_"]),
        ("terms of the long map", base._n_terms_out, sizes["long"]), ("tables", sizes["tables"], n_tables),
    ]  # fmt: skip


def _of_lines(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [("whether the power of its pieces is from 0 to 15", state["power"] in range(16), True)]


def _of_codes(state: JSON, sizes: dict[str, int]) -> Agreeing:
    map_ = state["map"]
    return [("bins and codes", state["tables"].shape[:2], (map_.n_features_in_, map_.n_codes_))]


def _of_rounded(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [
        ("whether an input is one or two bfloat16", state["n_parts"] in (1, 2), True),
        ("precision of its frequencies", state["matrix"].dtype, np.dtype(np.float32)),
    ]


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
        ("mapped bins", psi.n_mapped, sizes["p"]), ("bins of its maps", whole, [bins] * len(whole)),
        ("columns of its maps", last < bins, True),
    ]  # fmt: skip


def _of_any_blocks(state: JSON) -> Agreeing:
    features, columns, bins = state["features_"], state["columns_"], state["n_features_in_"]
    is_within = all(block.dtype.kind in "iu" and np.isin(block, np.arange(bins)).all() for block in columns)
    return [
        ("columns of its blocks", is_within, True), ("blocks", len(state["names_"]), len(features)),
        ("bins of its blocks", [f.n_features_in_ for f in features], [block.size for block in columns]),
    ]  # fmt: skip


def _of_blocks(state: JSON, sizes: dict[str, int]) -> Agreeing:
    borders = np.cumsum([0, *(f._n_features_out for f in state["features_"])])
    return [*_of_any_blocks(state), ("borders", state["borders_"].tolist(), borders.tolist())]


def _of_exact_blocks(state: JSON, sizes: dict[str, int]) -> Agreeing:
    n_rows = {f._n_features_out for f in state["features_"]}
    return [*_of_any_blocks(state), ("rows of its blocks", len(n_rows), 1)]


def _of_exact(state: JSON, sizes: dict[str, int]) -> Agreeing:
    rows, bins, map_ = state["rows_"], state["n_features_in_"], state["map_"]
    return [
        ("rows", rows.shape[0], state["_n_features_out"]), ("columns", rows.shape[1], width(map_, bins)),
        ("whether rows are prepared", hasattr(rows, "values_into"), map_ is not None),
    ]  # fmt: skip


def _of_kept_rows(state: JSON, sizes: dict[str, int]) -> Agreeing:
    shape = (sizes["n"], state["n_columns"])
    sp.csc_matrix((state["data"], state["rows"], state["starts"]), shape).check_format(full_check=True)
    return [("columns", bool(np.isin(state["columns"], np.arange(shape[1])).all()), True)]


def _of_online(state: JSON, sizes: dict[str, int]) -> Agreeing:
    return [
        ("whether a bin has two knots or more", sizes["knots"] >= 2, True),
        ("targets", state["_codec"].n_targets, sizes["t"]),
    ]


def _of_lookup(state: JSON, sizes: dict[str, int]) -> Agreeing:
    map_ = state["map_"]
    return [
        ("whether its map has codes", map_.has_codes, True),
        ("codes", sizes["codes"], map_.n_codes_),
        ("weights", sizes["terms"], map_.n_terms_ * state["n_features_in_"]),
    ]


def _outputs_of(n_outputs: int, state: JSON) -> Agreeing:
    """The outputs are as many as the classes need, if there are classes."""
    classes = state.get("classes_")
    return [] if classes is None else [("outputs", n_outputs, 1 if classes.size == 2 else classes.size)]


def _of_kernel_machine(state: JSON, sizes: dict[str, int]) -> Agreeing:
    bins, t, n = state["n_features_in_"], sizes["t"], sizes["n"]
    if state["map"] is not None:
        return [("weights of the map", _shape_of(state, "coef_"), (t, width(state.get("map_"), None)))]
    if isinstance(state["kernel"], str) and state["kernel"] == "precomputed":
        return [("columns", bins, n)]
    return [("rows", _shape_of(state, "rows_"), (n, bins)), ("a fitted kernel", "kernel_" in state, True)]


def _shape_of(state: JSON, name: str) -> object:
    return getattr(state.get(name), "shape", None)


AGREEMENTS: dict[str, Callable[[JSON, dict[str, int]], Agreeing]] = {
    "OptimalMap": _of_points,
    "DirectMap": _of_nodes,
    "StationaryMap": _of_harmonics,
    "DirichletMap": _of_dirichlet,
    "AnchorMap": _of_anchors,
    "CompressedMap": _of_compressed,
    "LineTables": _of_lines,
    "CodeTables": _of_codes,
    "RoundedMatrix": _of_rounded,
    "FourierFeatures": _of_waves,
    "SkewedFourierFeatures": _of_waves,
    "UnitGaussianMap": _of_factors,
    "LandmarkFeatures": _of_landmarks,
    "BlockFeatures": _of_blocks,
    "ExactFeatures": _of_exact,
    "ExactBlocks": _of_exact_blocks,
    "KeptRows": _of_kept_rows,
    "OnlineIntersectionClassifier": _of_online,
    "LookupClassifier": _of_lookup,
    "KernelClassifier": _of_kernel_machine,
}
"""Functions by class name; each takes the state of an object and the sizes of its axes."""
