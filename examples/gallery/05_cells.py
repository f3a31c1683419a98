"""Single cells: types from an .h5ad file

An `.h5ad` file holds counts of molecules per gene, most of them zero, and the types of the cells in `obs`. chimap reads
the file cell by cell and matches the genes of a second file by name.
"""

# %%
# We write a small file with AnnData: five types of cells, which differ in some of 300 genes.
import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import ConfusionMatrixDisplay

from chimap import HistogramClassifier, open_source

rng = np.random.default_rng(0)
types = np.array(["B", "CD4 T", "CD8 T", "monocyte", "NK"])
profiles = np.tile(rng.gamma(0.3, 1.0, 300), (5, 1))
for profile in profiles:
    profile[rng.choice(300, 25, replace=False)] *= rng.choice([0.3, 3.0], 25)
profiles[2] = 0.6 * profiles[1] + 0.4 * profiles[2]  # the two kinds of T cells are similar
kind = rng.choice(5, 1500, p=[0.2, 0.3, 0.2, 0.2, 0.1])
depth = rng.lognormal(0, 0.4, (1500, 1))
counts = rng.poisson(2.0 * depth * profiles[kind])
cells = anndata.AnnData(
    sp.csr_matrix(counts.astype(np.float32)),
    obs=pd.DataFrame({"cell_type": types[kind]}, index=[f"cell{i}" for i in range(1500)]),
    var=pd.DataFrame(index=[f"gene{j}" for j in range(300)]),
)
cells[:1000].write_h5ad("known.h5ad")
cells[1000:, ::-1].copy().write_h5ad("new.h5ad")  # genes in another order
print(f"{(counts == 0).mean():.0%} of the counts are zero")

# %%
model = HistogramClassifier("exp-hellinger", n_components=1024, normalize="l1", random_state=0)
model.fit_source(open_source("known.h5ad", labels="cell_type"))
new = open_source("new.h5ad", labels="cell_type", like=model)
answers, truth = model.labels_of(model.predict_source(new)), new.labels()
print(f"accuracy on new cells: {(answers == truth).mean():.3f}")

# %%
figure, axes = plt.subplots(figsize=(5, 4))
ConfusionMatrixDisplay.from_predictions(truth, answers, ax=axes, cmap="Blues", colorbar=False)
axes.set_title("New cells by type")
