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
    kernel : NAME, common
        How rows are compared; auto takes the best of several. chi2, intersection, jensen_shannon and hellinger add up
        what each column tells. With exp- before them, such as exp-chi2, columns also act together. + makes a sum, such
        as chi2+pq. Others are gaussian, linear, skewed-chi2, skewed-intersection, pq, dirichlet, minmax,
        additive-gaussian, additive-laplace and additive-student.
    gamma : G
        How local an exp- kernel is: a number, mean or auto. The larger, the more alike two rows must be to count as
        alike. mean is one over the mean distance of two rows; auto chooses on held-out rows.
    terms : N
        Into how many numbers each column is turned for a kernel without exp-; auto, or a number such as 3. More are
        more accurate and take longer.
    components : N
        How many landmark rows or random features stand for all rows, for exp- kernels: auto, or a number such as 2048.
        More are more accurate and take longer.
    map : NAME
        How a kernel without exp- is turned into numbers: optimal, compressed, direct, chebyshev, homogeneous, anchors,
        staircase or kpca.
    features : NAME
        How the kernel is computed: auto, exact (with all rows), landmarks (with some rows), fourier (with random
        features) or additive (column by column).
    sampling : NAME
        How random features are drawn: auto, orthogonal, structured, iid or qmc.
    loss : NAME
        How mistakes count while learning: square, logistic, squared_hinge, smooth_hinge, epsilon_insensitive, poisson,
        quantile or hinge. square is the fastest and reads DATA once, the others some tens of times; hinge keeps what it
        learns from in memory. poisson is for predicting counts and rates, quantile for predicting quantiles.
    quantile : Q
        Which quantile --loss quantile predicts, such as 0.9. Several, such as 0.05,0.5,0.95, get a column each.
    weights : KIND
        What --sample-weight says of a row: importance (how much it matters) or frequency (how many equal rows it stands
        for).
    threshold : RULE
        When to answer the second of two classes, or that of --positive: f1, balanced, or a number such as 5: what
        missing one costs in false alarms. The score above which a row belongs to it is chosen on held-out rows. By
        default, the more probable class is answered.
    ordered : CLASSES
        The classes in their order, such as low,medium,high. Mistakes then count by how many steps they are off, answers
        are medians of the probabilities, and sets of answers are neighbours. By default classes have no order.
    label_tree : FILE|paths
        A tree above the classes: a text file of nodes and parents, or paths for labels such as cell/T/CD4. The file has
        a line for each node: the node and its parent with a tab between. Reports have the accuracy on each level, and
        chimap predict --level answers nodes.
    alpha : S
        How strongly to smooth; auto chooses, a larger number smooths more. It is the strength of the penalty alpha/2
        |w|^2 on the weights.
    bin_weights : RULE
        Whether columns may matter more or less than others: learn, auto or none. learn finds how much each should and
        keeps that if it helps on held-out rows; auto does so with --kernel auto only.
    test_fraction : F, common
        Share of rows to keep apart for an honest score, such as 0.2.
    memory : SIZE, common
        Most memory to use, such as 512MiB. It includes the libraries. auto is 1GiB, and more where the model that won
        needs it, up to half of what is free.
    precision
        Precision of the numbers that rows are turned into. auto is float32. Sums are always float64.
    depth_robust
        For counts: learn answers that would be the same for samples with fewer counts. Two thinned copies of each row
        are learned from too.
    device : DEVICE
        Where to compute: cpu, or cuda for a graphics card (needs torch).
    engine
        Where to read the rows: on this computer (local) or on Dask workers (dask).
    blocks : SPEC
        Groups of columns that are of different kinds, such as sift=0:300,hog=hog_*. Each block is normalised for
        itself, and --kernel may be a list with one kernel for each, such as 2*minmax,minmax: the first counts twice.
    principal : N
        Keep this many principal components of each block. They are found by reading the rows once more. Of several,
        such as 500,1000,3000, the best by cross-validation is taken. The default is to keep all.
    folds : K
        Choose --alpha by cross-validation with this many parts. By default it is chosen by leaving out rows one by one,
        by a formula.
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
