"""MoleculeACE: how strongly molecules act on thirty targets, where small changes of a molecule may change much.

The benchmark reads the files of van Tilborg, Alenicheva and Grisoni, Exposing the limitations of molecular machine
learning with activity cliffs (2022), a CSV for each target with the columns smiles, y, cliff_mol and split, from the
folder that is given; it does not fetch them. Models learn from the rows of the split "train" and are scored on all rows
of "test", and on those of them that are cliffs, by the root mean squared error. chimap has no settings; the rivals see
the same counts of Morgan neighbourhoods (radius 2, 2048 bins): a support vector machine on Tanimoto similarities whose
C five folds choose, LightGBM with as many rounds as are best in five folds, and a forest of 500 trees.

python -m benchmarks.accuracy.moleculeace --data MoleculeACE/Data/benchmark_data
python -m benchmarks.accuracy.moleculeace --data FOLDER --targets CHEMBL2835_Ki --methods "chimap,tanimoto svm"
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.fields import RIVALS

METHODS = ("chimap", "tanimoto svm", "lightgbm", "forest")
COLUMNS = {"smiles", "y", "cliff_mol", "split"}


@dataclass(frozen=True)
class Target:
    """Molecules of a target, what is measured of them, which are cliffs, and which are test rows."""

    name: str
    smiles: list[str]
    y: np.ndarray
    is_cliff: np.ndarray
    is_test: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Target:
        """Read a file of the benchmark; exit with a message if it is none."""
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        missing = COLUMNS - set(rows[0] if rows else ())
        if missing:
            sys.exit(f"{path} has no column {', '.join(sorted(missing))}: it is no file of MoleculeACE.")
        numbers = np.array([[float(row["y"]), float(row["cliff_mol"])] for row in rows])
        is_test = np.array([row["split"] == "test" for row in rows])
        return cls(path.stem, [row["smiles"] for row in rows], numbers[:, 0], numbers[:, 1] == 1, is_test)


def counts(smiles: list[str]) -> Any:
    """Return counts of Morgan neighbourhoods, (molecules, bins) in CSR."""
    from chimap import open_source
    from chimap.readers.molecules import fingerprint as reading

    source = open_source(smiles, reading=reading("morgan"))
    return source.block(0, source.n_rows).X


def predicted(target: Target, method: str, fingerprint: str) -> np.ndarray:
    """Return what a method predicts for the test rows; what is counted is learned from the training rows alone."""
    from chimap import HistogramRegressor, open_source
    from chimap.readers.molecules import fingerprint as reading

    train = ~target.is_test
    if method == "chimap":
        parts = [[target.smiles[place] for place in np.flatnonzero(part)] for part in (train, target.is_test)]
        source = open_source(parts[0], target.y[train], reading=reading(fingerprint))
        model = HistogramRegressor(random_state=0).fit_source(source)
        return np.asarray(model.predict(open_source(parts[1], like=model)))
    X = counts(target.smiles)
    return np.asarray(RIVALS[method](X[train], target.y[train], "r2").predict(X[target.is_test]))


def errors(target: Target, method: str, fingerprint: str) -> tuple[float, float]:
    """Return the root mean squared error of a method on test rows, and on the cliffs among them."""
    squares = np.square(predicted(target, method, fingerprint) - target.y[target.is_test])
    cliffs = target.is_cliff[target.is_test]
    return float(np.sqrt(squares.mean())), float(np.sqrt(squares[cliffs].mean())) if cliffs.any() else float("nan")


def files_of(folder: Path | None, targets: str) -> list[Path]:
    """Return the files of the targets; exit with a message where there are none."""
    if folder is None or not folder.is_dir():
        where = "give their folder with --data" if folder is None else f"{folder} is no folder"
        sys.exit(f"skipped: this benchmark reads the files of MoleculeACE: {where}.")
    if find_spec("rdkit") is None:
        sys.exit('skipped: this benchmark counts substructures with RDKit: pip install "chimap[chem]".')
    files = sorted(file for file in folder.glob("CHEMBL*.csv") if not targets or file.stem in targets.split(","))
    if not files:
        sys.exit(f"skipped: {folder} has no files CHEMBL*.csv{' of these targets' if targets else ''}.")
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the published files")
    parser.add_argument("--targets", default="", help="names of files without .csv; all if empty")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument(
        "--fingerprint", default="blocks", help="what chimap counts; rivals count Morgan neighbourhoods"
    )
    options = parser.parse_args()
    methods = options.methods.split(",")
    if unknown := [method for method in methods if method not in ("chimap", *RIVALS)]:
        parser.error(f"{unknown[0]!r} is none of chimap, {', '.join(RIVALS)}")
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    warnings.simplefilter("ignore")
    print(f"{'target':<18}{'rows':>6}{'tests':>6}" + "".join(f"{method:>24}" for method in methods))
    for file in files_of(options.data, options.targets):
        target = Target.read(file)
        for method in methods:
            found[method].append(errors(target, method, options.fingerprint))
        cells = "".join(f"{found[method][-1][0]:>14.4f} ({found[method][-1][1]:.4f})" for method in methods)
        n_test = int(target.is_test.sum())
        print(f"{target.name:<18}{target.y.size - n_test:>6}{n_test:>6}{cells}", flush=True)
    for method in methods:
        ahead = sum(ours[0] < theirs[0] for ours, theirs in zip(found[methods[0]], found[method], strict=True))
        beside = "" if method == methods[0] else f"; {methods[0]} is ahead on {ahead} of {len(found[method])}"
        whole, cliffs = np.nanmean(np.array(found[method]), axis=0)
        print(f"{method}: mean RMSE {whole:.4f}, of cliffs {cliffs:.4f}{beside}")


if __name__ == "__main__":
    main()
