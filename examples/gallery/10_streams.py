"""Rows that never stop: sums that merge and subtract

Ridge regression needs only sums over the features of the rows. Such sums merge over days and machines, and what was
added can be subtracted again. So a model can follow a drifting stream with a window of days, without keeping rows.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from chimap import Moments, OptimalMap

rng = np.random.default_rng(0)


def day(t, n=400):
    """Return counts of ten species, and a yield whose optimum moves from the second species to the fifth."""
    X = rng.poisson(rng.gamma(2, 2, (n, 10)))
    centre = np.clip((t - 10) / 20, 0, 1)
    y = (
        np.sqrt(X[:, 1]) * (1 - centre)
        + np.sqrt(X[:, 4]) * centre
        + rng.normal(0, 0.2, n)
    )
    return X, y


psi = OptimalMap(n_terms=3).fit(day(0)[0])


# %%
# We solve ridge from two sums: the scatter of the features, and their products with the target.
def ridge(moments):
    scatter = moments.covariance() * moments.count
    weights = np.linalg.solve(scatter + np.eye(30), moments.cross_scatter()[:, 0])
    return weights, moments.target_mean[0] - moments.mean @ weights


# %%
# We keep one sum over all days and one over the last five: add today, and subtract the day that leaves the window.
everything = window = Moments(n_features=30, n_targets=1)
days, errors = [], []
for t in range(40):
    X, y = day(t)
    Z = psi.transform(X)
    if days:
        errors.append([])
        for moments in (everything, window):
            weights, intercept = ridge(moments)
            errors[-1].append(np.sqrt(np.mean((Z @ weights + intercept - y) ** 2)))
    days.append(Moments(n_features=30, n_targets=1).update(Z, y))
    everything, window = everything + days[-1], window + days[-1]
    if len(days) > 5:
        window = window - days.pop(0)
print(f"error of tomorrow, mean over days: {np.mean(errors, axis=0).round(3).tolist()}")

# %%
figure, axes = plt.subplots(figsize=(6, 3.6))
axes.plot(range(1, 40), errors, label=["all days", "the last five days"])
axes.axvspan(10, 30, color="gray", alpha=0.15, label="the optimum moves")
axes.set(
    xlabel="day",
    ylabel="error of the day to come",
    title="Sums over a window follow a drift",
)
axes.legend()
