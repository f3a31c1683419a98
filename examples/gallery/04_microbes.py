"""Microbes: body sites from a BIOM table

A BIOM file holds counts of species in samples, and a second table holds the metadata. The two are joined by the id of
the sample, not by order. All body sites have most species in common, but in different shares.
"""

# %%
# We write a small BIOM file of version 1, which is JSON, and metadata in another order.
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from chimap import HistogramClassifier, open_source
from chimap.explain.importance import permutation_importance

rng = np.random.default_rng(1)
sites, n_species = ["gut", "skin", "tongue"], 60
base = rng.dirichlet(np.full(n_species, 0.4))
shares = [0.75 * base + 0.25 * rng.dirichlet(np.full(n_species, 0.15)) for _ in sites]
labels = rng.integers(0, 3, 240)
counts = np.array(
    [
        rng.multinomial(rng.integers(200, 5000), rng.dirichlet(10 * shares[k]))
        for k in labels
    ]
)
table = {
    "id": None,
    "format": "Biological Observation Matrix 1.0.0",
    "format_url": "http://biom-format.org",
    "type": "OTU table",
    "generated_by": "example",
    "date": "2026-01-01T00:00:00",
    "matrix_type": "sparse",
    "matrix_element_type": "int",
    "shape": [n_species, 240],
    "data": [
        [int(j), int(i), int(counts[i, j])]
        for i, j in zip(*counts.nonzero(), strict=True)
    ],
    "rows": [{"id": f"OTU {j}", "metadata": None} for j in range(n_species)],
    "columns": [{"id": f"S{i:03d}", "metadata": None} for i in range(240)],
}
Path("table.biom").write_text(json.dumps(table))
lines = [f"S{i:03d}\t{sites[k]}" for i, k in enumerate(labels)]
Path("metadata.tsv").write_text(
    "\n".join(["sample\tbody_site", *rng.permutation(lines)]) + "\n"
)

# %%
# Totals depend only on sequencing, so we divide rows by them.
source = open_source("table.biom", labels="metadata.tsv::body_site")
print(source.n_rows, "samples of", source.n_features, "species")
y = source.labels()
X = np.vstack([chunk.X.toarray() for chunk in source.chunks(64)])
for kernel in ("linear", "hellinger", "jensen_shannon", "exp-jensen_shannon"):
    model = HistogramClassifier(
        kernel, normalize="l1", n_components=512, random_state=0
    )
    print(f"{kernel:20} {model.fit(X[:160], y[:160]).score(X[160:], y[160:]):.3f}")

# %%
# Which species does the last model rest on? We shuffle each one among the held-out samples and see how far the
# score falls.
losses = permutation_importance(
    lambda rows: model.score(rows, y[160:]), X[160:], n_repeats=3
)
top = np.argsort(losses)[-8:]
figure, axes = plt.subplots(figsize=(6, 3.6))
axes.barh([source.column_names[j] for j in top], losses[top])
axes.set(xlabel="loss of accuracy when shuffled", title="Species that matter")
