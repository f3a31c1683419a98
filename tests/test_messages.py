"""Messages keep their parameters apart from their text, and every message that names one does."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import string
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import chimap
from chimap._messages import Message, Parameter, Setting, text_of
from chimap._validation import DataError, ParameterError
from chimap.cli.commands import flags
from chimap.cli.messages import flag_of
from chimap.images import ImageHistograms

PACKAGE = Path(chimap.__file__).parent
MADE_BY_COMMANDS = (
    chimap.HistogramClassifier,
    chimap.HistogramRegressor,
    chimap.FourierKernelLearner,
    chimap.FourierKernelRegressor,
    chimap.MultipleKernelLearner,
    chimap.MultipleKernelRegressor,
    ImageHistograms,
)


class InBrackets:
    """A spelling that shows what is a parameter."""

    def parameter(self, name: str) -> str:
        return f"<{name}>"

    def setting(self, name: str, value: object, shown: str) -> str:
        return f"<{name} is {value}>"


@pytest.mark.parametrize(
    ("message", "python", "spelt"),
    [
        (Message("no parameter"), "no parameter", "no parameter"),
        (Message("{n_terms} of {}", 3), "n_terms of 3", "<n_terms> of 3"),
        (Message("{loss='hinge'}"), "loss='hinge'", "<loss is hinge>"),
        (Message("{tol=1e-5}, {loss=None}"), "tol=1e-5, loss=None", "<tol is 1e-05>, <loss is None>"),
        (Message("{loss=}: {!r}", "hinge", "x"), "loss='hinge': 'x'", "<loss is hinge>: 'x'"),
        (Message("{alpha=:.2g} {:,}", 1 / 3, 2000), "alpha=0.33 2,000", f"<alpha is {1 / 3}> 2,000"),
        (Message("{memory=!s}", "1 MiB"), "memory=1 MiB", "<memory is 1 MiB>"),
        (Message("{{}} {}", "{n_terms}"), "{} {n_terms}", "{} {n_terms}"),
        (Message("a {}", Message("b {n_terms}")), "a b n_terms", "a b <n_terms>"),
        (Message("a {}", ValueError(Message("{n_terms}"))), "a n_terms", "a <n_terms>"),
        (Message("a {}", ValueError("{n_terms}")), "a {n_terms}", "a {n_terms}"),
        (Message("{} {}", Parameter("x"), Setting("y", "z")), "x y='z'", "<x> <y is z>"),
    ],
)
def test_a_message_in_two_spellings(message, python, spelt):
    assert (str(message), f"{message}", repr(message)) == (python, python, repr(python))
    assert message.text(InBrackets()) == spelt
    assert pickle.loads(pickle.dumps(message)).text(InBrackets()) == spelt


@pytest.mark.parametrize("values", [(), (1, 2)])
def test_fields_and_values_are_as_many(values):
    with pytest.raises((TypeError, StopIteration)):
        Message("{loss=}", *values)


@pytest.mark.parametrize("kind", [ValueError, DataError, ImportError, UserWarning])
def test_exceptions_and_warnings_carry_messages(kind):
    error = kind(Message("{n_terms} of {}", "a.csv"))
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert str(same) == "n_terms of a.csv"
        assert text_of(same, InBrackets()) == "<n_terms> of a.csv"


def test_a_warning_with_a_message_is_filtered_by_its_text():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "alpha=0.5 is small")
        for alpha in (0.5, 0.25):
            warnings.warn(Message("{alpha=} is small", alpha), UserWarning, stacklevel=1)
    assert [text_of(warning.message, InBrackets()) for warning in caught] == ["<alpha is 0.25> is small"]


def test_a_parameter_among_other_words():
    error = ParameterError(Message("each of {alpha}"), -1, "a positive number")
    assert str(error) == "each of alpha must be a positive number; got -1."
    assert text_of(error, InBrackets()) == "each of <alpha> must be a positive number; got -1."


# --- the law


@cache
def flagged() -> tuple[str, ...]:
    """The parameters of the models of the command line that have a flag."""
    names = {name for model in MADE_BY_COMMANDS for name in inspect.signature(model).parameters}
    return tuple(sorted(name for name in names | {"engine"} if flag_of(name) in flags()))


@cache
def named() -> re.Pattern[str]:
    """A parameter as texts name it: with a value, as what must be otherwise, or by a name that is no word."""
    every = "|".join(flagged())
    no_words = "|".join(name for name in flagged() if "_" in name)
    return re.compile(rf"(?<![\w.\-/(])(?:(?:{every})=|(?:{no_words})\b)|^(?:each of )?(?:{every})(?: must\b| \(|$)")


@cache
def syntax(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@pytest.fixture(scope="module", autouse=True)
def _forget_syntax():
    yield
    syntax.cache_clear()


def told(file: Path) -> Iterator[ast.AST]:
    """What a file raises, warns with, or gives to checks, which raise."""
    for node in ast.walk(syntax(file)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield node.exc
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "warn" or name.startswith("check_") or name.endswith(("Error", "Warning")):
                yield node


def plain_texts(node: ast.AST) -> Iterator[str]:
    """The texts in a piece of syntax that are neither docstrings nor templates of messages."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Message":
        for value in node.args[1:]:
            yield from plain_texts(value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from plain_texts(child)


def files() -> list[Path]:
    return [file for file in sorted(PACKAGE.rglob("*.py")) if "cli" not in file.relative_to(PACKAGE).parts]


# the memory of a Pipeline, which scikit-learn names so, and weights of neighbours and of kernels, which no flag sets
OF_OTHERS = (
    "cannot save {}: a pipeline with memory= keeps a cache. Set memory=None.",
    "codes name finitely many features, but n_neighbors={} weighted by distance has a continuum of them. Use "
    "n_neighbors=1 or weights='uniform'.",
    "weights must hold one number for each of the {} kernels; got {}.",
    "each of weights (a negative weight makes a sum that is no kernel)",
)


def test_no_plain_text_names_a_parameter_that_has_a_flag():
    assert {"loss", "n_components", "selection", "n_words", "width_strength", "device"} <= {*flagged()}
    wrong = {
        f"{file.relative_to(PACKAGE)}: {text}"
        for file in files()
        for node in told(file)
        for text in plain_texts(node)
        if not text.isidentifier() and named().search(text) and text not in OF_OTHERS
    }
    assert not wrong, "name these parameters in fields of a Message:\n" + "\n".join(sorted(wrong))


def test_no_text_that_messages_are_made_of_sets_a_parameter_that_has_a_flag():
    """Remedies and reasons, which stand outside the exceptions that take them."""
    setting = re.compile(rf"(?<![\w.\-/(])(?:{'|'.join(flagged())})=(?:'|None\b|\{{\}})")
    wrong = {
        f"{file.relative_to(PACKAGE)}: {text}"
        for file in files()
        for text in plain_texts(syntax(file))
        if setting.search(text) and text not in OF_OTHERS
    }
    assert not wrong, "set these parameters in fields of a Message:\n" + "\n".join(sorted(wrong))


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("loss='hinge' keeps rows", True),
        ("use fewer n_components", True),
        ("device must be cpu", True),
        ("each of alpha must be positive", True),
        ("each of alpha", True),
        ("gamma (of the exponential kernel)", True),
        ("the device must be there", False),
        ("such as OptimalMap(n_terms=2)", False),
        ("{}.n_terms is missing", False),
    ],
)
def test_how_a_plain_text_names_a_parameter(text, is_named):
    assert bool(named().search(text)) == is_named


