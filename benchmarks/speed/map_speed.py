"""How fast are the maps, per output, compared with scikit-learn's sampler and with filling memory?"""

import numpy as np
from sklearn.kernel_approximation import AdditiveChi2Sampler

from benchmarks.measure import ratio, report, seconds
from chimap import DirectMap, HomogeneousMap, OptimalMap

X = np.random.default_rng(0).dirichlet(np.full(500, 0.5), size=20000).astype(np.float32)
peer = AdditiveChi2Sampler(sample_steps=2).fit(X)
shape = (X.shape[0], 3 * X.shape[1])  # the sampler makes three outputs a bin too
buffer = np.empty(shape, np.float32)

times = {"sampler": seconds(lambda: peer.transform(X))}
times["fill, new array"] = seconds(lambda: np.full(shape, 1.5, np.float32), 15)
times["fill, same array"] = seconds(lambda: buffer.fill(1.5), 15)
for name, target in ((DirectMap, "25"), (OptimalMap, "12"), (HomogeneousMap, "faster")):
    fitted = name(n_terms=3).fit(X)
    new = seconds(lambda fitted=fitted: fitted.transform(X), 15)
    same = seconds(lambda fitted=fitted: fitted.transform_into(X, buffer), 15)
    times[f"{name.__name__}, transform"], times[f"{name.__name__}, into"] = new, same
    report(f"{name.__name__}(3) transform: times as fast as the sampler", ratio(times["sampler"], new), target)
    report(f"{name.__name__}(3) into the same array: times as fast", ratio(times["sampler"], same), target)
    report(
        f"{name.__name__}(3) transform: share of filling a new array",
        ratio(times["fill, new array"], new),
        "0.9 (direct)",
    )
    report(
        f"{name.__name__}(3) into: share of filling the same array",
        ratio(times["fill, same array"], same),
        "0.5 (direct)",
    )
for name, t in times.items():
    print(f"  {name:<28} median {1e3 * np.median(t):8.2f} ms   best {1e3 * t[0]:8.2f} ms")
