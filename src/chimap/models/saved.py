"""Writing estimators to model files and reading them: the methods ``save`` and ``load`` of every estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MethodType
from typing import Protocol, TypeVar

from chimap._validation import DataError
from chimap.model_files import model_file


class Saved(Protocol):
    """An estimator that says what its file holds: "model" if the command line can predict with it, or "estimator"."""

    file_kind: str


T = TypeVar("T", bound=Saved)


def save(self: T, path: str | Path, overwrite: bool = False) -> None:
    """Write the model to a file of safetensors and JSON, which is safe to open: it holds no code.

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
