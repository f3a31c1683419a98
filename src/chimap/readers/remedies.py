"""Objects and files that cannot be read as they are, and the call that turns each into one that can."""

from __future__ import annotations

import os
from collections.abc import Iterable

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.table import counting
from chimap.readers.io.files import uncompressed_name

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

# Keys are endings of files that are not read. FILE stands for the path.
FILES: dict[str, str] = {
    ".xlsx": "pandas.read_excel('FILE').to_parquet('rows.parquet')",
    ".xls": "pandas.read_excel('FILE').to_parquet('rows.parquet')",
    ".ods": "pandas.read_excel('FILE').to_parquet('rows.parquet')",
    ".loom": "anndata.io.read_loom('FILE').write_h5ad('rows.h5ad')",
    ".qzv": "give the artifact (.qza) that it was made of",
    ".h5mu": "mudata.read_h5mu('FILE')['rna'].write_h5ad('rows.h5ad'), with the modality that you want",
    ".rds": "in R, arrow::write_parquet(readRDS('FILE'), 'rows.parquet'), or for a sparse matrix "
    "Matrix::writeMM(readRDS('FILE'), 'rows.mtx')",
    ".rdata": "in R, load('FILE') and arrow::write_parquet(frame, 'rows.parquet')",
    ".rda": "in R, load('FILE') and arrow::write_parquet(frame, 'rows.parquet')",
    ".json": "pandas.read_json('FILE').to_parquet('rows.parquet'), or if it is a BIOM table, name it .biom",
    ".smi": "pandas.read_csv('FILE', sep=r'\\s+', names=['smiles', 'id'], header=None).to_csv('rows.csv', index=False)",
    ".sdf": "rdkit.Chem.PandasTools.LoadSDF('FILE', smilesName='smiles', molColName=None).to_csv('rows.csv', "
    "index=False)",
    ".mat": "numpy.save('rows.npy', scipy.io.loadmat('FILE')['X'].copy('C')), with the name of the matrix",
    ".pkl": "pandas.read_pickle('FILE').to_parquet('rows.parquet'), if you trust it: a pickle can run code",
    ".pickle": "pandas.read_pickle('FILE').to_parquet('rows.parquet'), if you trust it: a pickle can run code",
    ".orc": "pandas.read_orc('FILE').to_parquet('rows.parquet')",
    ".avro": "polars.read_avro('FILE').write_parquet('rows.parquet')",
    ".arff": "pandas.DataFrame(scipy.io.arff.loadarff('FILE')[0]).to_parquet('rows.parquet')",
    ".dta": "pandas.read_stata('FILE').to_parquet('rows.parquet')",
    ".sav": "pandas.read_spss('FILE').to_parquet('rows.parquet')",
    ".sas7bdat": "pandas.read_sas('FILE').to_parquet('rows.parquet')",
    ".sqlite": "pandas.read_sql('SELECT * FROM TABLE', sqlite3.connect('FILE')).to_parquet('rows.parquet')",
    ".tar": "name the file in it: tar://NAME::FILE",
    ".zip": "name the file in it: zip://NAME::FILE",
    ".gz": "gunzip FILE",
    ".bz2": "bunzip2 FILE",
    ".zst": "unzstd FILE",
    ".xz": "unxz FILE",
}


_MOLECULE_ENDINGS = (".smi", ".sdf")  # turned into tables with a column of SMILES


def file_remedy(path: str) -> str | None:
    """Return the call that turns a file into one that is read, or None where none is known.

    >>> file_remedy("data/rows.h5ad.gz"), file_remedy("rows.pdf")
    ('gunzip data/rows.h5ad.gz', None)
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in FILES:
        return None
    remedy = FILES[ending].replace("FILE", path)
    if ending in _MOLECULE_ENDINGS:
        return Message("{}, and read the column with {}", remedy, counting("MoleculeBlocks", "smiles"))
    return remedy


_TURNED = {"biom": "table.transpose() of biom", "h5ad": "adata.T of anndata", "anndata": "adata.T"}


def transposing(name: str) -> str:
    """Return what turns a table over whose samples are its columns: the flag that does, or a call that writes it anew.

    >>> print(transposing("counts.mtx.gz"))
    Read it with transpose, or without where that is given
    >>> print(transposing("table.biom"))
    Transpose it (table.transpose() of biom) and write it again
    """
    name = uncompressed_name(name)
    if name.endswith((".csv", ".tsv", ".tab", ".txt", ".mtx")):
        return Message("Read it with {transpose}, or without where that is given")
    call = next((call for kind, call in _TURNED.items() if kind in name), "frame.T of pandas")
    return f"Transpose it ({call}) and write it again"


def unread_file(path: str, endings: Iterable[str]) -> DataError:
    """Return the error for a file of a kind that is not read, with its remedy or the endings that are read."""
    remedy = file_remedy(path)
    if remedy is not None:
        return DataError(
            Message("{}: this kind of file is not read as it is. Turn it into one that is: {}.", path, remedy)
        )
    return DataError(f"{path}: unknown kind of file. Endings that can be read: {', '.join(endings)}.")


def remedy_after(path: str) -> str:
    """Return the remedy for a file after a colon, "" where none is known.

    >>> remedy_after("rows.orc"), remedy_after("rows.pdf")
    (": pandas.read_orc('rows.orc').to_parquet('rows.parquet')", '')
    """
    remedy = file_remedy(path)
    return "" if remedy is None else Message(": {}", remedy)


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
