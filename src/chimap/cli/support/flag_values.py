"""Values of flags: read from their text, and checked against the catalogues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support.options import Task

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import ClassWeight


def class_weight_of(text: str | None, y: np.ndarray | None = None) -> ClassWeight:
    """ "balanced", or weights by label from ``active=5,inactive=1``; labels as they are among y, where that is given.

    >>> class_weight_of("1=5,0=0.5")
    {'1': 5.0, '0': 0.5}
    """
    if text is None or text == "balanced":
        return text
    weights: dict[object, float] = {}
    labels = [] if y is None else set(y.tolist()) if y.ndim == 1 else [0, 1]  # of several tasks
    known = {str(label): label for label in labels}
    for part in text.split(","):
        label, is_there, weight = part.rpartition("=")
        try:
            value = float(weight)
        except ValueError:
            value = float("nan")
        if not (is_there and label and 0 < value < float("inf")):
            raise ValueError(
                f"--class-weight must be balanced, or labels with weights above 0, such as active=5,inactive=1; got "
                f"{part!r}."
            )
        weights[known.get(label.strip(), label.strip())] = value
    return weights


def threshold_of(text: str | None) -> float | str | None:
    """ "f1", "balanced", or the cost that the text says. Raises ValueError naming the flag."""
    if text is None or text in ("f1", "balanced"):
        return text
    try:
        return float(number_or("f1", text, "--threshold"))
    except ValueError:
        raise ValueError(
            f"--threshold must be f1, balanced, or the cost of a row that is missed, such as 10; got {text!r}."
        ) from None


def number_or(word: str, text: str, flag: str) -> float | str:
    """``word`` itself, or the positive number that the text says. Raises ValueError naming the flag.

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
        raise ValueError(f"{flag} must be {word!r} or a positive number, such as 0.5; got {text!r}.")
    return value


def gamma_of(text: str) -> float | str:
    """Of an exponential kernel: mean, auto, or a positive number. Raises ValueError naming the flag."""
    return text if text == "auto" else number_or("mean", text, "--gamma")


def check_normalization(name: str | None) -> None:
    """Refuse a name that is no normalisation."""
    from chimap.fit.rows import NORMALIZATIONS

    if name is not None and name not in NORMALIZATIONS:
        raise ValueError(f"--normalization must be one of {', '.join(NORMALIZATIONS)}; got {name!r}.")


def check_scoring(name: str | None) -> None:
    """Refuse a name that is no scorer of scikit-learn."""
    from sklearn.metrics import get_scorer_names

    if name is not None and name not in get_scorer_names():
        raise ValueError(
            f"--scoring must be a scorer of scikit-learn, such as accuracy, balanced_accuracy, roc_auc, f1 or r2; "
            f"got {name!r}."
        )


def check_kernel(kernel: str) -> None:
    """Refuse a name that the catalogue of kernels does not hold."""
    from chimap.kernels import as_kernel, names

    if kernel == "auto":
        return
    try:
        as_kernel(kernel, 1.0)
    except ValueError:
        raise ValueError(f"--kernel must be auto or one of {', '.join(names())}; got {kernel!r}.") from None


def check_map(name: str, kernel: str, flag: str = "--map") -> None:
    """Refuse a name that the catalogue of maps does not hold, and a map that does not approximate the kernel."""
    from chimap.features.additive import CATALOGUE
    from chimap.kernels import AdditiveKernel, Exponential, as_kernel

    if kernel == "auto":
        if name != "optimal":
            raise ValueError(f"{flag} is the map of a kernel that is named; give --kernel, such as chi2.")
        return
    resolved = as_kernel(kernel, 1.0)
    additive = resolved.kernel if isinstance(resolved, Exponential) else resolved
    if not isinstance(additive, AdditiveKernel):
        if name != "optimal":  # the default, which such a kernel does not use
            raise ValueError(f"{flag} is for additive kernels and their exponential forms; got {kernel!r}.")
        return
    able = [name for name, make in CATALOGUE.items() if make.takes(additive)]
    if name not in CATALOGUE:
        raise ValueError(f"{flag} must be among {', '.join(able)} (those of {additive.name}); got {name!r}.")
    if name not in able:
        raise ValueError(
            f"{flag}: {name} does not approximate {additive.name}. Maps of it: {', '.join(able)}."
        )


def blocks_of(text: str | None) -> dict[str, slice | str] | None:
    """Blocks of columns from text such as "sift=0:300,hog=hog_*": places, or names and globs.

    >>> blocks_of("sift=0:300,hog=hog_*")
    {'sift': slice(0, 300, None), 'hog': 'hog_*'}
    """
    if text is None:
        return None
    blocks: dict[str, slice | str] = {}
    for part in listed(text):
        name, _, span = part.partition("=")
        start, colon, stop = span.partition(":")
        is_span = colon != "" and (start + stop).isdigit()
        is_good = start.isdigit() and stop.isdigit() and int(start) < int(stop) if is_span else span != ""
        if not (name and is_good) or name in blocks or span.isdigit():
            raise ValueError(
                f"--blocks must be different names with columns, such as 'sift=0:300,hog=hog_*'; got {part!r}."
            )
        blocks[name] = slice(int(start), int(stop)) if is_span else span
    return blocks


def check_sampling(name: str) -> None:
    """Refuse a name that the catalogue of samplings does not hold."""
    from chimap.features.fourier.sampling import CATALOGUE

    able = ("auto", *CATALOGUE)
    if name not in able:
        raise ValueError(f"--sampling must be one of {', '.join(able)}; got {name!r}.")


def check_loss(name: str, task: Task = Task.auto) -> None:
    """Refuse a name that is no loss, or none of this task's."""
    from chimap import HistogramClassifier, HistogramRegressor

    classify, regress = HistogramClassifier._losses, HistogramRegressor._losses
    able = {Task.classify: classify, Task.regress: regress}.get(
        task, tuple(dict.fromkeys(classify + regress))
    )
    if name not in able:
        labels = "" if task is Task.auto else f" to {task.value}"
        raise ValueError(f"--loss{labels} must be one of {', '.join(able)}; got {name!r}.")


def listed(text: str) -> list[str]:
    """The words of a list with commas.

    >>> listed("optimal, direct")
    ['optimal', 'direct']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def whole_numbers(text: str, flag: str) -> list[int]:
    """The positive whole numbers of a list with commas. Raises ValueError naming the flag."""
    words = listed(text)
    if not words or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise ValueError(
            f"{flag} must be whole numbers of at least 1 with commas, such as 1,2,3; got {text!r}."
        )
    return [int(word) for word in words]


def check_least(value: int | None, flag: str, least: int = 1) -> None:
    """Refuse whole numbers below ``least``."""
    if value is not None and value < least:
        raise ValueError(f"{flag} must be a whole number of at least {least}; got {value}.")


def one_or_several(text: str | None, flag: str) -> int | list[int] | None:
    """A positive whole number, several of them with commas between, or None. Raises ValueError naming the flag."""
    if text is None:
        return None
    numbers = whole_numbers(text, flag)
    return numbers if len(numbers) > 1 else numbers[0]
