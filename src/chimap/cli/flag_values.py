"""Read the values of flags from text, and check them against the catalogues."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap.cli.options import TaskName

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import ClassWeight


def class_weight_of(text: str | None, y: np.ndarray | None = None) -> ClassWeight:
    """Return "balanced", or the weights by label from text such as ``active=5,inactive=1``.

    If ``y`` is given, labels have the type that they have in ``y``. Raise ValueError, naming the flag, for bad text.

    >>> class_weight_of("1=5,0=0.5")
    {'1': 5.0, '0': 0.5}
    """
    if text is None or text == "balanced":
        return text
    weights: dict[object, float] = {}
    labels = [] if y is None else set(y.tolist()) if y.ndim == 1 else [0, 1]  # a matrix of several tasks
    known = {str(label): label for label in labels}
    for item in text.split(","):
        label, is_there, weight = item.rpartition("=")
        try:
            value = float(weight)
        except ValueError:
            value = float("nan")
        if not (is_there and label and 0 < value < float("inf")):
            raise InputError(
                f"--class-weight must be balanced, or labels with weights above 0, such as active=5,inactive=1; got "
                f"{item!r}."
            )
        weights[known.get(label.strip(), label.strip())] = value
    return weights


def label_of(text: str | None, y: np.ndarray) -> object:
    """Return the label in the type that it has in ``y``; the text itself if no row has it, and None for None.

    >>> import numpy as np
    >>> label_of("1", np.array([0, 1])), label_of("case", np.array(["case", "control"]))
    (1, 'case')
    """
    known: dict[str, object] = {str(label): label for label in set(y.reshape(-1).tolist())}
    return None if text is None else known.get(text, text)


def threshold_of(text: str | None) -> float | str | None:
    """Return "f1", "balanced" or the cost in the text. Raise ValueError, naming the flag, for other text."""
    from chimap.selection.calibration import THRESHOLDS

    if text is None or text in THRESHOLDS:
        return text
    try:
        return float(number_or(THRESHOLDS[0], text, "--threshold"))
    except ValueError:
        raise InputError(
            f"--threshold must be {', '.join(THRESHOLDS)}, or the cost of a missed row, such as 10; got {text!r}."
        ) from None


def check_no_classes(
    class_weight: str | None, threshold: str | None, positive: str | None, ordered: str | None, label_tree: str | None
) -> None:
    """Raise ValueError, naming the flag, for a flag about classes that is given for a regression."""
    if class_weight is not None:
        raise InputError("--class-weight is for classifiers: use --sample-weight to weight the rows of a regression.")
    if ordered is not None:
        raise InputError("--ordered is for classes: a regression knows the order of its numbers. Leave it out.")
    if label_tree is not None:
        raise InputError("--label-tree is for classes: leave it out of a regression.")
    for flag, value in (("--threshold", threshold), ("--positive", positive)):
        if value is not None:
            raise InputError(f"{flag} is for classifiers with two classes: leave it out of a regression.")


def label_tree_of(text: str | None) -> str | dict[str, str] | None:
    """Return the tree of a file, or the word for labels that are paths. Raise DataError for a file that holds none."""
    from chimap.selection.label_tree import PATHS, tree_of_file

    return text if text is None or text == PATHS else tree_of_file(text)


def number_or(word: str, text: str, flag: str) -> float | str:
    """Return ``word`` itself or the positive number in the text. Raise ValueError, naming the flag, for other text.

    >>> number_or("mean", "0.5", "--gamma")
    0.5
    """
    if text == word:
        return word
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise InputError(f"{flag} must be {word!r} or a positive number, such as 0.5; got {text!r}.")
    return value


def number_of(text: str, flag: str, least: int) -> int | str:
    """Return "auto" or the whole number in the text. Raise ValueError, naming the flag, for other text.

    >>> number_of("512", "--components", 2)
    512
    """
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{flag} must be auto or a whole number of at least {least}; got {text!r}.")
    return int(text)


def check_share(value: float, flag: str) -> None:
    """Raise ValueError, naming the flag, unless the number is a share of rows that leaves some: 0 or more, below 1."""
    if not 0 <= value < 1:
        raise InputError(f"{flag} must be at least 0 and below 1; got {value:g}.")


_DURATION = re.compile(r"(?:(?P<h>[\d.]+)h)?(?:(?P<m>[\d.]+)m(?:in)?)?(?:(?P<s>[\d.]+)s?)?")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def seconds_of(text: str | None, flag: str) -> float | None:
    """Return the seconds of a duration such as "10m", "90s", "1h30m" or "600"; None stays None.

    Raise ValueError, naming the flag, for other text, and for a duration that is not above 0.

    >>> seconds_of("1h30m", "--time-limit"), seconds_of("0.5m", "--time-limit"), seconds_of("90", "--time-limit")
    (5400.0, 30.0, 90.0)
    """
    if text is None:
        return None
    found = _DURATION.fullmatch(text.strip().lower().replace(" ", ""))
    parts = {} if found is None else {unit: part for unit, part in found.groupdict().items() if part}
    try:
        seconds = sum(float(part) * _SECONDS[unit] for unit, part in parts.items())
    except ValueError:  # two dots
        seconds = 0.0
    if not seconds > 0:
        raise InputError(f"{flag} must be a time above 0, such as 10m, 90s, 1h30m or 600 (seconds); got {text!r}.")
    return seconds


def check_known(name: object, known: Iterable[str], flag: str) -> None:
    """Raise ValueError, naming the flag and what is known, for another name."""
    names = tuple(known)
    if name not in names:
        raise InputError(f"{flag} must be one of {', '.join(names)}; got {name!r}.")


def gamma_of(text: str) -> float | str:
    """Return the gamma of an exponential kernel: "mean", "auto" or a positive number. Raise ValueError for others."""
    return text if text == "auto" else number_or("mean", text, "--gamma")


def normalization_of(text: str | None) -> str | list[str | None] | None:
    """Return a normalisation, several to race among ("none" among them is None), or None.

    Raise ValueError for unknown names.
    """
    from chimap.normalizations import CATALOGUE

    if text is None:
        return None
    names = listed(text)
    for name in names:
        check_known(name, (*CATALOGUE, "none"), "--normalization")
    several = [None if name == "none" else name for name in names]
    return several if len(several) > 1 else several[0]


def check_scoring(name: str | None) -> None:
    """Raise ValueError if the name is not a scorer of scikit-learn."""
    from sklearn.metrics import get_scorer_names

    if name is not None and name not in (*get_scorer_names(), "weighted_kappa", "neg_mean_tree_distance"):
        raise InputError(
            f"--scoring must be a scorer of scikit-learn, such as accuracy, balanced_accuracy, roc_auc, f1 or r2; "
            f"got {name!r}."
        )


def check_kernel(kernel: str) -> None:
    """Raise ValueError if the catalogue of kernels does not have the name."""
    from chimap.kernels import as_kernel, names

    if kernel == "auto":
        return
    try:
        as_kernel(kernel, 1.0)
    except ValueError:
        raise InputError(
            f"--kernel must be auto or one of {', '.join(names())}, several of these joined by '+' or '*', or one "
            f"behind a weight above 0, such as 2*minmax; got {kernel!r}."
        ) from None


def check_map(name: str, kernel: str) -> None:
    """Raise ValueError if the catalogue of maps does not have the name, or if the map does not suit the kernel."""
    from chimap.features.additive import CATALOGUE
    from chimap.kernels import AdditiveKernel, as_kernel

    if name == "optimal":  # which suits every additive kernel, and others ignore it
        return
    if kernel == "auto":
        raise InputError("--map needs a named kernel: give --kernel, such as chi2.")
    resolved = as_kernel(kernel, 1.0)
    additive = resolved.inner or resolved
    if not isinstance(additive, AdditiveKernel):
        raise InputError(f"--map is for additive kernels and their exponential forms; got {kernel!r}.")
    suitable = [name for name, make in CATALOGUE.items() if make.takes(additive)]
    if name not in CATALOGUE:
        raise InputError(f"--map must be one of {', '.join(suitable)} (for {additive.name}); got {name!r}.")
    if name not in suitable:
        raise InputError(f"--map: {name} does not approximate {additive.name}. Use one of {', '.join(suitable)}.")


def blocks_of(text: str | None) -> dict[str, slice | str] | None:
    """Return blocks of columns, as slices or globs by name, from text such as "sift=0:300,hog=hog_*".

    Raise ValueError, naming the flag, for bad text.

    >>> blocks_of("sift=0:300,hog=hog_*")
    {'sift': slice(0, 300, None), 'hog': 'hog_*'}
    """
    if text is None:
        return None
    blocks: dict[str, slice | str] = {}
    for item in listed(text):
        name, _, span = item.partition("=")
        start, colon, stop = span.partition(":")
        is_span = colon != "" and (start + stop).isdigit()
        is_good = start.isdigit() and stop.isdigit() and int(start) < int(stop) if is_span else span != ""
        if not (name and is_good) or name in blocks or span.isdigit():
            raise InputError(
                f"--blocks must be different names with their columns, such as 'sift=0:300,hog=hog_*'; got {item!r}."
            )
        blocks[name] = slice(int(start), int(stop)) if is_span else span
    return blocks


def check_loss(name: str, task: TaskName = "auto") -> None:
    """Raise ValueError if the name is not a loss of this task."""
    from chimap.losses import OF_CLASSES, OF_TARGETS

    known = {"classify": OF_CLASSES, "regress": OF_TARGETS}.get(task, tuple(dict.fromkeys(OF_CLASSES + OF_TARGETS)))
    check_known(name, known, "--loss" if task == "auto" else f"--loss to {task}")


def quantile_of(text: str, loss: str) -> float | tuple[float, ...]:
    """Return a quantile, or several. Raise ValueError, naming the flag, for other text and for another loss."""
    from chimap.losses import Quantile

    try:
        levels = tuple(float(word) for word in listed(text))
        Quantile(levels)
    except ValueError:
        raise InputError(
            f"--quantile must be a number between 0 and 1, or several that ascend, such as 0.05,0.5,0.95; got {text!r}."
        ) from None
    if loss != Quantile.name and levels != (Quantile.quantile,):
        raise InputError(f"--quantile {text} is for --loss quantile; got --loss {loss}.")
    return levels if len(levels) > 1 else levels[0]


def listed(text: str) -> list[str]:
    """Return the words of a comma-separated list.

    >>> listed("optimal, direct")
    ['optimal', 'direct']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def whole_numbers(text: str, flag: str) -> list[int]:
    """Return the positive whole numbers of a comma-separated list. Raise ValueError, naming the flag, for others."""
    words = listed(text)
    if not words or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise InputError(
            f"{flag} must be whole numbers of at least 1, separated by commas, such as 1,2,3; got {text!r}."
        )
    return [int(word) for word in words]


def check_least(value: int | None, flag: str, least: int = 1) -> None:
    """Raise ValueError, naming the flag, if the number is below ``least``."""
    if value is not None and value < least:
        raise InputError(f"{flag} must be a whole number of at least {least}; got {value}.")


def one_or_several(text: str | None, flag: str) -> int | list[int] | None:
    """Return a positive whole number, a list of several, or None. Raise ValueError, naming the flag, for other text."""
    if text is None:
        return None
    numbers = whole_numbers(text, flag)
    return numbers if len(numbers) > 1 else numbers[0]
