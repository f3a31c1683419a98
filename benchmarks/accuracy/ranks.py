"""Sums over every rank of clades (``--rank all``) against the bins as they are, and against each rank alone.

Lineages are those of the table of MetAML (``domains/raw``), by species, or else by genus; bins of genomes, as those of
MLRepo, are named by genus, species and strain. "bins" and "all" are races with the default settings; a rank alone, and
the mean of all, is the min-max kernel on log-z rows.

python -m benchmarks.accuracy.ranks --splits 5
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import defaultdict

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.accuracy.fields import Table
from benchmarks.measure import data_file
from chimap import HistogramClassifier
from chimap.data import ArraySource, Source
from chimap.data.clade_sums import over_ranks
from chimap.data.table import declared_blocks
from chimap.data.views import ChosenRows

TABLES = ("deepmicro_cirrhosis", "deepmicro_colorectal", "deepmicro_t2d", "mlrepo_bacteremia", "mlrepo_claesson")
TABLES += ("mlrepo_gevers_ileum", "mlrepo_sokol_uc")
_GENOME = re.compile(r"N[RCZ]_\S+?\.\d+[_ ]([A-Z][a-z]+)[_ ]([a-z]+)")


def lineages(names: list[str]) -> list[str]:
    """Return the lineage of each bin, as far as it is known."""
    of_species, of_genus = dict[str, str](), dict[str, str]()
    with data_file("domains/raw/abundance_Colorectal.txt").open() as lines:
        for line in lines:
            above, _, species = line.partition("\t")[0].rpartition("|")
            if species.startswith("s__"):
                of_species[species] = f"{above}|{species}"
                of_genus[above.rpartition("|")[2]] = above
    found = []
    for name in names:
        genome = _GENOME.match(name)
        species = name if genome is None else f"s__{genome[1]}_{genome[2]}"
        genus = f"g__{species.removeprefix('s__').partition('_')[0]}"
        known = name if name.startswith("g__") else f"{of_genus.get(genus, genus)}|{species}"
        found.append(of_species.get(name, known) if genome is None else f"{known}|t__{name}")
    return found


def scores(table: Table, names: list[str], split: int) -> dict[str, float]:
    """Return the test ROC AUC of each way."""
    y = np.unique(table.y, return_inverse=True)[1]
    bins = ArraySource(table.X.astype(np.float32), y, column_names=tuple(names))
    summed = over_ranks(bins)
    blocks = declared_blocks(summed.column_names) or {}
    ways: dict[str, tuple[Source, dict[str, object]]] = {"bins": (bins, {}), "all": (summed, {})}
    fixed = {"kernel": "minmax", "normalize": "log-z", "features": "exact"}
    ways["mean"] = (summed, {**fixed, "blocks": blocks})
    ways |= {rank: (summed, {**fixed, "blocks": {rank: columns}}) for rank, columns in blocks.items()}
    train, test = np.flatnonzero(~table.tests[split]), np.flatnonzero(table.tests[split])
    groups = None if table.groups is None else table.groups[train]
    found = {}
    for way, (source, settings) in ways.items():
        model = HistogramClassifier(random_state=0, **settings)
        model.fit_source(ChosenRows(source, train, y[train]), groups=groups)
        outputs = model.predict_source(ChosenRows(source, test, y[test]))
        found[way] = float(roc_auc_score(y[test], outputs.reshape(test.size, -1)[:, -1]))
        if way == "all":
            print(f"  split {split}: {model.race_.trials[0].candidate.name}", flush=True)
    return found


def main() -> None:
    """Print the mean score of each way on each table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", default=",".join(TABLES))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.tables.split(","):
        table = Table.read(name)
        with np.load(data_file(f"domains/{name}.npz")) as z:
            names = lineages([each.decode() for each in z["bins"]])
        found = defaultdict(list)
        for split in range(min(args.splits, len(table.tests))):
            for way, score in scores(table, names, split).items():
                found[way].append(score)
        gain = np.subtract(found["all"], found["bins"])
        error = gain.std(ddof=1) / np.sqrt(gain.size)
        told = ", ".join(f"{way} {np.mean(each):.4f}" for way, each in found.items())
        print(f"{name}: {told}; all - bins {gain.mean():+.4f} +- {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
