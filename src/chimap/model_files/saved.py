"""Writing objects to model files and reading them: ``save`` and ``load`` of estimators, ``save`` of transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from sklearn.base import TransformerMixin

from chimap._types import ArrayLike, MatrixLike, Transformed
from chimap._validation import DataError
from chimap.model_files import model_file


class Saved(Protocol):
    """What says what its file holds: "model" if the command line can predict with it, "estimator", "transformer"..."""

    file_kind: str


P = ParamSpec("P")
R = TypeVar("R")
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


def whole(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method of fitting that leaves the object as it was where it raises.

    It is for objects that compute with the attributes that they learn while they learn them, and so cannot write all of
    them last: transformers, and machines that step from row to row. The method replaces what attributes hold, and does
    not change it in place before it has checked the rows.
    """

    @wraps(method)
    def fit(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit


class Transformer(TransformerMixin):
    """scikit-learn's ``TransformerMixin`` with types, and ``save`` to a file that ``chimap.load`` opens.

    A ``fit`` that fails leaves the transformer as it was.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "fit" in vars(cls):
            cls.fit = whole(cls.fit)
        super().__init_subclass__(**kwargs)

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
