"""Molecules: fingerprints from SMILES

A molecule becomes a row of counts of its small neighbourhoods of atoms. Here the molecules are chains and rings with
oxygen, nitrogen and chlorine in places. logP measures how much a molecule prefers oil to water, and good drugs have a
logP near 2. We predict how far the logP of a molecule lies from 2. The logP itself is nearly a sum over atoms, so a
linear model would do; the distance is not.
"""

# %%
# We make molecules from fragments and write them as a table.
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP

from chimap import HistogramRegressor
from chimap.readers.molecules import MorganCounts

heads = ["C", "CC", "CCC", "CC(C)", "c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1"]
middles = ["", "C", "CC", "C(O)", "C(=O)N", "C(=O)O", "OC", "NC", "C(Cl)", "C=C"]
tails = ["C", "O", "N", "Cl", "C(=O)O", "C#N", "c1ccccc1", "C(F)(F)F", "S", "CBr"]
smiles = ["".join(parts) for parts in product(heads, middles, tails)]
logp = np.array([MolLogP(Chem.MolFromSmiles(text)) for text in smiles])
distance = np.abs(logp - 2)
rows = "\n".join(
    f"{text},{value:.3f}" for text, value in zip(smiles, distance, strict=True)
)
Path("molecules.csv").write_text("smiles,distance\n" + rows + "\n")
print(len(smiles), "molecules, such as", smiles[123])

# %%
# From the shell, `chimap fit molecules.csv --smiles smiles --labels distance` does the same.
source = MorganCounts("smiles", size=256).source("molecules.csv", labels="distance")
X = np.vstack([chunk.X.toarray() for chunk in source.chunks(256)])
held_out = np.random.default_rng(0).random(len(smiles)) < 0.4
predictions = {}
for kernel in ("linear", "chi2", "exp-chi2"):
    model = HistogramRegressor(kernel, n_components=512, random_state=0).fit(
        X[~held_out], distance[~held_out]
    )
    predictions[kernel] = model.predict(X[held_out])
    print(f"{kernel:10} R2 = {model.score(X[held_out], distance[held_out]):.3f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
for ax, kernel in zip(axes, ("linear", "exp-chi2"), strict=True):
    ax.scatter(distance[held_out], predictions[kernel], s=8)
    ax.axline((0, 0), slope=1, color="gray", linewidth=1)
    ax.set(title=f"{kernel} kernel", xlabel="distance from logP = 2")
axes[0].set_ylabel("predicted")
