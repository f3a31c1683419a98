"""What every transformer has beside scikit-learn's own methods: types that a checker sees, and files."""

from __future__ import annotations

from pathlib import Path

from sklearn.base import TransformerMixin

from chimap._types import ArrayLike, MatrixLike, Transformed
from chimap.model_files.model_file import save


class Transformer(TransformerMixin):
    """scikit-learn's ``TransformerMixin`` with types, and ``save`` to a file that ``chimap.load`` opens."""

    def fit_transform(self, X: MatrixLike, y: ArrayLike | None = None, **fit_params: object) -> Transformed:
        """Fit to rows X (n, bins) and transform them: an array (n, features), or CSR where rows and features are."""
        transformed: Transformed = super().fit_transform(X, y, **fit_params)
        return transformed

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted transformer to a file that opens safely anywhere (safetensors and JSON; no code in it).

        Raises FileExistsError if the path exists, unless ``overwrite``, and DataError for settings that no file holds,
        such as a function.
        """
        save(self, path, overwrite=overwrite)
