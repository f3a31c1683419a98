"""The options of ``chimap fit`` that set the model and how it is chosen."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap.cli import flag_values
from chimap.cli.options import Engine, Precision, TaskName

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import JSON, Parameters


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of ``chimap fit``. Their defaults are those of the estimator.

    Parameters
    ----------
    kernel : NAME
        Kernel: auto to race several, or chi2, intersection, jensen_shannon or hellinger, with or without the prefix
        exp-. exp- gives the exponential form, and + a sum: chi2+pq. Other kernels are gaussian, linear, skewed-chi2,
        skewed-intersection, pq, dirichlet, minmax, additive-gaussian, additive-laplace and additive-student.
    gamma : G
        Scale of an exponential kernel: a number, mean (1 / mean distance) or auto.
    terms : N
        Features that the map makes of each bin: a number or auto.
    components : N
        Landmarks or random features of an exponential kernel: a number or auto. A larger number is more accurate.
    map : NAME
        Map of an additive kernel: optimal, compressed, direct, chebyshev, homogeneous, anchors, staircase or kpca.
    features : NAME
        Features of the kernel: auto, additive, fourier, landmarks or exact.
    sampling : NAME
        How to draw the frequencies of random features: auto, orthogonal, structured, iid or qmc.
    loss : NAME
        Loss: square, logistic, squared_hinge, smooth_hinge, epsilon_insensitive, poisson, quantile or hinge. square
        takes one pass over DATA, the others some tens of passes; hinge keeps the features of all rows in memory.
        poisson is for counts and rates, quantile for quantiles of the target.
    quantile : Q
        Quantile that --loss quantile predicts, such as 0.9. Several, such as 0.05,0.5,0.95, get a column each.
    weights : KIND
        What --sample-weight says of a row: importance, how much it matters, or frequency, how many equal rows it
        stands for.
    threshold : RULE
        How to choose, on held-out rows, the score above which a row belongs to the second of two classes: f1,
        balanced, or the cost of missing such a row in units of a false alarm. With --positive, f1 and the cost are
        about that class.
    ordered : CLASSES
        The classes in their order, such as low,medium,high: answers are medians of the probabilities, sets are
        neighbours, and choices are made by the mean absolute error in steps, or by --scoring weighted_kappa.
    label_tree : FILE|paths
        A tree above the classes: a text file with a line for each node, the node and its parent with a tab between; or
        paths, if the labels are paths such as cell/T/CD4. Reports have the accuracy on each level, and chimap predict
        --level answers nodes.
    alpha : S
        Strength of the penalty alpha/2 |w|^2 on the weights: a number, or auto for cross-validation.
    bin_weights : RULE
        Whether to weight the bins: learn, auto or none. learn takes the weights from gradients and keeps them if
        they help on held-out rows; auto learns them with --kernel auto only.
    test_fraction : F
        Share of the rows to hold out and score the model on.
    memory : SIZE
        Memory budget of the fit, such as 512MiB. It includes the libraries. auto is 1GiB, and more where the machine
        that won the race needs it, up to half of what is free.
    precision
        Precision of the features. Sums are always float64.
    depth_robust
        For counts: learn from two thinned copies of each row too, so that answers hold for rows of less depth. What it
        gains on left-out rows is printed.
    device : DEVICE
        Where to compute: cpu, or cuda for the pass and the solution (needs torch).
    engine
        Where to read the rows: in this process (local) or on Dask workers (dask).
    blocks : SPEC
        Blocks of columns: sift=0:300,hog=hog_*. Each block gets its own features, and --kernel may be a
        list with one kernel for each.
    principal : N
        Principal components to keep in each block, found in a first pass. Give several, such as 500,1000,3000, to
        choose the best by cross-validation together with alpha.
    folds : K
        Number of folds of an exact cross-validation to choose alpha. By default, alpha is chosen by leaving rows
        out in closed form.
    """

    kernel: str = "auto"
    gamma: str = "mean"
    terms: str = "auto"
    components: str = "auto"
    map: str = "optimal"
    features: str = "auto"
    sampling: str = "auto"
    loss: str = "square"
    quantile: str = "0.5"
    class_weight: str | None = None
    weights: str = "importance"
    threshold: str | None = None
    positive: str | None = None
    ordered: str | None = None
    label_tree: str | None = None
    alpha: str = "auto"
    normalize: bool = False
    normalization: str | None = None
    bin_weights: str = "auto"
    time_limit: str | None = None
    scoring: str | None = None
    task: TaskName = "auto"
    test_fraction: float = 0.0
    memory: str = "auto"
    precision: Precision = "float32"
    depth_robust: bool = False
    device: str = "cpu"
    engine: Engine = "local"
    blocks: str | None = None
    principal: str | None = None
    jobs: int | None = None
    folds: int | None = None
    seed: int = 0

    @property
    def preparation(self) -> str | list[str | None] | None:
        """The normalisation of each row before it is mapped, several to race among, or None."""
        return "l1" if self.normalize else flag_values.normalization_of(self.normalization)

    @property
    def kernels(self) -> list[str]:
        """The kernel names: a single one, or one for each block."""
        return flag_values.listed(self.kernel)

    @property
    def n_terms(self) -> int | str:
        """Features made of each bin: a number, or "auto", since each family of features has its own default."""
        return flag_values.number_of(self.terms, "--terms", 1)

    @property
    def n_components(self) -> int | str:
        """Landmarks or random features: a number, or "auto"."""
        return flag_values.number_of(self.components, "--components", 2)

    def check(self, n_descriptors: int = 0) -> None:
        """Raise ValueError, naming the flag, before any row is read, for settings that the fit would refuse later.

        ``n_descriptors`` is the number of image descriptors: these are the blocks unless --blocks is given.
        """
        from chimap._memory import parse_memory
        from chimap.backends import check_device
        from chimap.features.families import FAMILIES
        from chimap.features.fourier.sampling import CATALOGUE as SAMPLINGS

        for kernel in self.kernels:
            flag_values.check_kernel(kernel)
            flag_values.check_map(self.map, kernel)
        blocks = flag_values.blocks_of(self.blocks)
        n_blocks = n_descriptors if blocks is None else len(blocks)
        if len(self.kernels) > 1 and len(self.kernels) != n_blocks:
            raise InputError(f"--kernel names {len(self.kernels)} kernels: --blocks must then name as many blocks.")
        flag_values.check_known(self.features, ("auto", *FAMILIES), "--features")
        flag_values.check_known(self.sampling, ("auto", *SAMPLINGS), "--sampling")
        check_device(self.device)
        flag_values.check_loss(self.loss)
        flag_values.quantile_of(self.quantile, self.loss)
        flag_values.gamma_of(self.gamma)
        if self.normalize and self.normalization not in (None, "l1"):
            raise InputError(
                f"--normalize means --normalization l1, but {self.normalization} is given: leave one of them out."
            )
        flag_values.normalization_of(self.normalization)
        flag_values.check_scoring(self.scoring)
        flag_values.number_or("auto", self.alpha, "--alpha")
        _ = self.n_terms, self.n_components
        flag_values.check_least(self.folds, "--folds", 2)
        flag_values.check_least(self.jobs, "--jobs")
        flag_values.check_least(self.seed, "--seed", 0)
        flag_values.one_or_several(self.principal, "--principal")
        if self.bin_weights not in ("auto", "learn", "none"):
            raise InputError(f"--bin-weights must be auto, learn or none; got {self.bin_weights!r}.")
        flag_values.seconds_of(self.time_limit, "--time-limit")
        flag_values.class_weight_of(self.class_weight)
        flag_values.threshold_of(self.threshold)
        flag_values.check_share(self.test_fraction, "--test-fraction")
        parse_memory(self.memory)

    def weighing(self, task: TaskName, y: np.ndarray) -> JSON:
        """Return the parameters of a classifier that are about classes, given the labels ``y``; none of a regressor."""
        if task != "classify":
            flag_values.check_no_classes(
                self.class_weight, self.threshold, self.positive, self.ordered, self.label_tree
            )
            return {}
        structures: JSON = {}  # only those that are given: learners of kernels have none
        if self.ordered is not None:
            structures["ordered"] = flag_values.listed(self.ordered)
        if self.label_tree is not None:
            structures["label_tree"] = flag_values.label_tree_of(self.label_tree)
        return {
            "class_weight": flag_values.class_weight_of(self.class_weight, y),
            "threshold": flag_values.threshold_of(self.threshold),
            "positive": flag_values.label_of(self.positive, y),
            **structures,
        }

    def estimator(self, task: TaskName) -> BaseEstimator:
        """Return the unfitted model of these settings, without the parameters of ``weighing``."""
        from chimap import HistogramClassifier, HistogramRegressor
        from chimap.features.additive import CATALOGUE as MAPS
        from chimap.features.families import features_with

        of_terms = {} if self.n_terms == "auto" else {"n_terms": self.n_terms}
        features = {
            "features": self.features,
            "sampling": self.sampling,
            "n_principal": flag_values.one_or_several(self.principal, "--principal"),
        } | (of_terms if self.map == "optimal" else {"map": MAPS[self.map](**of_terms)})
        quantile = flag_values.quantile_of(self.quantile, self.loss)
        is_classifier = task == "classify"
        return (HistogramClassifier if is_classifier else partial(HistogramRegressor, quantile=quantile))(
            features=features_with(features),
            gamma=flag_values.gamma_of(self.gamma),
            bin_weights=None if self.bin_weights == "none" else self.bin_weights,
            time_limit=flag_values.seconds_of(self.time_limit, "--time-limit"),
            weights=self.weights,
            scoring=self.scoring,
            depth_robust=self.depth_robust,
            device=self.device,
            **self.of_every_model(),
        )

    def of_every_model(self) -> Parameters:
        """Return the parameters that learners of kernels have too."""
        return {
            "kernel": self.kernels if len(self.kernels) > 1 else self.kernels[0],
            "n_components": self.n_components,
            "normalize": self.preparation,
            "blocks": flag_values.blocks_of(self.blocks),
            "loss": self.loss,
            "alpha": flag_values.number_or("auto", self.alpha, "--alpha"),
            "selection": "auto" if self.folds is None else self.folds,
            "memory": self.memory,
            "precision": self.precision,
            "n_jobs": self.jobs,
            "random_state": self.seed,
        }
