"""Solvers: each module minimises one objective by one method.

The docstring of a module states the objective, the method, and its cost in operations and memory. They share these
symbols: n rows z_i (features of length D) with targets y_i (of length t) and weights w_i, in K folds; the mean features
m; the scatter Hc = sum_i w_i (z_i - m)(z_i - m)' of the features, and Vc = sum_i w_i (z_i - m)(y_i - mean y)' of
features with targets. ``alpha`` is the strength of the penalty. The intercept b is not penalised unless a module says
otherwise.
"""
