"""Digits: four kernels beside a linear model

Each scan is 64 counts of ink.
"""

# %%
# Fit them.
import matplotlib.pyplot as plt

plt.figure()
plt.plot([1, 2])
print("x")
