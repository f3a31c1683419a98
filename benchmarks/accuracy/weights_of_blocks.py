"""Do weights of the blocks of a molecule, chosen by left-out rows, predict new molecules better than equal ones?

Kernel ridge on w_1 K_1 + w_2 K_2 + w_3 K_3, the min-max kernels of neighbourhoods, pairs and torsions, with weights of
sum 1: equal ones, one block left out, one that weighs twice or four times the others, one alone, and orders 3:2:1. The
weights are those of the least squared error of rows left out one by one, if that is less than the error of equal weights
by more than two standard errors of the difference; the penalty is chosen by the same error. Each split holds out a
fifth of the rows at random. A line gives what each family of weights gains on the test rows: in ROC AUC, or in RMSE
divided by the deviation of the targets, with the standard error over splits, and in how many splits it was taken.

python -m benchmarks.accuracy.weights_of_blocks                          # about fifteen minutes of a core
python -m benchmarks.accuracy.weights_of_blocks --tables mol_esol --splits 2
"""

from __future__ import annotations

import argparse
from itertools import permutations

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.measure import data_file
from chimap import MinMax
from chimap.data.table import declared_blocks
from chimap.readers import MoleculeBlocks

FAMILIES = {
    "left out": sorted({*permutations((0, 1, 1))}),
    "doubled": sorted({*permutations((2, 1, 1))}),
    "alone": sorted({*permutations((1, 0, 0))}),
    "others": sorted({*permutations((4, 1, 1)), *permutations((3, 2, 1))}),
}
WAYS = {
    "left out": ["left out"],
    "left out or doubled": ["left out", "doubled"],
    "left out or alone": ["left out", "alone"],
    "all": [*FAMILIES],
}
ALPHAS = 10.0 ** np.arange(-4, 1.01, 0.5)


def table(name: str) -> tuple[list[str], np.ndarray, bool]:
    """Return SMILES, targets (the last task of several), and whether they are numbers."""
    if name in ("logp", "tpsa"):
        with np.load(data_file("moses750k_smiles.npz")) as z:
            ends = np.cumsum(z["lengths"].astype(np.int64))
            chars, lengths = z["chars"], z["lengths"]
            chosen = np.sort(np.random.default_rng(0).choice(700_000, 2500, replace=False))
            y = z["logp_milli" if name == "logp" else "tpsa_centi"][chosen].astype(float)
        return [bytes(chars[ends[i] - lengths[i] : ends[i]]).decode() for i in chosen], y, True
    with np.load(data_file(f"domains/{name}.npz")) as z:
        y, is_regression = z["y"].astype(float), "is_regression" in z.files
        y = y.reshape(len(y), -1)[:, -1]
        if "smiles" in z.files:
            smiles = [each.decode() for each in z["smiles"]]
        else:
            from rdkit import Chem

            smiles = [Chem.MolToSmiles(Chem.MolFromSequence(each.decode())) for each in z["sequence"]]
    known = ~np.isnan(y)
    return [each for each, is_known in zip(smiles, known, strict=True) if is_known], y[known], is_regression


def left_out(K: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """Return the squared error of each row, predicted by ridge with an intercept on all others."""
    inverse = np.linalg.inv(K + alpha * np.eye(len(y)))
    sums = inverse.sum(axis=1)
    P = inverse - np.outer(sums, sums) / sums.sum()
    return np.asarray(np.square(P @ y / np.diag(P)))


def outputs(K: np.ndarray, cross: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """Return the outputs of ridge for other rows."""
    inverse = np.linalg.inv(K + alpha * np.eye(len(y)))
    intercept = inverse.sum(axis=0) @ y / inverse.sum()
    return np.asarray(cross @ (inverse @ (y - intercept)) + intercept)


def gains(smiles: list[str], y: np.ndarray, is_regression: bool, seed: int) -> dict[str, float]:
    """Return what each way of choosing weights gains on a fifth of the rows over equal weights, which is "equal"."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.sort(order[: len(y) * 4 // 5]), np.sort(order[len(y) * 4 // 5 :])
    targets = (y - y.mean()) / y.std() if is_regression else 2 * y - 1
    source = MoleculeBlocks().source([smiles[i] for i in train])
    X = next(source.chunks(len(train))).X
    X_test = next(source.reading.source([smiles[i] for i in test]).chunks(len(test))).X
    blocks = (declared_blocks(source.column_names) or {}).values()
    kernels = [MinMax()(X[:, own]).astype(float) for own in blocks]
    crosses = [MinMax()(X_test[:, own], X[:, own]).astype(float) for own in blocks]

    def tried(weights: tuple[float, ...], alphas: np.ndarray) -> tuple[np.ndarray, float, float]:
        w = np.divide(weights, sum(weights))
        K, cross = (np.tensordot(w, each, 1) for each in (kernels, crosses))
        errors = [left_out(K, targets[train], alpha) for alpha in alphas]
        best = int(np.argmin([error.mean() for error in errors]))
        found = outputs(K, cross, targets[train], alphas[best])
        score = (
            roc_auc_score(y[test], found) if not is_regression else -np.sqrt(np.square(found - targets[test]).mean())
        )
        return errors[best], float(alphas[best]), float(score)

    equal, alpha, first = tried((1, 1, 1), ALPHAS)
    near = alpha * 10.0 ** np.array([-0.5, 0, 0.5])
    found = {name: [tried(weights, near) for weights in sets] for name, sets in FAMILIES.items()}

    def gain(families: list[str]) -> float:
        best, score = 0.0, first
        for error, _, own in (each for family in families for each in found[family]):
            lead = equal - error
            if lead.mean() > max(best, 2 * lead.std(ddof=1) / np.sqrt(lead.size)):
                best, score = lead.mean(), own
        return score - first

    return {"equal": abs(first)} | {way: gain(families) for way, families in WAYS.items()}


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="mol_esol,mol_bbbp,mol_clintox,pep_unidl_bitter,tpsa")
    parser.add_argument("--splits", type=int, default=4)
    given = parser.parse_args()
    for name in given.tables.split(","):
        rows = table(name)
        found = [gains(*rows, seed) for seed in range(given.splits)]
        told = [f"{name:18} {len(rows[1]):5,} rows, equal {np.mean([each['equal'] for each in found]):.4f}"]
        for way in WAYS:
            values = np.array([each[way] for each in found])
            error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
            told.append(f"{way} {values.mean():+.4f} +- {error:.4f} ({np.count_nonzero(values)} of {values.size})")
        print("; ".join(told), flush=True)


if __name__ == "__main__":
    main()
