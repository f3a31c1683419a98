"""Writing objects to model files and reading them: ``save`` and ``load`` of estimators, ``save`` of transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MethodType
from typing import ClassVar, Protocol, TypeVar

from sklearn.base import TransformerMixin

from chimap._types import ArrayLike, MatrixLike, Transformed
from chimap._validation import DataError
from chimap._whole_fits import WholeFits
from chimap.model_files import model_file


class Saved(Protocol):
    """What says what its file holds: "model" if the command line can predict with it, "estimator", "transformer"..."""

    file_kind: str


T = TypeVar("T", bound=Saved)


def save(self: T, path: str | Path, overwrite: bool = False) -> None:
    """Write what was fitted to a file of safetensors and JSON, which is safe to open: it holds no code.

    Parameters
    ----------
    path : str or Path
        The file.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Raises
    ------
    FileExistsError
        If the path exists and ``overwrite`` is False.
    DataError
        If a setting cannot be written, such as a function.
    """
    model_file.save(self, path, overwrite=overwrite)


def load(cls: type[T], path: str | Path) -> T:
    """Return a model that ``save`` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    DataError
        If the file is not one that ``save`` wrote, or holds a model of another class.
    """
    model = model_file.load(path, kind=cls.file_kind)
    if not isinstance(model, cls):
        raise DataError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}; use chimap.load.")
    return model


class Load:
    """The class method ``load`` of an estimator."""

    def __get__(self, estimator: object, cls: type[T]) -> Callable[[str | Path], T]:
        return MethodType(load, cls)


class Transformer(WholeFits, TransformerMixin):
    """scikit-learn's ``TransformerMixin`` with types, and ``save`` to a file that ``chimap.load`` opens."""

    file_kind: ClassVar[str] = "transformer"
    save = save

    def fit_transform(self, X: MatrixLike, y: ArrayLike | None = None, **fit_params: object) -> Transformed:
        """Fit to rows and transform them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            The rows.
        y : array-like, default=None
            Targets, if the transformer uses them.
        **fit_params : dict
            Further arguments of ``fit``.

        Returns
        -------
        ndarray or CSR matrix of shape (n, features)
            The features; CSR if the rows are sparse and the features can be.
        """
        transformed: Transformed = super().fit_transform(X, y, **fit_params)
        return transformed
