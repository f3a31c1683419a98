"""The result of kernel learning, its figures and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import is_classifier

from chimap._formatting import counted, number, one_line, percent, plain, seconds
from chimap._types import JSON, Parameters
from chimap.data import Source
from chimap.data.split import name_of_whole
from chimap.kernel_learning.estimators import MultipleKernelModel
from chimap.kernel_learning.widths import tune_components
from chimap.reports.figures import (
    BAD,
    GOOD,
    INK,
    LINES,
    MUTED,
    drawing,
    horizontal_bars,
    house_style,
    log_axis,
    new_figure,
    to_svg,
    write_beside,
)
from chimap.reports.page import Page, package_versions
from chimap.reports.section import Figure, Section, Table, folded
from chimap.reports.selection import StrengthCurve, strength_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Widths:
    """Inverse widths of a kernel before and after learning.

    Parameters
    ----------
    names : sequence of str
        Names of the r groups of columns.
    start : ndarray of shape (r,)
        Inverse widths at the start.
    found : ndarray of shape (r,)
        Learned inverse widths.
    """

    names: Sequence[str]
    start: np.ndarray
    found: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """Factor by which the kernel has become narrower in each group, (r,); below 1 it is wider."""
        return np.asarray(self.found) / np.asarray(self.start)


@dataclass(frozen=True)
class ChannelWeights:
    """Weights of the channels' kernels.

    Parameters
    ----------
    names : sequence of str
        Names of the r channels.
    weights : ndarray of shape (t, r)
        Weights, one row per output.
    outputs : sequence of str
        Names of the t outputs.
    """

    names: Sequence[str]
    weights: np.ndarray
    outputs: Sequence[str]

    @property
    def shares(self) -> np.ndarray:
        """Share of each channel in the sum of all weights, (r,)."""
        totals = np.asarray(self.weights).sum(axis=0)
        return totals / (totals.sum() or 1.0)


@dataclass(frozen=True)
class ChannelPath:
    """The regularisation path of the channels' weights.

    Parameters
    ----------
    names : sequence of str
        Names of the r channels.
    alphas : ndarray of shape (s,)
        Strengths of the penalty, descending.
    totals : ndarray of shape (s, r)
        Weight of each channel, summed over all outputs.
    errors : ndarray of shape (s,) or None
        Errors on held-out rows.
    chosen : int
        Index of the chosen strength.
    """

    names: Sequence[str]
    alphas: np.ndarray
    totals: np.ndarray
    errors: np.ndarray | None
    chosen: int


@dataclass(frozen=True)
class LearnedKernel(Page):
    """Everything that a page on kernel learning shows; parts that a method lacks are None or empty.

    Parameters
    ----------
    title : str
        Title of the page.
    method : str
        What was learned, in one sentence.
    metric : str
        Name of the score on validation rows.
    data : dict
        Facts about the rows by name.
    settings : dict
        Parameters of the model by name.
    widths : Widths or None, default=None
        Inverse widths before and after learning.
    history : sequence of dict, default=()
        One dict per iteration with "iteration", "objective", "validation_score", "validation_error", "strength" and
        "seconds".
    stopped : str or None, default=None
        Why the iteration stopped.
    channels : ChannelWeights or None, default=None
        Weights of the channels.
    path : ChannelPath or None, default=None
        Weights of the channels by strength of the penalty.
    curve : StrengthCurve or None, default=None
        Held-out error by strength of the penalty.
    score : str or None, default=None
        Score on held-out rows and score of the baseline, in words.
    stages : mapping of str to float, optional
        Seconds of each stage; by default empty.
    versions : mapping of str to str, optional
        Versions of packages by name; by default empty.
    created : datetime, optional
        Time of the result, with its time zone; by default now.
    """

    kind: ClassVar[str] = "learned kernel"

    title: str
    method: str
    metric: str
    data: JSON
    settings: JSON
    widths: Widths | None = None
    history: Sequence[JSON] = ()
    stopped: str | None = None
    channels: ChannelWeights | None = None
    path: ChannelPath | None = None
    curve: StrengthCurve | None = None
    score: str | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def of(cls, model: BaseEstimator, source: Source, *, score: str | None = None) -> LearnedKernel:
        """Return what a model has learned of its kernel.

        Parameters
        ----------
        model : FourierKernelLearner, FourierKernelRegressor, MultipleKernelLearner or MultipleKernelRegressor
            The fitted model.
        source : Source
            The rows that it learned from.
        score : str or None, default=None
            Its score on held-out rows and that of the baseline, in words.

        Returns
        -------
        LearnedKernel
        """
        has_classes = is_classifier(model)
        data = {
            "file": name_of_whole(source.name),
            "rows": source.n_rows,
            "rows learned from": model.n_rows_,
            "columns": source.n_features,
            "classes": len(model.classes_) if has_classes else None,
        }
        common: Parameters = {
            "metric": "accuracy" if has_classes else "R²",
            "data": {name: value for name, value in data.items() if value is not None},
            "settings": dict(model.training_["settings"]),
            "score": score,
            "stages": model.stage_seconds_,
            "versions": package_versions(),
            "title": f"{model.kernel_.name} on {data['file']}",
        }
        if isinstance(model, MultipleKernelModel):
            weights, path, selection = model.kernel_weights_, model.path_, model.selection_
            outputs = [str(c) for c in model.classes_] if weights.shape[0] > 1 else ["all"]
            channels = ChannelWeights(model.channels_, weights, outputs)
            errors = None if selection is None else selection.scores.mean(axis=1)
            by_strength = ChannelPath(model.channels_, path.alphas, path.weights.sum(axis=1), errors, path.chosen)
            used, kernels = int((channels.shares > 0).sum()), counted(len(channels.names), "kernel")
            method = f"Weights of {kernels}, one for each channel; {used} of them are used (l21 penalty)."
            return cls(method=method, channels=channels, path=by_strength, **common)
        n_rows = min(model.n_tune_rows or model.n_rows_, model.n_rows_)
        n_features = min(tune_components(model.n_tune_components, n_rows) or model.n_components, model.n_components)
        method = (
            f"{counted(len(model.width_names_), 'width')} of one kernel, learned on {n_rows:,} rows with "
            f"{n_features:,} random features. The weights were learned on {model.n_rows_:,} rows with "
            f"{model.n_components:,}."
        )
        return cls(
            method=method,
            widths=Widths(model.width_names_, model.start_widths_, model.widths_),
            history=model.history_,
            stopped=model.stopped_,
            curve=StrengthCurve.of(model.selection_, isinstance(model.alpha, str)),
            **common,
        )

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return facts about the rows, the settings, the times of stages, and the versions."""
        return {
            "Data": self.data,
            "Settings": {name: value for name, value in self.settings.items() if value is not None},
            "Time": {name: seconds(time) for name, time in self.stages.items()},
            "Versions": self.versions,
        }

    def as_dict(self) -> JSON:
        """Return the result as JSON types, without the widths of each iteration."""
        facts: JSON = {
            "method": self.method,
            "data": self.data,
            "settings": self.settings,
            "stopped": self.stopped,
            "history": [{k: v for k, v in step.items() if k != "widths"} for step in self.history],
            "seconds": self.stages,
        }
        if self.widths is not None:
            rows = zip(self.widths.names, self.widths.start, self.widths.found, strict=True)
            facts["widths"] = [{"name": n, "start": s, "found": f} for n, s, f in rows]
        if self.channels is not None:
            facts["channels"] = dict(zip(self.channels.names, self.channels.shares, strict=True))
        return plain(facts)


