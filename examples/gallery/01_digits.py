"""Digits: which kernel for 64 counts of ink?

Each of the 1797 scans that come with scikit-learn is a histogram: it says how much ink lies in each of 64 cells.
A kernel measures how alike two scans are. We compare a linear model on the counts with an additive kernel, which
learns one function per cell, and with its exponential form, which looks at all cells together. We train each model
on more and more rows.
"""

# %%
# We hold out half of the scans.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import train_test_split

from chimap import HistogramClassifier, OptimalMap

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# Each fit chooses the strength of its penalty, alpha, by cross-validation.
models = {
    "linear": RidgeClassifierCV([0.1, 1, 10, 100, 1000]),
    "chi2": HistogramClassifier("chi2", features=OptimalMap(n_terms=3)),
    "exp-chi2": HistogramClassifier("exp-chi2", n_components=1024, random_state=0),
}
sizes = [100, 200, 400, 800]
curves = {
    name: [model.fit(X[:n], y[:n]).score(X_test, y_test) for n in sizes]
    for name, model in models.items()
}
for name, scores in curves.items():
    print(f"{name:10}", *(f"{score:.3f}" for score in scores))

# %%
# The additive kernel beats the linear model from the start. The exponential kernel gains with more rows.
figure, axes = plt.subplots(figsize=(6, 3.6))
for name, scores in curves.items():
    axes.plot(sizes, scores, marker="o", label=name)
axes.set(
    xlabel="training rows",
    ylabel="accuracy",
    title="Digits: accuracy by rows",
    xscale="log",
)
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend()
