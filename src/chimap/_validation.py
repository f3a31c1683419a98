"""Checks of arguments and data at the boundary of the package, and the messages that they raise.

Every message says where (argument, or file and row), what was expected, what came, and what to do.
Code behind the boundary does not check again. The checks import what they need, so that errors appear without delay.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, cast, overload

import numpy as np

from chimap._errors import DataError as DataError
from chimap._errors import InputError as InputError
from chimap._errors import MemoryBudgetError as MemoryBudgetError
from chimap._errors import ParameterError as ParameterError
from chimap._messages import Message
from chimap._types import ArrayLike, Blocks, DeviceArray, MatrixLike, Rows
from chimap._unicode import composed_names, composed_texts

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


AUTO: Final = "auto"
"""The value of a setting that is open."""


def is_auto(value: object) -> bool:
    """Whether a setting is open.

    >>> is_auto(AUTO), is_auto(0.5), is_auto(np.ones(2))
    (True, False, False)
    """
    return isinstance(value, str) and value == AUTO


_LEAST_WEIGHT = 1e-30  # lower limit of the largest weight, whose products with float32 numbers must not vanish


def check_histograms(
    X: Rows,
    *,
    name: str = "X",
    signed: bool = False,
    first_row: int | np.ndarray = 0,
    columns: Sequence[str] | None = None,
    ids: np.ndarray | None = None,
    remedy: str = "",
) -> None:
    """Raise DataError for NaN or infinite entries and, unless ``signed``, for negative ones.

    X is a float matrix (dense, or CSR) of rows of bins. ``first_row`` is added to the row in the message, so that a
    chunk of a file names the row of the file; an array gives the number of each row instead. ``columns`` are the names
    of the bins, ``ids`` those of all rows of the file. ``remedy`` says what to do about negative entries where it is
    not the kernel that refuses them.
    """
    from chimap import _arrays, _threads

    values = X.data if _arrays.is_sparse(X) else X
    flat = _arrays.flat_view(values)
    if all(_threads.over_rows(flat.size, 1, lambda part: _in_domain(flat[part], signed))):
        return
    bad = ~np.isfinite(values) if signed else ~(np.isfinite(values) & (values >= 0))
    if _arrays.is_sparse(X):
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column, value = int(X.indices[place]), X.data[place]
    else:
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = X[row, column]
    number = first_row + row if isinstance(first_row, int) else int(first_row[row])
    row_name = "" if ids is None else f" ({str(ids[number])!r})"
    where = f"{name}, row {number}{row_name}, column {column if columns is None else repr(columns[column])}"
    if np.isnan(value) or np.isinf(value):
        kind = "NaN" if np.isnan(value) else "infinity"
        raise DataError(f"{where}: {kind}. Every bin must be a finite number; remove the row or impute the bin first.")
    if remedy:
        raise DataError(Message("Negative values in data passed as {}: {:g}. {}", where, value, remedy))
    raise DataError(
        Message(
            "Negative values in data passed as {}: {:g}. Histogram kernels need bins >= 0; shift or clip the "
            "data, or use {kernel='gaussian'} or, in Python, kernel.signed(), which take negative values.",
            where,
            value,
        )
    )


def finite_outputs(outputs: np.ndarray, first_row: int = 0, name: str = "X") -> np.ndarray:
    """Return outputs (n, t) of rows; raise DataError, naming the row, for one whose outputs overflow."""
    if not np.isfinite(outputs).all():
        row = first_row + int(np.argmin(np.isfinite(outputs).all(axis=1)))
        raise DataError(
            f"{name}, row {row}: the outputs of the model overflow, because bins of this row are many orders of "
            "magnitude larger than those that it was fitted on. Check the row."
        )
    return outputs


def check_weights(coef: np.ndarray, alpha: float) -> None:
    """Raise DataError for weights of a solution at a strength that are not finite."""
    if not np.isfinite(coef).all():
        raise DataError(
            Message(
                "{alpha=:g} is too small: rounding leaves no digit of the weights. Use a larger one, or "
                "{alpha='auto'}.",
                alpha,
            )
        )


_CACHED = 65536  # values that stay in the processor's cache between the two passes over them


def _in_domain(values: np.ndarray, signed: bool) -> bool:
    """Return whether every value is finite, and not negative unless ``signed``. NaN fails both comparisons."""
    lowest = -np.finfo(values.dtype).max if signed else 0.0
    blocks = (values[start : start + _CACHED] for start in range(0, values.size, _CACHED))
    return all(block.min() >= lowest and block.max() < np.inf for block in blocks)


@overload
def validated_rows(
    estimator: BaseEstimator, X: MatrixLike, *, reset: bool, signed: bool, on_device: Literal[False] = False
) -> Rows: ...


@overload
def validated_rows(
    estimator: BaseEstimator, X: MatrixLike, *, reset: bool, signed: bool, on_device: bool
) -> Rows | DeviceArray: ...


def validated_rows(
    estimator: BaseEstimator, X: MatrixLike, *, reset: bool, signed: bool, on_device: bool = False
) -> Rows | DeviceArray:
    """Check X of a transformer's ``fit`` (reset) or ``transform`` and return it as float rows, dense or CSR.

    Arrays of torch and cupy stay on their device with ``on_device``, and are copied to NumPy arrays without it.

    Raises DataError for NaN, infinite or (unless ``signed``) negative entries, ValueError for another width.
    """
    from chimap import _arrays

    if on_device and _arrays.is_on_device(X):
        return _device_rows(estimator, X, signed)
    X = _arrays.to_host(X)
    X = validated(estimator, X) if reset else rows_as_fitted(estimator, X)
    rows = _arrays.as_rows(X)
    check_histograms(rows, signed=signed)
    return rows


def _device_rows(estimator: BaseEstimator, X: DeviceArray, signed: bool) -> DeviceArray:
    """Do the same for arrays of torch or cupy, which stay on their device."""
    from chimap import _arrays

    if X.ndim != 2:
        raise InputError(f"X must be rows of bins, an array of two axes; got shape {tuple(X.shape)}.")
    check_width(X, estimator.n_features_in_, type(estimator).__name__)
    rows = _arrays.device_rows(X)
    xp = _arrays.namespace(rows)
    good = xp.isfinite(rows) if signed else xp.isfinite(rows) & (rows >= 0)
    if not bool(xp.all(good)):
        check_histograms(_arrays.as_rows(_arrays.to_host(rows)), signed=signed)  # raises with the place
    return rows


def validated(estimator: BaseEstimator, X: MatrixLike, *y: ArrayLike, **checks: object) -> Any:
    """Return rows X, and labels if they are given, as scikit-learn's ``validate_data`` checks them.

    Numbers of any type stay, also NaN and infinity, whose places ``check_histograms`` names. Sparse rows become CSR.
    Labels of text are as ``composed_texts`` has them. ``checks`` go to ``validate_data``, which sets the number of
    columns and their names unless ``reset=False``.
    """
    from sklearn.utils.validation import validate_data

    from chimap import _arrays

    X = _with_text_names(X, None if checks.get("reset", True) else estimator)
    ours = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    valid = validate_data(estimator, _arrays.as_csr(X) if _arrays.is_sparse(X) else X, *y, **ours | checks)
    return (valid[0], composed_texts(valid[1])) if y else valid


def check_counted(names: Iterable[object], where: str) -> None:
    """Raise DataError if the names are 0, 1, ... in another order: a model without names takes columns by place."""
    order = [str(name) for name in names]
    counted = [str(place) for place in range(len(order))]
    if order != counted and {*order} == {*counted}:
        raise DataError(
            f"{where}: its columns are the numbers 0 to {len(order) - 1} in another order, "
            f"{', '.join(order[:4])}, ..., and the model was fitted on columns without names, which are taken by "
            "place. Sort them: X[sorted(X.columns)]."
        )


def _with_text_names(X: MatrixLike, fitted: object) -> MatrixLike:
    """Return a data frame in memory, with names of columns that are text in the form NFC; any other X as it is.

    scikit-learn keeps and compares names only where all are text. Numbers that count the columns are no names, unless
    ``fitted`` was fitted on names. Raises DataError if they count the columns in another order than those of
    ``fitted``, which has no names.
    """
    from chimap._frames import is_collection, is_frame, names_of, renamed

    frame = cast("pd.DataFrame", X)
    if is_collection(frame) and hasattr(frame, "columns"):
        frame = frame.compute()
    if not is_frame(frame):
        return frame
    names = [*names_of(frame)]
    if not hasattr(fitted, "feature_names_in_"):
        if hasattr(fitted, "n_features_in_"):
            check_counted(names, type(frame).__name__)
        if names == [*range(len(names))]:
            return frame
    text = [*composed_names(names)]
    return frame if text == names else renamed(frame, text)


def rows_as_fitted(estimator: BaseEstimator, X: MatrixLike) -> Rows:
    """Check X of a fitted estimator's ``transform`` or ``predict``; return an array or CSR of the fitted width.

    Arrays that already fit are returned at once: scikit-learn's checks take longer than the prediction of a row.
    """
    from chimap import _arrays

    fits = _arrays.is_plain(X) and X.shape[0] > 0 and X.shape[1] == estimator.n_features_in_
    if fits and not hasattr(estimator, "feature_names_in_"):
        return cast(Rows, X)

    from chimap._frames import without_index

    try:
        return validated(estimator, without_index(X, estimator), reset=False)
    except ValueError as error:
        if not str(error).startswith("The feature names should match"):
            raise
        raise DataError(
            f"{error}Pass the columns that it was fitted on, in their order: X[list(model.feature_names_in_)]; or pass "
            "open_source(X, like=model) to predict_source, which matches them by name and takes missing counts as zero."
        ) from None


def row_sums(X: Rows, *, name: str = "X", first_row: int = 0) -> np.ndarray:
    """Return the l1 norms (n,), float64, of checked rows. Raises DataError where one is infinite."""
    from chimap import _arrays

    with np.errstate(over="ignore"):
        sums = _arrays.row_norms_l1(X)
    check_row_sums(sums, name=name, first_row=first_row)
    return sums


def check_row_sums(sums: np.ndarray, *, name: str = "X", first_row: int = 0) -> None:
    """Raise DataError if the sum of a row is infinite, because rows are divided by their sums."""
    if np.isfinite(sums).all():
        return
    row = int(np.flatnonzero(~np.isfinite(sums))[0])
    raise DataError(
        f"{name}, row {first_row + row}: its bins sum to more than a {sums.dtype} holds, and rows are divided by "
        "their sums. Scale the row down."
    )


def check_width(X: Rows | DeviceArray, expected: int, owner: str) -> None:
    """Raise DataError if the number of bins differs from what ``owner`` was fitted on, in scikit-learn's words."""
    if X.shape[1] != expected:
        raise DataError(
            f"X has {X.shape[1]} features, but {owner} is expecting {expected} features as input. "
            "Pass rows with the bins that it was fitted on, in the same order."
        )