def every_text(file: Path) -> Iterator[str]:
    """The texts in a file that are no docstrings, templates of messages among them."""
    nodes = [*ast.walk(syntax(file))]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_no_text_outside_of_the_command_line_holds_a_flag():
    flag = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(flags()))})(?![\w-])")
    wrong = {str(file): found for file in files() if (found := [*filter(flag.search, every_text(file))])}
    assert not wrong, "name these parameters in fields of a Message, which Python users read without flags"


def templates() -> Iterator[tuple[str, ast.Call]]:
    """The call of every message in the package, with its place."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(syntax(file)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Message":
                yield f"{file.relative_to(PACKAGE)}:{node.lineno}", node


def parameters_of_the_package() -> set[str]:
    """Names of all parameters, and fields of dataclasses, in the source."""
    nodes = [node for file in files() for node in ast.walk(syntax(file))]
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return arguments | {ast.unparse(node.target) for node in nodes if isinstance(node, ast.AnnAssign)}


def test_templates_are_literal_and_have_a_value_for_each_field():
    """A template in which values were already filled in would read the braces of a file name as a field."""
    parameters = parameters_of_the_package()
    n_messages = 0
    for place, call in templates():
        n_messages += 1
        assert isinstance(call.args[0], ast.Constant), f"{place}: give the template as it is, and values apart"
        fields = [field for _, field, _, _ in string.Formatter().parse(call.args[0].value) if field is not None]
        wanted = [field for field in fields if not field or field.endswith("=")]
        assert len(wanted) == len(call.args) - 1, f"{place}: {len(wanted)} fields, {len(call.args) - 1} values"
        names = {field.partition("=")[0] for field in fields if field}
        assert names <= parameters, f"{place}: no parameter is called {names - parameters}"
    assert n_messages > 100
