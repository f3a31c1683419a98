"""Models in MLflow's own terms: saved, logged and loaded as Python functions, which MLflow serves as any other."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap._types import JSON
from chimap._version import __version__
from chimap.estimators import load

if TYPE_CHECKING:
    import numpy as np
    from mlflow.models.model import ModelInfo
    from sklearn.base import BaseEstimator

    from chimap._types import MatrixLike

__all__ = ["load_model", "log_model", "save_model"]

_MODULE = "chimap.mlflow"  # whose ``_load_pyfunc`` MLflow calls
_METHODS = ("predict", "predict_proba", "decision_function")


def save_model(
    model: BaseEstimator, path: str | Path, input_example: MatrixLike | None = None, **options: object
) -> None:
    """Save a fitted model as an MLflow model: a folder that ``mlflow.pyfunc.load_model`` opens.

    Its ``predict(frame)`` is that of the model; ``predict(frame, params={"predict_method": "predict_proba"})`` returns
    probabilities, and "decision_function" scores. The folder holds a model file of chimap, which runs no code.

    Parameters
    ----------
    model : estimator
        A fitted estimator with ``save``, such as a ``HistogramClassifier``.
    path : str or Path
        The folder, which must not exist.
    input_example : data frame or array, default=None
        Some rows, as they will come: they are kept, and MLflow's signature is made of them, with the types of their
        columns. Without them, there is no signature, and rows of any kind are passed on.
    **options : object
        Further arguments of ``mlflow.pyfunc.save_model``, such as ``signature``, ``metadata`` and ``pip_requirements``;
        by default, the last are this version of chimap.

    Raises
    ------
    ImportError
        If MLflow is not installed.
    ValueError
        If the model cannot be saved.

    Examples
    --------
    >>> import chimap, tempfile
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True, as_frame=True)
    >>> model = chimap.HistogramClassifier("chi2", alpha=1.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     chimap.mlflow.save_model(model, f"{folder}/digits", X[:5])
    ...     mlflow.pyfunc.load_model(f"{folder}/digits").predict(X[:3])
    array([0, 1, 2])
    """
    from mlflow import pyfunc

    with TemporaryDirectory() as folder:
        pyfunc.save_model(str(path), **_given(model, Path(folder), input_example), **options)


def log_model(
    model: BaseEstimator, name: str = "model", input_example: MatrixLike | None = None, **options: object
) -> ModelInfo:
    """Log a fitted model to the current run of MLflow; see ``save_model``.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    name : str, default="model"
        The name of the logged model.
    input_example : data frame or array, default=None
        Some rows, of which the signature is made.
    **options : object
        Further arguments of ``mlflow.pyfunc.log_model``, such as ``registered_model_name``.

    Returns
    -------
    ModelInfo
        What MLflow knows of the model; its ``model_uri`` opens it.

    Examples
    --------
    >>> import chimap
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     info = chimap.mlflow.log_model(model, input_example=X[:5])
    >>> chimap.mlflow.load_model(info.model_uri)  # doctest: +SKIP
    HistogramClassifier(alpha=1.0, kernel='chi2')
    """
    from mlflow import pyfunc

    with TemporaryDirectory() as folder:
        return pyfunc.log_model(name=name, **_given(model, Path(folder), input_example), **options)


def load_model(model_uri: str | Path) -> BaseEstimator:
    """Return the estimator of a model that ``save_model`` or ``log_model`` wrote.

    Parameters
    ----------
    model_uri : str or Path
        A folder, or an address of MLflow such as ``models:/cells/1``.

    Returns
    -------
    estimator
        The estimator, with ``explain``, ``export`` and all else.

    Raises
    ------
    ValueError
        If the model is of another flavour.

    Examples
    --------
    >>> import chimap
    >>> chimap.mlflow.load_model("models:/cells/1").classes_  # doctest: +SKIP
    array(['B', 'T'], dtype='<U1')
    """
    from mlflow.artifacts import download_artifacts
    from mlflow.models import Model

    folder = Path(download_artifacts(str(model_uri)))
    flavour = Model.load(str(folder)).flavors.get("python_function", {})
    if flavour.get("loader_module") != _MODULE:
        raise InputError(
            f"{model_uri}: not a model of chimap.mlflow, but of {flavour.get('loader_module', 'no Python function')}. "
            "Open it by mlflow.pyfunc.load_model."
        )
    return load(folder / flavour["data"])


def _given(model: BaseEstimator, folder: Path, input_example: MatrixLike | None) -> JSON:
    """Return the arguments for MLflow; the file of the model is written to a folder."""
    from mlflow.models import infer_signature

    if not hasattr(model, "save"):
        raise InputError(f"expected a fitted estimator of chimap, which has save; got a {type(model).__name__}.")
    model.save(folder / "model.chimap")
    given: JSON = {
        "loader_module": _MODULE,
        "data_path": str(folder / "model.chimap"),
        "pip_requirements": [f"chimap=={__version__}"],
    }
    if input_example is not None:
        answers = model.predict(input_example)
        signature = infer_signature(input_example, answers, params={"predict_method": "predict"})
        given |= {"input_example": input_example, "signature": signature}
    return given


class _PyFunc:
    """What MLflow calls: a model whose ``predict`` takes the name of a method."""

    def __init__(self, model: BaseEstimator) -> None:
        self.model = model

    def predict(self, rows: MatrixLike, params: JSON | None = None) -> np.ndarray:
        """Return the answers of the method that ``params`` names, "predict" by default."""
        method = (params or {}).get("predict_method", "predict")
        if method not in _METHODS or not hasattr(self.model, method):
            raise InputError(f"predict_method must be one of {', '.join(_METHODS)} that the model has; got {method!r}.")
        answers: np.ndarray = getattr(self.model, method)(rows)
        return answers


def _load_pyfunc(path: str) -> _PyFunc:
    """Return the model in a file; MLflow calls this by its name."""
    return _PyFunc(load(path))