def check_positive(value: object, name: str, *, integer: bool = False) -> None:
    """Raise ParameterError unless the value is a finite positive number (a whole number if ``integer``)."""
    kind = numbers.Integral if integer else numbers.Real
    if not isinstance(value, kind) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        wanted = "a positive whole number" if integer else "a positive number"
        raise ParameterError(name, value, wanted)


def check_choice(value: object, name: str, choices: Sequence[object]) -> None:
    """Raise ParameterError unless the value is among ``choices``."""
    if value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise ParameterError(name, value, f"one of {listed}")


def checked_weights(weights: ArrayLike, n: int, each: str, name: str, allowed: str = "numbers") -> np.ndarray:
    """Return weights (n,) float64, one for each "row" or "bin" (``each``); ``allowed`` says what the argument may be.

    Raises DataError, naming the place, for negative, infinite and missing weights, another number of them, and if all
    are 0.
    """
    try:
        checked = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be {allowed}, one per {each}; {error}.") from None
    if checked.shape != (n,):
        flat = " Pass it as ravel()." if checked.shape == (n, 1) else ""
        raise DataError(
            f"{name} must have one weight for each of the {n} {each}s, shape ({n},); got {checked.shape}.{flat}"
        )
    bad = np.flatnonzero(~(np.isfinite(checked) & (checked >= 0)))
    if bad.size:
        raise DataError(
            f"{name}, {each} {bad[0]}: {checked[bad[0]]:g}; weights are finite and at least 0. A {each} of weight 0 is "
            "left out."
        )
    if not checked.any():
        raise DataError(
            f"{name}: all weights are zero, so that no {each} is left. Give at least one {each} a positive weight."
        )
    largest = checked.max()
    if not _LEAST_WEIGHT <= largest <= 1 / _LEAST_WEIGHT:
        raise DataError(
            f"{name}: the largest weight is {largest:.2g}, beyond {_LEAST_WEIGHT:g} to {1 / _LEAST_WEIGHT:g}, so that "
            "sums of weighted products vanish or overflow. Divide all weights by it."
        )
    return checked