def summary(learned: LearnedKernel) -> Section:
    """Return what was learned and how well it predicts, in words."""
    said, history = [learned.method], learned.history
    if history:
        first, last = history[0], history[-1]
        said.append(
            f"The objective went from {number(first['objective'])} to {number(last['objective'])} in "
            f"{last['iteration']} iterations and {seconds(last['seconds'])}."
        )
        said += _validated(learned)
        said += [f"Reason for stopping: {learned.stopped}."] if learned.stopped else []
    if learned.score:
        said.append(f"Score on held-out rows, which took no part in the learning: {learned.score}.")
    return Section("Summary", " ".join(said))


def _validated(learned: LearnedKernel) -> list[str]:
    """Return the sentence on the first and the kept score of the validation rows, and the highest if it is another."""
    scores = [step["validation_score"] for step in learned.history]
    if scores[0] is None:
        return []
    as_text = percent if learned.metric == "accuracy" else number
    errors = [step["validation_error"] for step in learned.history]
    chosen = errors.index(min(errors))
    first, kept, highest = (as_text(score) for score in (scores[0], scores[chosen], max(scores)))
    # the kept widths minimise the error, which need not maximise the score
    other = f"; the highest {learned.metric}, {highest}, was at iteration {scores.index(max(scores))}"
    return [
        f"On the validation rows the {learned.metric} went from {first} to {kept} (iteration {chosen}, whose widths "
        f"are kept because its squared error is the smallest{other if highest != kept else ''})."
    ]


