"""Model files: a fitted model, transformer or pipeline as arrays and JSON; see ``values`` for their content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap import _files
from chimap._validation import DataError
from chimap.model_files.values import decode, encode, register, register_addresses

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = ["damage_as_data_error", "decode", "encode", "load", "register", "register_addresses", "save"]


def save(model: BaseEstimator, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted model, a transformer, or a scikit-learn ``Pipeline`` of them to a file.

    The file holds arrays and plain metadata; opening it runs no code. An interrupted write leaves no file. The steps of
    a pipeline may be estimators of chimap, and those of scikit-learn that ``pipelines.learned_by_step`` names.

    Parameters
    ----------
    model : estimator
        The fitted model, transformer or pipeline.
    path : str or Path
        The file.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Raises
    ------
    FileExistsError
        If the path exists and ``overwrite`` is False.
    DataError
        If the object, or a step, cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> import chimap
    >>> X, y = load_digits(return_X_y=True)
    >>> pipeline = make_pipeline(chimap.OptimalMap("chi2"), LogisticRegression(C=0.1)).fit(X[:500], y[:500])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chimap.save(pipeline, f"{folder}/my.pipeline")
    ...     bool((chimap.load(f"{folder}/my.pipeline").predict(X) == pipeline.predict(X)).all())
    True
    """
    _files.check_free(path, overwrite)
    check_is_fitted(model)
    if hasattr(model, "_refresh"):
        model._refresh()
    arrays: dict[str, np.ndarray] = {}
    body = encode(model, "model", arrays)
    about = model.describe() if hasattr(model, "describe") else type(model).__name__
    kind: str = getattr(model, "file_kind", "transformer")
    _files.write_tensors(path, kind, {"about": about, "model": body}, arrays)


def load(path: str | Path, kind: str | None = None) -> Any:
    """Return the model, transformer or pipeline that ``save`` wrote, whatever its class; no code from the file is run.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str, default=None
        Required content: "model", "estimator" (the other machines), "transformer" (also pipelines), or "words" for
        transformers of images into histograms. None accepts all but "words".

    Returns
    -------
    estimator
        The fitted model, transformer or pipeline.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DataError
        If the file is of another kind, is cut off, or was written by a later version.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     HistogramClassifier("chi2", alpha=1.0).fit(X, y).save(f"{folder}/my.model")
    ...     load(f"{folder}/my.model").predict(X[:3]).tolist()
    [0, 1, 2]
    """
    meta, arrays = _files.read_tensors(path, *(("model", "estimator", "transformer") if kind is None else (kind,)))
    with damage_as_data_error(path):
        model = decode(meta["model"], arrays)
        check_is_fitted(model)
    return model


@contextmanager
def damage_as_data_error(path: str | Path) -> Iterator[None]:
    """Turn errors within the block, which restores objects from a file, into a DataError that names the file."""
    try:
        yield
    except RecursionError as error:
        raise DataError(f"{path} is damaged: its metadata are nested too deep. Write it again.") from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError) as error:
        raise DataError(f"{path} is damaged: {error}. Write it again.") from error