def check_blocks(blocks: Blocks, n_columns: int) -> tuple[list[str], list[np.ndarray]]:
    """Return names and index arrays of blocks of columns: slices or lists, in a sequence or a mapping of names.

    Raises ValueError for blocks without columns and for columns that do not exist.
    """
    named = blocks.items() if isinstance(blocks, Mapping) else ((f"block{j}", b) for j, b in enumerate(blocks))
    names, indices = [], []
    for name, block in named:
        if isinstance(block, slice):
            columns = np.arange(n_columns)[block]
            beyond = block.stop is not None and block.stop > n_columns
        else:
            columns = np.asarray(block, dtype=np.int64).reshape(-1)
            beyond = bool(columns.size and not 0 <= columns.min() <= columns.max() < n_columns)
        if columns.size == 0 or beyond:
            what = "has no columns" if columns.size == 0 else "names columns that are not there"
            raise InputError(f"block {name!r} {what}: the rows have columns 0 to {n_columns - 1}; got {block!r}.")
        if np.unique(columns).size < columns.size:
            raise InputError(f"block {name!r} names a column twice; got {block!r}.")
        names.append(str(name))
        indices.append(columns)
    if not indices:
        raise InputError(Message("{blocks} must hold at least one block of columns; got none."))
    return names, indices