def widths(learned: LearnedKernel) -> Section | None:
    """Return how much narrower the kernel has become, as a figure."""
    found = learned.widths
    if found is None:
        return None
    return Section(
        "Learned widths",
        "A narrower kernel responds to smaller differences in these columns; a much wider one hardly uses them. The "
        "search starts at 1, where every block has the same share of the mean exponent.",
        (Figure(lambda: width_ratios(found)),),
        is_half=True,
    )


def learning(learned: LearnedKernel) -> Section | None:
    """Return objective and score by iteration."""
    history = learned.history
    if not history:
        return None
    kept = (
        "No rows were kept for validation."
        if history[0]["validation_score"] is None
        else "The validation rows are not learned from; the widths with the smallest error on them are kept."
    )
    figure = Figure(lambda: learning_curve(history, learned.metric))
    return Section("Learning curve", f"Objective and score by iteration. {kept}", (figure,), is_half=True)


def channels(learned: LearnedKernel) -> Section | None:
    """Return the share of each channel."""
    found = learned.channels
    if found is None:
        return None
    summary = "Share of each channel in the sum of the kernel weights over all outputs."
    return Section("Channel weights", summary, (Figure(lambda: channel_weights(found)),), is_half=True)


def path(learned: LearnedKernel) -> Section | None:
    """Return the weights of the channels by strength of the penalty."""
    found = learned.path
    if found is None:
        return None
    return Section(
        "Regularisation path",
        "The penalty gets weaker from left to right; at the left end no channel is used. The dashed line marks the "
        "chosen strength.",
        (Figure(lambda: channel_path(found)),),
        is_half=True,
    )


def strength(learned: LearnedKernel) -> Section | None:
    """Return the last fit by strength of the penalty."""
    curve = learned.curve
    if curve is None:
        return None
    band = " The band is one standard error." if curve.standard_errors.any() else ""
    return Section(
        "Regularisation path of the last fit",
        f"The fit with the learned widths, by strength of the penalty: {curve.measure}; {curve.method}.{band}",
        (Figure(lambda: strength_curve(curve)),),
        is_half=True,
    )


def inverse_widths(learned: LearnedKernel) -> Section | None:
    """Return the widths as a table, by descending ratio."""
    found = learned.widths
    if found is None:
        return None
    listed = zip(found.names, found.start, found.found, found.ratios, strict=True)
    rows = [
        (name, number(float(start)), number(float(end)), number(float(ratio), 3))
        for name, start, end, ratio in sorted(listed, key=lambda row: -row[3])
    ]
    return Section(
        "Inverse widths",
        "The inverse width s of each group of columns, in units of the mapped bins: s²/2 is gamma for an exponential "
        "kernel, and s is sigma for a skewed one. The groups are sorted by the factor by which the kernel became "
        "narrower.",
        tables=folded(("Columns", "Initial", "Learned", "Learned / initial"), rows, "widths"),
    )


def weights(learned: LearnedKernel) -> Section | None:
    """Return the weights of the channels for each output."""
    found = learned.channels
    if found is None:
        return None
    listed = zip(found.outputs, found.weights[:MOST_OUTPUTS], strict=False)
    rows = [(output, *(number(value, 3) for value in row)) for output, row in listed]
    return Section("Weights by output", tables=(Table(("Output", *found.names), rows),))


MOST_OUTPUTS = 40  # largest number of outputs whose weights are listed
MOST_BARS = 32  # largest number of widths that are drawn as named bars; more are drawn as lines over the columns


def width_ratios(widths: Widths) -> str:
    """Draw how much narrower or wider the kernel has become in each group of columns (logarithmic)."""
    ratios = widths.ratios
    listed = ", ".join(f"{one_line(n)} {number(r, 3)}" for n, r in zip(widths.names, ratios[:MOST_BARS], strict=False))
    alt = f"Learned over initial inverse width of {ratios.size} groups of columns: {listed}."
    with house_style():
        if ratios.size > MOST_BARS:
            return to_svg(_ratio_line(ratios), "widths", alt)
        figure = new_figure(420, 26 * ratios.size + 10)
        axes = figure.add_axes((0, 0, 1, 1))
        places = np.arange(ratios.size)
        colours = [GOOD if ratio >= 1 else BAD for ratio in ratios]
        axes.barh(places, ratios - 1, left=1, height=0.62, color=colours)
        low, high = min(ratios.min(), 0.5) / 1.5, max(ratios.max(), 2.0) * 1.5
        axes.set(xscale="log", xlim=(low, high), ylim=(ratios.size - 0.5, -0.5))
        log_axis(axes.xaxis, low, high)
        axes.axvline(1, color=INK, linewidth=0.8)
        for place, ratio in zip(places, ratios, strict=True):
            write_beside(axes, place, ratio, f"{number(ratio, 2)} ×", gap=6 if ratio >= 1 else -6)
        axes.set_yticks(places, [one_line(name, 28) for name in widths.names])
        axes.grid(axis="x")
        axes.set_xlabel("wider  ←  learned over initial inverse width  →  narrower")
        return to_svg(figure, "widths", alt)


