"""Functions of bins: what an additive model has learned

A model with an additive kernel is a sum of one function per bin. Exported as tables, these functions can be looked up
by any program and plotted.
"""

# %%
# We draw counts of four species. A site is healthy if moss is present and grass is neither too rare nor too common.
import matplotlib.pyplot as plt
import numpy as np

from chimap import HistogramRegressor, OptimalMap, export_model

rng = np.random.default_rng(0)
names = ["moss", "grass", "clover", "nettle"]
X = rng.poisson(rng.gamma(2.0, [1.5, 6.0, 3.0, 3.0], (1500, 4))).astype(float)
health = (
    np.sqrt(np.minimum(X[:, 0], 6))
    - ((np.sqrt(X[:, 1]) - 3) / 1.5) ** 2
    + rng.normal(0, 0.3, 1500)
)

# %%
model = HistogramRegressor("chi2", features=OptimalMap(n_terms=5)).fit(
    X[:1000], health[:1000]
)
linear = HistogramRegressor("linear").fit(X[:1000], health[:1000])
print(
    f"R2 {model.score(X[1000:], health[1000:]):.3f}, linear {linear.score(X[1000:], health[1000:]):.3f}"
)

# %%
# Tables hold the functions at knots, with a bound on the error between them.
done = export_model(model, "health.npz")
with np.load("health.npz") as file:
    table = dict(file)
print(
    done.format,
    {
        name: values.shape
        for name, values in table.items()
        if name in ("knots", "values")
    },
)

# %%
figure, axes = plt.subplots(2, 2, figsize=(8, 5), sharey=True, layout="constrained")
for i, (ax, name) in enumerate(zip(axes.flat, names, strict=True)):
    inside = table["knots"][i] <= np.quantile(X[:, i], 0.995)
    ax.hist(
        X[:, i], bins=20, weights=np.full(1500, 4 / 1500), bottom=-3, color="lightgray"
    )
    ax.plot(table["knots"][i][inside], table["values"][i][inside, 0])
    ax.set(title=name, xlabel="count", xlim=(0, np.quantile(X[:, i], 0.995)))
for ax in axes[:, 0]:
    ax.set_ylabel("adds to the health")
figure.suptitle("The function of each species, over the density of its counts")
