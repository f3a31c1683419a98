"""Objects that cannot be read as they are, and the call that turns each into one that can."""

from __future__ import annotations

from chimap._validation import DataError

# Keys are the module, or the module and class, of a type; the longest key that fits is used.
REMEDIES: dict[str, str] = {
    "pyspark": "write it, frame.write.parquet(FOLDER), and open the folder",
    "tensorflow.python.data": "give the function that makes its batches: lambda: dataset.as_numpy_iterator()",
    "mudata": "take one modality: mdata['rna']",
    "h5py._hl.files": "give the path of the file",
    "h5py._hl.group": "name its rows: 'FILE.h5::GROUP/X'",
    "zarr.core.group": "name its rows: 'STORE.zarr::GROUP/X'",
    "sqlalchemy": "read it into a data frame: pandas.read_sql(query, connection)",
    "ibis": "read it into a table: expression.to_pyarrow()",
    "pyarrow.lib.RecordBatchReader": "it serves one pass only; read it whole: reader.read_all()",
    "pyarrow.RecordBatchReader": "it serves one pass only; read it whole: reader.read_all()",
    "torch.utils.data": "load it in batches: torch.utils.data.DataLoader(dataset, batch_size=1024)",
    "datasets.dataset_dict": "take one of its parts: dataset['train']",
    "sklearn.utils._bunch": "take its rows and labels: bunch.data, bunch.target",
    "polars.lazyframe.group_by": "aggregate it first: groups.agg(...)",
    "pandas.core.groupby": "aggregate it first: groups.sum()",
    "_io": "give the path of the file",
    "builtins.generator": "it serves one pass only; give the function that makes it: lambda: batches()",
    "builtins.dict": "make a data frame of it: pandas.DataFrame(rows)",
    "builtins.map": "it serves one pass only; give the function that makes it: lambda: map(...)",
    "builtins.zip": "it serves one pass only; give the function that makes it: lambda: zip(...)",
}


def remedy_for(X: object) -> str | None:
    """Return the call that turns X into an object that can be read, or None where none is known.

    >>> remedy_for(row for row in [])
    'it serves one pass only; give the function that makes it: lambda: batches()'
    """
    bases = [
        kind for kind in type(X).__mro__[1:] if kind.__module__ != "builtins"
    ]  # some scipy matrices are subclasses of dict
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in (type(X), *bases)]
    fits = [key for key in REMEDIES for kind in kinds if f"{kind}.".startswith(f"{key}.")]
    return REMEDIES[max(fits, key=len)] if fits else None


def refuse_unreadable(X: object) -> None:
    """Raise DataError, with the remedy, for an object that cannot be read as it is."""
    remedy = remedy_for(X)
    if remedy is not None:
        raise DataError(f"{type(X).__name__} cannot be read as it is: {remedy}.")
