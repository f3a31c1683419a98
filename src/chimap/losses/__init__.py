"""Loss functions. An objective is the sum of a loss over the rows (and targets) plus a penalty on the weights."""

from chimap.losses.base import Loss, check_loss
from chimap.losses.epsilon_insensitive import EpsilonInsensitive
from chimap.losses.logistic import Logistic
from chimap.losses.observed import Observed, ObservedCurvature
from chimap.losses.poisson import Poisson
from chimap.losses.quantile import Quantile
from chimap.losses.smooth_hinge import SmoothHinge
from chimap.losses.square import Square
from chimap.losses.squared_hinge import SquaredHinge
from chimap.losses.sums import FeatureRows, LossAt, LossSums

CATALOGUE: dict[str, type[Loss]] = {
    "square": Square,
    "logistic": Logistic,
    "squared_hinge": SquaredHinge,
    "smooth_hinge": SmoothHinge,
    "epsilon_insensitive": EpsilonInsensitive,
    "poisson": Poisson,
    "quantile": Quantile,
}
"""Loss classes by name."""

OF_CLASSES = ("square", *(name for name, loss in CATALOGUE.items() if loss.domain == "sign"), "hinge")
"""Names of the losses that classifiers take."""

OF_TARGETS = tuple(name for name, loss in CATALOGUE.items() if loss.domain != "sign")
"""Names of the losses that regressors take."""

__all__ = [
    "CATALOGUE",
    "OF_CLASSES",
    "OF_TARGETS",
    "EpsilonInsensitive",
    "FeatureRows",
    "Logistic",
    "Loss",
    "LossAt",
    "LossSums",
    "Observed",
    "ObservedCurvature",
    "Poisson",
    "Quantile",
    "SmoothHinge",
    "Square",
    "SquaredHinge",
    "check_loss",
]


def named(name: str, spread: float) -> Loss:
    """Return the loss with the given name, with widths in units of ``spread``, the targets' standard deviation."""
    if name == EpsilonInsensitive.name:
        usual = EpsilonInsensitive()
        return EpsilonInsensitive(usual.epsilon * spread, usual.sharpness / spread)
    return CATALOGUE[name]()
