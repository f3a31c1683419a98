"""One small table in every form that is read, with any labels, ids and groups: files, and objects in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N_ROWS, N_BINS = 60, 6
BINS = [f"b{place}" for place in range(N_BINS)]
IDS = [f"s{row}" for row in range(N_ROWS)]


def counts_of(labels: list[Any]) -> np.ndarray:
    """Counts in which each label has a bin that is larger, so that every class can be told."""
    rows = np.random.default_rng(0).poisson(4, (N_ROWS, N_BINS)).astype(float)
    places = {label: place % N_BINS for place, label in enumerate(dict.fromkeys(labels))}
    rows[np.arange(N_ROWS), [places[label] for label in labels]] += 30
    return rows


def frame_of(labels: list[Any], name: str = "site") -> pd.DataFrame:
    frame = pd.DataFrame(counts_of(labels), columns=BINS)
    has_text = any(isinstance(label, str) for label in labels)
    frame[name] = pd.Series(labels, dtype=object if has_text else None)
    if all(label is None for label in labels):
        frame[name] = np.nan
    return frame


def csv(folder: Path, labels: list[Any], ending: str = ".csv") -> tuple[Any, str | None]:
    frame_of(labels).to_csv(folder / f"rows{ending}", index=False, sep="\t" if ".tsv" in ending else ",")
    return folder / f"rows{ending}", "site"


def tsv_gz(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    return csv(folder, labels, ".tsv.gz")


def parquet(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    frame_of(labels).to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet", "site"


def parquet_categories(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    frame_of(labels).astype({"site": "category"}).to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet", "site"


def feather(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    frame_of(labels).to_feather(folder / "rows.feather")
    return folder / "rows.feather", "site"


def json_lines(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    with open(folder / "rows.jsonl", "w") as file:
        for row, label in zip(counts_of(labels), labels, strict=True):
            file.write(json.dumps({"counts": dict(zip(BINS, row, strict=True)), "site": label}) + "\n")
    return folder / "rows.jsonl", "site"


def label_lines(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    np.save(folder / "rows.npy", counts_of(labels))
    (folder / "labels.txt").write_text("".join(f"{'' if x is None else x}\n" for x in labels))
    return folder / "rows.npy", str(folder / "labels.txt")


def label_column(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    np.save(folder / "rows.npy", counts_of(labels))
    pd.Series(labels, name="site").to_csv(folder / "labels.csv", index=False)
    return folder / "rows.npy", str(folder / "labels.csv")


def npz(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    np.savez(folder / "rows.npz", X=counts_of(labels), site=np.array(["" if x is None else x for x in labels]))
    return folder / "rows.npz", "site"


def hdf5(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    import h5py

    with h5py.File(folder / "rows.h5", "w") as file:
        file["X"], file["site"] = counts_of(labels), ["" if x is None else x for x in labels]
    return folder / "rows.h5", "site"


def zarr(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    import zarr

    root = zarr.open_group(str(folder / "rows.zarr"), mode="w")
    texts = np.array(["" if x is None else x for x in labels])
    for name, data in (("X", counts_of(labels)), ("site", texts)):
        data = data.astype(np.dtypes.StringDType()) if data.dtype.kind == "U" else data
        root.create_array(name, data=data)
    return folder / "rows.zarr", "site"


def cells(labels: list[Any]) -> Any:
    import anndata

    obs = frame_of(labels)[["site"]].set_axis(IDS)
    return anndata.AnnData(counts_of(labels), obs, pd.DataFrame(index=BINS))


def h5ad(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    cells(labels).write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad", "site"


def biom_joined(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    import biom

    table = biom.Table(counts_of(labels).T, BINS, IDS)
    (folder / "table.biom").write_text(table.to_json("a test"))
    meta = pd.DataFrame({"id": IDS, "site": labels})
    meta.to_csv(folder / "meta.tsv", sep="\t", index=False)
    return folder / "table.biom", f"{folder / 'meta.tsv'}::site"


def parquet_joined(folder: Path, labels: list[Any]) -> tuple[Any, str | None]:
    np.savez(folder / "rows.npz", X=counts_of(labels), ids=IDS)
    frame_of(labels)[["site"]].assign(id=IDS).to_parquet(folder / "meta.parquet")
    return folder / "rows.npz", f"{folder / 'meta.parquet'}::site"


FILES: dict[str, Callable[[Path, list[Any]], tuple[Any, str | None]]] = {
    "csv": csv,
    "tsv.gz": tsv_gz,
    "parquet": parquet,
    "parquet categories": parquet_categories,
    "feather": feather,
    "jsonl": json_lines,
    "lines of labels": label_lines,
    "column of labels": label_column,
    "npz": npz,
    "hdf5": hdf5,
    "zarr": zarr,
    "h5ad": h5ad,
    "biom and tsv": biom_joined,
    "npz and parquet": parquet_joined,
}


def polars_frame(labels: list[Any]) -> Any:
    import polars

    return polars.from_pandas(frame_of(labels))


def arrow_table(labels: list[Any]) -> Any:
    import pyarrow

    return pyarrow.Table.from_pandas(frame_of(labels))


def lazy_frame(labels: list[Any]) -> Any:
    return polars_frame(labels).lazy()


def data_set(labels: list[Any]) -> Any:
    import datasets

    return datasets.Dataset.from_pandas(frame_of(labels))


OBJECTS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": frame_of,
    "pandas string": lambda labels: frame_of(labels).astype({"site": "string"}),
    "pandas categories": lambda labels: frame_of(labels).astype({"site": "category"}),
    "polars": polars_frame,
    "arrow": arrow_table,
    "lazy frame": lazy_frame,
    "data set": data_set,
    "anndata": cells,
}
