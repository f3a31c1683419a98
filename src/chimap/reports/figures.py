"""Figures as SVG for a page: one unit per pixel, text as text, the page's colours.

Every colour of the palette is written as ``var(--name, #hex)``: a page may redefine it, for example in dark mode, and
a program that shows only the SVG uses the light colours.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from chimap._formatting import number, one_line, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


# Blue and orange are distinguishable with every common colour blindness (Okabe and Ito, Color Universal Design).
PALETTE = {
    "ink": "#1b2430",
    "muted": "#5a6675",
    "rule": "#d6dce4",
    "good": "#1f77b8",
    "bad": "#bb5009",
    "on-shade": "#0b1118",
    # colours of lines in one figure, ordered so that the first few are the easiest to distinguish (after Okabe and Ito)
    "line-1": "#0072b2",
    "line-2": "#d55e01",
    "line-3": "#009e74",
    "line-4": "#b0568c",
    "line-5": "#946c00",
    "line-6": "#3b4cc0",
    "line-7": "#7a7a7a",
    "line-8": "#a01c3c",
}
INK, MUTED, RULE, GOOD, BAD, ON_SHADE, *LINES = PALETTE.values()
# Shades are drawn with opacity over the page, so that the same image suits light and dark pages.
GOOD_SHADE, BAD_SHADE = (0.17, 0.56, 0.85), (0.91, 0.46, 0.13)

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "chimap",
    "text.parse_math": False,  # a class may be called "$x"
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.labelpad": 8,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 6,
    "xtick.minor.size": 0,
    "legend.frameon": False,
}
_UNITS_PER_INCH = 72  # matplotlib writes SVG in points


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the report's style, regardless of the user's matplotlib settings."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return a figure whose axes have width x height pixels; labels are placed outside and enlarge the SVG."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / _UNITS_PER_INCH, height / _UNITS_PER_INCH), dpi=_UNITS_PER_INCH)


@contextmanager
def drawing(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure of the report's style and its axes of width x height pixels."""
    with house_style():
        figure = new_figure(width, height)
        yield figure, figure.add_axes((0, 0, 1, 1))


def to_svg(figure: Figure, name: str, alt: str) -> str:
    """Return the figure as an ``<svg>`` element for a page.

    Parameters
    ----------
    figure : Figure
        The figure.
    name : str
        Lower-case prefix of all ids in the SVG, so that several figures can share a page.
    alt : str
        Text alternative for readers who cannot see the figure.
    """
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The browser has the glyphs of names in other scripts; matplotlib only has to estimate their width.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", bbox_inches="tight", pad_inches=0.04, metadata=no_metadata)
    root = ElementTree.fromstring(buffer.getvalue())
    _drop(root, {"metadata", "style"})
    _plain_names(root)
    _prefix_ids(root, name)
    _page_colours(root)
    _finish_root(root, alt)
    return ElementTree.tostring(root, encoding="unicode")


def _drop(root: ElementTree.Element, tags: set[str]) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in tags:
                parent.remove(child)


def _plain_names(root: ElementTree.Element) -> None:
    """Remove the namespaces of elements and attributes, as HTML requires."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key in list(element.attrib):
            element.attrib[key.rpartition("}")[2]] = element.attrib.pop(key)


_REFERENCE = re.compile(r"url\(#([^)]+)\)|^#(.+)$")


def _prefix_ids(root: ElementTree.Element, name: str) -> None:
    """Keep only the ids that are referenced, prefixed by the figure's name."""
    values = [value for element in root.iter() for key, value in element.attrib.items() if key != "id"]
    used = {a or b for value in values for a, b in _REFERENCE.findall(value)}
    for element in root.iter():
        if element.attrib.get("id") in used:
            element.attrib["id"] = f"{name}-{element.attrib['id']}"
        else:
            element.attrib.pop("id", None)
        for key, value in element.attrib.items():
            if key != "id" and "#" in value:
                value = re.sub(r"url\(#", f"url(#{name}-", value)
                element.attrib[key] = re.sub(r"^#", f"#{name}-", value) if key == "href" else value


def _page_colours(root: ElementTree.Element) -> None:
    variables = {value: f"var(--{key}, {value})" for key, value in PALETTE.items()}
    any_colour = re.compile("|".join(variables))
    for element in root.iter():
        if "style" in element.attrib:
            element.attrib["style"] = any_colour.sub(lambda m: variables[m[0]], element.attrib["style"])


def _finish_root(root: ElementTree.Element, alt: str) -> None:
    width, height = (float(v) for v in root.attrib["viewBox"].split()[2:])
    root.attrib.pop("version", None)
    root.attrib.update(
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "role": "img",
            "aria-label": alt,
            "style": f"--natural: {width:.0f}px; stroke-linejoin: round; stroke-linecap: butt",
        }
    )


def log_axis(axis: Axis, low: float, high: float) -> None:
    """Label at most seven powers of ten, or plain numbers at 1, 2 and 5 within less than two decades."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    first, last = int(np.ceil(np.log10(low))), int(np.floor(np.log10(high)))
    if last - first >= 2:
        exponents = range(first, last + 1, (last - first) // 7 + 1)
        ticks, labels = [10.0**e for e in exponents], [power_of_ten(e) for e in exponents]
    else:
        candidates = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
        ticks = [t for t in candidates if low <= t <= high]
        labels = [number(t) for t in ticks]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())


LONGEST_NAME = 30  # largest number of characters of a name next to its bar
MARKERS = "osD^vPX*"

CURVE_SIZE = (380, 250)
FEWEST_POINTS = 3  # of a curve: fewer are told by a sentence or a table


def at_most_one(axes: Axes) -> None:
    """End the axis of scores that are at most 1 there, with room for half a marker."""
    low, high = axes.get_ylim()
    if low < 1 < high:
        axes.set_ylim(low, 1 + 0.02 * (1 - low))


_LONGEST_LABEL = 30  # longest label, in characters, for a legend of two columns


def legend_below(axes: Axes) -> None:
    """Place the legend below the axes, in two columns if there are many short names."""
    labels = axes.get_legend_handles_labels()[1]
    is_long = len(labels) > 6 and max(map(len, labels)) <= _LONGEST_LABEL
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.2),
        borderaxespad=0,
        fontsize=11.5,
        handlelength=2.2,
        labelspacing=0.45,
        ncols=2 if is_long else 1,
    )


def write_beside(
    axes: Axes, place: float | np.integer, value: float, text: str, colour: str = INK, gap: int = 6
) -> None:
    """Write a text beside the end of a horizontal bar: to the right, or for a negative gap to the left."""
    axes.annotate(
        text,
        (value, place),
        xytext=(gap, 0),
        textcoords="offset points",
        va="center",
        ha="left" if gap > 0 else "right",
        color=colour,
    )


def horizontal_bars(
    axes: Axes,
    names: Sequence[object],
    values: np.ndarray,
    texts: Sequence[str],
    *,
    height: float = 0.62,
    room: float = 1.0,
    longest: int = 28,
    colours: str | Sequence[str] = GOOD,
) -> None:
    """Draw non-negative values as named bars, the first on top, with room for a text beside each."""
    places = np.arange(len(names))
    axes.barh(places, values, height=height, color=colours)
    largest = max(float(values.max(initial=0.0)), 1e-300)
    axes.set(xlim=(0, largest * room), ylim=(len(names) - 0.5, -0.5), xticks=[])
    axes.set_yticks(places, [one_line(name, longest) for name in names])
    axes.spines["bottom"].set_visible(False)
    for place, value, text in zip(places, values, texts, strict=True):
        write_beside(axes, place, float(value), text, INK if value > 0 else MUTED)
