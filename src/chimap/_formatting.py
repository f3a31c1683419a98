"""Values as JSON types, and as readers of pages and terminals see them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import JSON


NARROW_SPACE = "\u202f"  # narrow and non-breaking, between a number and its unit

_MEASURES = {
    "r2": "R²",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "d2_poisson": "D² of the Poisson deviance",
    "d2_pinball": "D² of the pinball loss",
}
_OF_ERROR = "neg_"  # begins the name of a scorer that is minus an error, so that greater is better
_PROPORTIONS = ("top_k", "f1", "precision", "recall", "jaccard", "average_precision", "roc_auc")  # besides accuracies


def plain(value: object) -> Any:
    """Convert a value to JSON types: NumPy becomes Python, NaN and infinity become None, anything else its str().

    >>> import numpy as np
    >>> plain({"rows": np.int64(3), "share": float("nan"), "bins": (1, 2)})
    {'rows': 3, 'share': None, 'bins': [1, 2]}
    """
    import numpy as np

    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def one_line(name: object, longest: int | None = None) -> str:
    """Return a name without line breaks and control characters; the middle of names above ``longest`` is elided.

    >>> one_line("a very long name of a class", longest=12)
    'a very…class'
    """
    printable = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in str(name))
    text = " ".join(printable.split())
    if longest is None or len(text) <= longest:
        return text
    head = longest // 2
    return text[:head].rstrip() + "…" + text[len(text) - (longest - head - 1) :].lstrip()


def percent(share: float, digits: int = 1) -> str:
    """Format a share: 0.9312 -> '93.1 %'; NaN gives a dash."""
    return f"{100 * share:.{digits}f}{NARROW_SPACE}%" if _is_number(share) else "–"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun, in the singular or plural.

    >>> counted(1, "width"), counted(1200, "width"), counted(2, "class")
    ('1 width', '1,200 widths', '2 classes')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def number(value: float | None, digits: int = 4, zeros: bool = False) -> str:
    """Format a number with ``digits`` significant digits; ``zeros`` keeps trailing zeros, NaN and None give a dash.

    >>> number(48.0), number(48.0, zeros=True), number(1.5e-7)
    ('48', '48.00', '1.5 × 10⁻⁷')
    """
    if not _is_number(value):
        return "–"
    text = f"{value:#.{digits}g}".rstrip(".") if zeros else f"{value:.{digits}g}"
    text = "−" + text[1:] if text.startswith("-") else text
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    mantissa = mantissa.rstrip(".")
    power = f"10{_superscript(int(exponent))}"
    return power if mantissa == "1" else f"{mantissa} × {power}"


def short(value: float | None) -> str:
    """Format an error briefly, for a table: 0.0131 -> '0.013', 8.8e-7 -> '9e-07'."""
    if not _is_number(value):
        return "–"
    return f"{value:.2g}" if value == 0 or abs(value) >= 1e-3 else f"{value:.0e}"


def power_of_ten(exponent: int) -> str:
    """Format a power of ten: -3 -> '10⁻³'."""
    return f"10{_superscript(exponent)}"


def seconds(value: float) -> str:
    """Format a time in seconds: 0.0042 -> '4.2 ms', 3.14159 -> '3.14 s', 125 -> '2 min 05 s'."""
    if value < 0.9995:
        return f"{1000 * value:.3g}{NARROW_SPACE}ms" if value >= 1e-6 else f"0{NARROW_SPACE}s"
    if value < 59.95:
        return f"{value:.3g}{NARROW_SPACE}s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes}{NARROW_SPACE}min {rest:02d}{NARROW_SPACE}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{NARROW_SPACE}h {minutes:02d}{NARROW_SPACE}min"


def microseconds(value: float) -> str:
    """Format a time per row in seconds: 2.5e-6 -> '2.5 µs', 2.16e-3 -> '2.16 ms'."""
    if value >= 0.9995e-3:
        return seconds(value)
    return f"{number(1e6 * value, 3)}{NARROW_SPACE}µs"


def measure_in_words(measure: str) -> str:
    """Return the conventional name of a score.

    >>> measure_in_words("r2"), measure_in_words("roc_auc"), measure_in_words("mean balanced_accuracy")
    ('R²', 'ROC AUC', 'mean balanced accuracy')
    >>> measure_in_words("neg_mean_absolute_error"), measure_in_words("f1 of ill")
    ('mean absolute error', 'F1 of ill')
    """
    scorer, of, named = measure.partition(" of ")
    names = (name.removeprefix(_OF_ERROR) for name in scorer.split())
    return " ".join(_MEASURES.get(name.lower(), name.replace("_", " ")) for name in names) + of + named


def is_share(measure: str) -> bool:
    """Return whether a score is a share of rows: an accuracy."""
    return measure.endswith("accuracy")


def is_error(measure: str) -> bool:
    """Return whether a score is minus an error, which readers see without the sign: "neg_log_loss"."""
    return measure.removeprefix("mean ").startswith(_OF_ERROR)


def is_proportion(measure: str) -> bool:
    """Return whether a score is from 0 to 1, as shares of rows, areas under curves and their means are."""
    return is_share(measure) or measure.removeprefix("mean ").startswith(_PROPORTIONS)


def score_in_words(value: float, measure: str) -> str:
    """Return a score as every page and terminal shows it: shares of rows in percent, others with three decimals.

    Errors have no sign, and four digits at most.

    >>> score_in_words(0.9312, "accuracy"), score_in_words(0.9312, "roc_auc"), score_in_words(-0.5, "r2")
    ('93.1 %', '0.931', '−0.500')
    >>> score_in_words(-0.5, "neg_log_loss"), score_in_words(-123.456, "neg_mean_absolute_error")
    ('0.500', '123.5')
    """
    if not _is_number(value):
        return "–"
    if is_error(measure):
        return f"{abs(value):.3f}" if abs(value) < 10 else number(abs(value), zeros=True)
    return f"{100 * value:.1f} %" if is_share(measure) else f"{value:.3f}".replace("-", "−")


def interval_in_words(interval: tuple[float, float], measure: str) -> str:
    """Return an interval of a score in the digits of ``score_in_words``.

    >>> interval_in_words((0.7573, 1.0), "accuracy"), interval_in_words((0.7573, 0.9), "r2")
    ('75.7 to 100.0 %', '0.757 to 0.900')
    >>> interval_in_words((-0.75, -0.5), "neg_log_loss")
    '0.500 to 0.750'
    """
    low, high = (score_in_words(end, measure) for end in (interval[::-1] if is_error(measure) else interval))
    return f"{low.removesuffix(' %')} to {high}"


def with_interval(score: float, interval: tuple[float, float], measure: str) -> str:
    """Return a score and its interval, which is left out where it is not known.

    >>> with_interval(0.817, (0.727, 0.883), "accuracy"), with_interval(1.0, (math.nan, math.nan), "r2")
    ('81.7 % (72.7 to 88.3 %)', '1.000')
    """
    told = score_in_words(score, measure)
    return told if math.isnan(interval[0]) else f"{told} ({interval_in_words(interval, measure)})"


def on_page(text: str) -> str:
    """Return text whose percentages do not break at the end of a line."""
    return text.replace(" %", f"{NARROW_SPACE}%")


def words(value: object) -> str:
    """Format any JSON value for a table cell."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(words(item) for item in value)
    return one_line(value)


