"""Single cells: types, beside CellTypist

A table of cells by genes counts molecules; most counts are zero. `chimap.sc` learns types from some cells of an AnnData
object and writes types and probabilities into another. Beside it stands CellTypist, a logistic regression that many
use for this. It runs where it is installed (`pip install celltypist "scikit-learn<1.8"`); elsewhere scikit-learn takes
its steps.
"""

# %%
# We draw five types of cells, which differ in some of 300 genes. The two kinds of T cells are alike. The types of
# 1,000 cells are known; 500 cells are new, and their genes come in another order.
import time

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import chimap

rng = np.random.default_rng(0)
types = np.array(["B", "CD4 T", "CD8 T", "monocyte", "NK"])
profiles = np.tile(rng.gamma(0.3, 1.0, 300), (5, 1))
for profile in profiles:
    profile[rng.choice(300, 25, replace=False)] *= rng.choice([0.3, 3.0], 25)
profiles[2] = 0.6 * profiles[1] + 0.4 * profiles[2]
kind = rng.choice(5, 1500, p=[0.2, 0.3, 0.2, 0.2, 0.1])
depth = rng.lognormal(0, 0.4, (1500, 1))
counts = rng.poisson(2.0 * depth * profiles[kind])
cells = anndata.AnnData(
    sp.csr_matrix(counts.astype(np.float32)),
    obs=pd.DataFrame(
        {"cell_type": types[kind]}, index=[f"cell{i}" for i in range(1500)]
    ),
    var=pd.DataFrame(index=[f"gene{j}" for j in range(300)]),
)
known, new = cells[:1000].copy(), cells[1000:, ::-1].copy()
print(f"{(counts == 0).mean():.0%} of the counts are zero")

# %%
# chimap takes the counts. It tries kernels and linear models, and keeps the one that does best on cells left out.
began = time.process_time()
model = chimap.sc.fit(known, "cell_type", random_state=0)
chimap.sc.annotate(new, model, unassigned=None)
ours, seconds = new.obs["chimap"], time.process_time() - began
right = (ours == new.obs["cell_type"]).mean()
print(f"chimap: {right:.3f} of the types are right, {seconds:.1f} s of the processor")


# %%
# CellTypist takes logarithms of counts per ten thousand, as scanpy's `normalize_total` and `log1p` make them. It scales
# each gene, and fits a logistic regression for each type against all others.
def logarithms(cells):
    rows = cells.X.toarray()
    return anndata.AnnData(
        np.log1p(1e4 * rows / rows.sum(axis=1, keepdims=True)),
        obs=cells.obs,
        var=cells.var,
    )


began = time.process_time()
learned, asked = logarithms(known), logarithms(new[:, known.var_names])
try:
    import celltypist

    name, machine = "CellTypist", celltypist.train(learned, labels="cell_type")
    found = celltypist.annotate(asked, model=machine)
    theirs = found.predicted_labels["predicted_labels"]
except (ImportError, TypeError):
    # not there, or scikit-learn has dropped an option that CellTypist 1.7 names
    name, each = "CellTypist's steps", LogisticRegression(max_iter=1000)
    machine = make_pipeline(StandardScaler(), OneVsRestClassifier(each))
    theirs = machine.fit(learned.X, learned.obs["cell_type"]).predict(asked.X)
seconds = time.process_time() - began
right = (theirs == new.obs["cell_type"]).mean()
print(f"{name}: {right:.3f} are right, {seconds:.1f} s")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, title, answers in zip(axes, ("chimap", name), (ours, theirs), strict=True):
    ConfusionMatrixDisplay.from_predictions(
        new.obs["cell_type"], answers, ax=ax, cmap="Blues", colorbar=False
    )
    ax.set_title(title)
    ax.tick_params(axis="x", rotation=45)
axes[1].set_ylabel("")
