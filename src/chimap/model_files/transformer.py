"""The base class of transformers: scikit-learn's methods with types for type checkers, and files."""

from __future__ import annotations

from pathlib import Path

from sklearn.base import TransformerMixin

from chimap._types import ArrayLike, MatrixLike, Transformed
from chimap.model_files.model_file import save


class Transformer(TransformerMixin):
    """scikit-learn's ``TransformerMixin`` with types, and ``save`` to a file that ``chimap.load`` opens."""

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

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted transformer to a file of safetensors and JSON, which is safe to open: it holds no code.

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
        save(self, path, overwrite=overwrite)