def _superscript(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


_NEGLIGIBLE = 0.01  # share of the mean bin weight


_MOST_BINS = 5  # named in a line


def bin_weights_in_words(weights: Sequence[float] | np.ndarray | None, names: Sequence[str] | None) -> str | None:
    """Return the heaviest bins by name, and the number with negligible weight; None for equal weights.

    >>> bin_weights_in_words([0.5, 2.5, 0.001], ["red", "green", "blue"])
    'green 2.5, red 0.5, blue 0.001; 1 of 3 below 0.01'
    """
    if weights is None:
        return None
    ranked = sorted(range(len(weights)), key=lambda i: -weights[i])[:_MOST_BINS]
    named = [f"{names[i] if names is not None else f'bin {i}'} {weights[i]:.3g}" for i in ranked]
    low = sum(weight < _NEGLIGIBLE for weight in weights)
    return f"{', '.join(named)}; {low:,} of {len(weights):,} below {_NEGLIGIBLE:g}"


def kernel_in_words(name: str, gamma: float | None) -> str:
    """Return a line such as 'exp-chi2, gamma 1.93'."""
    return name if gamma is None else f"{name}, gamma {gamma:.4g}"


def covariates_in_words(about: JSON) -> str:
    """Return what covariates are and what they add, in three lines; see ``Covariates.describe``.

    >>> about = {"names": ["age"], "kernel": "linear", "weight": 0.5, "measure": "r2", "rows": 90, "counts": 0.5,
    ...          "covariates": 0.25, "both": 0.625, "counts add": 0.375, "error of counts add": 0.05,
    ...          "covariates add": 0.125, "error of covariates add": 0.03}
    >>> print(covariates_in_words(about))
    age: linear kernel, weight 0.5
    R² of 90 rows left out: counts 0.500, covariates 0.250, both 0.625
    covariates add +0.125 ± 0.030 to counts, and counts +0.375 ± 0.050 to covariates
    """
    names = ", ".join(about["names"])
    used = f"{about['kernel']} kernel, weight {about['weight']:.3g}"
    if not about["weight"]:
        used = "not used, as left-out rows are predicted no better by more than two standard errors"
    scores = ", ".join(f"{name} {about[name]:.3f}" for name in ("counts", "covariates", "both"))
    adds = [f"{about[f'{name} add']:+.3f} ± {about[f'error of {name} add']:.3f}" for name in ("covariates", "counts")]
    return (
        f"{names}: {used}\n{measure_in_words(about['measure'])} of {about['rows']:,} rows left out: {scores}\n"
        f"covariates add {adds[0]} to counts, and counts {adds[1]} to covariates"
    )


def depth_gain_in_words(gain: JSON) -> str:
    """Return what thinned copies of the rows of a fit gain, in a line; see ``Learned.depth_gain``.

    >>> depth_gain_in_words({"measure": "r2", "n_rows": 140, "thinned": [0.71, 0.74], "whole": [0.8, 0.79]})
    'R² of thinned rows 0.740 with copies, 0.710 without; of whole rows 0.790 and 0.800 (140 left-out rows)'
    """
    (thin, thin_with), (whole, whole_with) = gain["thinned"], gain["whole"]
    return (
        f"{measure_in_words(gain['measure'])} of thinned rows {thin_with:.3f} with copies, {thin:.3f} without; "
        f"of whole rows {whole_with:.3f} and {whole:.3f} ({gain['n_rows']:,} left-out rows)"
    )


def blocks_in_words(block_rows: Sequence[int] | None) -> str:
    """Return ' in 7 blocks of up to 10,000' for the rows of each block; nothing for a machine without blocks."""
    if block_rows is None or not len(block_rows):
        return ""
    return f" in {len(block_rows)} blocks of up to {max(block_rows):,}" if len(block_rows) > 1 else " in one block"


def class_weights_in_words(classes: np.ndarray | Sequence[str] | None, weights: np.ndarray | None) -> str | None:
    """Return '12.3 (active), 0.52 (inactive)' for the first five classes or tasks, or None without weights.

    >>> class_weights_in_words(["active", "inactive"], [12.3, 0.52]), class_weights_in_words(["tox"], [[0.52, 12.3]])
    ('12.3 (active), 0.52 (inactive)', '12.3 to 0.52 (tox)')
    """
    if classes is None or weights is None:
        return None
    if len(weights) and hasattr(weights[0], "__len__"):  # several tasks: weights of the labels 0 and 1 of each
        pairs = [f"{of_1:.3g} to {of_0:.3g} ({name})" for name, (of_0, of_1) in zip(classes, weights, strict=True)]
    else:
        pairs = [f"{weight:.3g} ({name})" for name, weight in zip(classes, weights, strict=True)]
    return ", ".join(pairs[:5]) + (", ..." if len(pairs) > 5 else "")


def left_out_in_words(n_left_out: int, n_unreadable: int) -> str:
    """Return how many rows of a source were left out, and why, after a semicolon; "" for none.

    >>> left_out_in_words(5, 2), left_out_in_words(0, 0)
    ('; left out: 3 without a label, 2 not readable', '')
    """
    reasons = ((n_left_out - n_unreadable, "without a label"), (n_unreadable, "not readable"))
    listed = ", ".join(f"{n:,} {reason}" for n, reason in reasons if n)
    return f"; left out: {listed}" if listed else ""