def _ratio_line(ratios: np.ndarray) -> Drawing:
    figure = new_figure(720, 220)
    axes = figure.add_axes((0, 0, 1, 1))
    low, high = min(ratios.min(), 0.5) / 1.3, max(ratios.max(), 2.0) * 1.3
    axes.set(yscale="log", ylim=(low, high), xlim=(-0.5, ratios.size - 0.5))
    log_axis(axes.yaxis, low, high)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.vlines(np.arange(ratios.size), 1, ratios, color=np.where(ratios >= 1, GOOD, BAD), linewidth=1)
    axes.grid(axis="y")
    axes.set(xlabel="group of columns", ylabel="learned / initial inverse width")
    return figure


def learning_curve(history: Sequence[JSON], metric: str) -> str:
    """Draw the objective and the score on validation rows by iteration, one above the other."""
    iterations = [step["iteration"] for step in history]
    panels = [("objective", GOOD, "objective", [step["objective"] for step in history])]
    scores = [step["validation_score"] for step in history]
    if all(score is not None for score in scores):
        panels.append((f"validation {metric}", LINES[1], "score", scores))
    with house_style():
        figure = new_figure(400, 170 * len(panels) + 40 * (len(panels) - 1))
        height = 1 / (len(panels) + 0.24 * (len(panels) - 1))
        for place, (label, colour, _, values) in enumerate(panels):
            axes = figure.add_axes((0, 1 - height - place * 1.24 * height, 1, height))
            axes.plot(iterations, values, color=colour, linewidth=2, marker="o", markersize=4)
            axes.grid(axis="y")
            axes.set_ylabel(label)
            _few_ticks(axes, label.endswith("accuracy"))
            if place == len(panels) - 1:
                axes.set_xlabel("iteration")
        best = scores.index(max(scores)) if len(panels) > 1 else len(history) - 1
        alt = (
            f"Objective from {number(history[0]['objective'])} to {number(history[-1]['objective'])} in "
            f"{iterations[-1]} iterations; the best score is at iteration {best}."
        )
        return to_svg(figure, "learning", alt)


def _few_ticks(axes: Axes, is_share: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: percent(v) if is_share else number(v, 4)))


def channel_weights(channels: ChannelWeights) -> str:
    """Draw the share of each channel in the sum of all kernel weights as bars."""
    shares = channels.shares
    with drawing(360, 26 * shares.size + 10) as (figure, axes):
        texts = [percent(share) if share > 0 else "not used" for share in shares]
        horizontal_bars(axes, channels.names, shares, texts, room=1.2)
        listed = ", ".join(f"{one_line(n)} {percent(s)}" for n, s in zip(channels.names, shares, strict=True))
        return to_svg(figure, "channels", f"Share of each channel in the kernel weights: {listed}.")


def channel_path(path: ChannelPath) -> str:
    """Draw the weight of each channel over descending strength, starting where none is used; the choice is marked."""
    with drawing(520, 280) as (figure, axes):
        by_weight = np.argsort(-path.totals.max(axis=0), kind="stable")
        for rank, j in enumerate(by_weight):
            is_named = rank < len(LINES)
            axes.plot(
                path.alphas,
                path.totals[:, j],
                color=LINES[rank] if is_named else MUTED,
                linewidth=2 if is_named else 1,
                label=one_line(path.names[j], 24) if is_named else None,
            )
        chosen = path.alphas[path.chosen]
        axes.axvline(chosen, color=BAD, linewidth=1.2, dashes=(4, 3))
        low, high = float(path.alphas.min()), float(path.alphas.max())
        if high > low:
            axes.set(xscale="log", xlim=(high, low))
            log_axis(axes.xaxis, low, high)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1))
        axes.set(xlabel="strength of the penalty (weaker to the right)", ylabel="weight of the channel")
        alt = (
            f"Weights of {len(path.names)} channels at {path.alphas.size} strengths from {number(high)} to "
            f"{number(low)}; the chosen strength is {number(chosen)}."
        )
        return to_svg(figure, "path", alt)
