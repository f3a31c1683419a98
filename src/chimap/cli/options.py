"""Options that several commands share, and bundles of options that a command takes as one parameter."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Callable
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import typer

from chimap._errors import InputError
from chimap.cli.declared import default, either, names

if TYPE_CHECKING:
    from chimap._types import JSON, Parameters
    from chimap.data.reading import Reading


Description: TypeAlias = "tuple[str | None, str]"  # what the help calls the value of an option, and its text


@dataclasses.dataclass(frozen=True)
class Without:
    """Annotation of a bundle parameter: the options that the command lacks, which keep their defaults."""

    names: tuple[str, ...]

    def __init__(self, *names: str):
        object.__setattr__(self, "names", names)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each bundle parameter replaced by the fields of the bundle, in order.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Size:
    ...     rows: int = 2
    ...     columns: int = 3
    >>> def area(name: str, size: Size, unit: str = "m") -> None:
    ...     print(f"{name}: {size.rows * size.columns} {unit}")
    >>> [*inspect.signature(flat(area)).parameters]
    ['name', 'rows', 'columns', 'unit']
    >>> flat(area)(name="a", rows=4, columns=5, unit="cm")
    a: 20 cm
    """
    about, described = _about(command)
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind, left_out = _bundle(hints[name])
        if kind is None:
            parameters.append(_option(name, hints[name], parameter.default, described))
            continue
        options = [option for option in _options(kind) if option.name not in left_out]
        bundles[name] = kind, [option.name for option in options]
        parameters += options

    def run(**given: object) -> None:
        filled = {
            name: kind(**{field: given.pop(field) for field in fields}) for name, (kind, fields) in bundles.items()
        }
        command(**given, **filled)

    run.__name__, run.__doc__, run.__module__ = command.__name__, about, command.__module__
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _bundle(hint: object) -> tuple[type | None, tuple[str, ...]]:
    """Return the dataclass in a parameter's annotation, or None, and the names of the options it leaves out."""
    kind, marks = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return None, ()
    return kind, tuple(name for mark in marks if isinstance(mark, Without) for name in mark.names)


@cache
def _options(kind: type) -> list[inspect.Parameter]:
    """Return an option for each field."""
    hints = get_type_hints(kind, include_extras=True)
    described: dict[str, Description] = {}
    for owner in reversed(kind.__mro__):  # a bundle may describe an option of the one that it extends anew
        described |= _about(owner)[1] if dataclasses.is_dataclass(owner) else {}
    return [_option(field.name, hints[field.name], field.default, described) for field in dataclasses.fields(kind)]


def _option(name: str, hint: Any, default: object, described: dict[str, Description]) -> inspect.Parameter:
    """Return the option of a parameter: as its annotation says, or else as its docstring does."""
    if name in described and get_origin(hint) is not Annotated:
        metavar, help = described[name]
        flags: tuple[str, ...] = ("--output", "-o") if name == "output" else ()
        if default is False:  # the flag alone, without --no-...
            flags = (f"--{name.replace('_', '-')}",)
        hint = Annotated[hint, typer.Option(*flags, metavar=metavar, help=help, show_default=default is not None)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _about(owner: object) -> tuple[str, dict[str, Description]]:
    """Return a docstring without its section of parameters, and what that says of each.

    A catalogue in braces stands for its names.

    >>> class Size:
    ...     '''How large.
    ...
    ...     Parameters
    ...     ----------
    ...     rows : N
    ...         Rows, on {engines}.
    ...     '''
    >>> _about(Size)
    ('How large.', {'rows': ('N', 'Rows, on local or dask.')})
    """
    before, _, after = (inspect.getdoc(owner) or "").partition("Parameters\n----------\n")
    section, _, rest = after.partition("\n\n")
    described: dict[str, Description] = {}
    for entry in re.split(r"\n(?=\S)", section.strip("\n")):
        head, _, help = entry.partition("\n")
        name, _, metavar = head.partition(" : ")
        listed = re.sub(r"\{(.+?)\}", lambda found: either(names(found[1])), " ".join(help.split()))
        described[name] = metavar or None, listed
    return "\n\n".join(filter(None, (before.rstrip(), rest))), described


def value(metavar: str, help: str, *flags: str) -> Any:
    """Return an option with a value, which the help calls ``metavar``, and with its default in the help."""
    return typer.Option(*flags, metavar=metavar, help=help)


def optional(metavar: str, help: str, *flags: str) -> Any:
    """Return an option with a value, and without a default that could be shown."""
    return typer.Option(*flags, metavar=metavar, help=help, show_default=False)


def output(metavar: str, help: str) -> Any:
    """Return the ``--output`` option of a command; ``help`` says what the command writes."""
    return optional(metavar, help, "--output", "-o")


_ROWS = (
    "A table of counts: .csv, .tsv, .npz (X and y, CSR parts, or FILE.npz::MEMBER), .npy, .parquet (file or folder), "
    ".feather, .jsonl, .h5ad, .biom, .qza, .zarr, .h5, .mtx or svmlight text, at a path or an address such as "
    "s3://BUCKET/FILE."
)
_OR_IMAGES = " DATA may also be images, as for 'chimap features'."
Data = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS, show_default=False)]
DataOrImages = Annotated[str, typer.Argument(metavar="DATA", help=_ROWS + _OR_IMAGES, show_default=False)]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model file written by 'chimap fit' or 'chimap learn-kernel'.", show_default=False
    ),
]
Labels = Annotated[
    str | None,
    optional(
        "LABELS",
        "The labels: the name of a column or array of DATA, a file (.npy, .csv, or text with one label per "
        "line), FILE::COLUMN, or ::MEMBER of DATA.",
    ),
]
Jobs = Annotated[int | None, optional("N", "Number of threads; all cores by default.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, value("N", "Random seed; the same seed gives the same result.")]


class TaskName(StrEnum):
    """Whether the labels are classes or numbers."""

    auto = "auto"
    classify = "classify"
    regress = "regress"


Precision = StrEnum("Precision", [(n, n) for n in names("precisions")])  # type: ignore[misc]
"""Precision of the features and their products."""
EngineChoice = StrEnum("EngineChoice", [(n, n) for n in names("engines")])  # type: ignore[misc]
"""Where the rows are read: a name of ``chimap.engines.ENGINES``."""
IN_PROCESS = EngineChoice("local")


Output = Annotated[Path, output("MODEL", "Model file to write.")]
ClassWeight = Annotated[
    str | None,
    optional(
        "WEIGHTS",
        "Weights of the classes: balanced, so that each has the same total weight, or a list such as "
        "active=5,inactive=1.",
    ),
]
Positive = Annotated[
    str | None,
    optional(
        "CLASS",
        "The positive one of two classes: that of --threshold, of --scoring f1, precision, recall or "
        "average_precision, and of the scores that are shown. By default the second in alphabetical order.",
    ),
]
TimeLimit = Annotated[
    str | None,
    optional(
        "TIME",
        "Time limit of race and fit together: 10m, 90s, 1h30m, or a number of seconds. The best machine so far is "
        "kept. By default, work is counted "
        "instead of time, so that every computer makes the same choice.",
    ),
]
Normalize = Annotated[bool, typer.Option(help="Divide each row, or each of its blocks, by its sum.")]
Normalization = Annotated[
    str | None,
    optional(
        "NAME",
        "Normalisation of the rows: l1 (same as --normalize), log1p or sqrt of every bin, log-cpm or log-cp10k (logs "
        "of shares), presence, tf-idf, or none. The best of several, such as none,log-cpm, wins a race.",
    ),
]
Scoring = Annotated[
    str | None,
    optional(
        "NAME",
        "Scorer that decides on held-out rows: any of scikit-learn, such as roc_auc or balanced_accuracy. "
        "The default is accuracy, ROC AUC if one of two classes is rare, and R² for regressions.",
    ),
]
TASK_RULE = (
    "auto takes text as classes, and whole numbers too if there are at most 20 different ones (up to 1000 with ten "
    "rows each) and each occurs twice on average. Other numbers are a regression; regress reads text as numbers"
)
TaskOption = Annotated[TaskName, typer.Option(help=f"Whether to fit a classifier or a regression. {TASK_RULE}.")]


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """The roles of the columns of DATA.

    Parameters
    ----------
    id : COLUMN
        Column or array of DATA with the names of the rows. It is not a bin; predictions carry these names, and
        labels of another table are joined on them.
    columns : SPEC
        Columns to use as bins: names, globs, numbers or ranges, such as otu_*,depth or 0:300.
    exclude : SPEC
        Columns that are not bins, in the form of --columns.
    missing : VALUE
        Value that marks a missing label, such as -1, in addition to empty text and NaN; several with commas between
        them. Rows without a label are left out.
    transpose
        Samples are the columns of a text table or of a .mtx file, as in tables of MetaPhlAn and featureCounts, and
        genes by cells. Text tables are recognised; --no-transpose reads their lines as samples.
    rank : RANK
        Keep the clades of one rank, such as s__ for species, of bins that are named k__Bacteria|p__Firmicutes|...
    missing_counts : zero|drop-row|refuse
        What to do about blank counts, and words such as NA: take them as zero, leave their rows out, or refuse them,
        which is the default.
    encoding : NAME
        Encoding of text files, such as cp1252: DATA, and tables and files of labels. By default UTF-8, or UTF-16 where
        a file begins with its mark.
    missing_columns : zero|refuse
        What to do about bins of MODEL that DATA lacks: take them as zero where the columns that are there hold at least
        80 % of the training mass, or refuse. By default, zero for models of counts.
    groups : COLUMN
        Column with the group of each row, such as the patient. Rows of a group are held out together. Give a column
        or array of DATA, or TABLE::COLUMN joined by id. It is not a bin.
    split : COLUMN
        Column whose values are train and test. Give a column or array of DATA, or TABLE::COLUMN joined by id. It is
        not a bin. With --smiles, scaffold holds molecules of the same scaffold out together, as --groups does.
    sample_weight : COLUMN
        Column with the weight of each row, 0 for none; --weights says what it is. Give a column or array of DATA,
        or TABLE::COLUMN joined by id. It is not a bin.
    covariates : COLUMNS
        Columns that stand beside the counts with a kernel of their own, such as age,sex,batch: numbers, or text for
        levels of a category. C(batch) is a category though it holds numbers. They are not bins.
    metadata : TABLE
        Table with the --covariates, joined by id. By default they are columns of DATA.
    """

    id: str | None = None
    columns: str | None = None
    exclude: str | None = None
    missing: str | None = None
    transpose: bool | None = None
    rank: str | None = None
    missing_counts: str | None = None
    encoding: str | None = None
    missing_columns: str | None = None
    groups: str | None = None
    split: str | None = None
    sample_weight: str | None = None
    covariates: str | None = None
    metadata: str | None = None

    def asides(self) -> dict[str, str | None]:
        """Return the columns of groups, parts and weights, by flag."""
        return {"--groups": self.groups, "--split": self.split, "--sample-weight": self.sample_weight}

    def splits_by_structure(self, reading: Reading | None) -> bool:
        """Return whether --split names a way to group rows by what they are, such as molecules by scaffold."""
        return reading is not None and self.split in reading.splits

    def given(self) -> JSON:
        """Return the options that are set, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


Tokens = StrEnum("Tokens", [(name, name) for name in names("tokens")])  # type: ignore[misc]
"""What is counted in a text: a name of ``TOKENS``."""
_TOKENS = Tokens(default("tokens", "WordCounts"))
Fingerprint = StrEnum("Fingerprint", [(name, name) for name in names("fingerprints")])  # type: ignore[misc]
"""What is counted in a molecule: a name of ``FINGERPRINTS``."""
_FINGERPRINT = Fingerprint(names("fingerprints")[0])
Salts = StrEnum("Salts", [(name, name) for name in names("salts")])  # type: ignore[misc]
"""What is counted of a molecule of several fragments: a name of ``SALTS``."""
_SALTS = Salts(default("salts", "MorganCounts"))


@dataclasses.dataclass(frozen=True)
class CountedColumn:
    """A column of text or molecules whose words or fingerprints are counted to form the bins.

    Parameters
    ----------
    text : COLUMN
        Column of text whose words are counted (for a folder of texts: text). The model stores the words.
    smiles : COLUMN
        Column of SMILES, whatever the case of its heading, whose fingerprints are counted (needs RDKit). Molecules that
        RDKit refuses are left out and named.
    tokens : TOKENS
        What --text counts: words; characters, for texts without blanks between words; or symbols, which are all
        characters as they are, of SMILES or of sequences.
    ngrams : FEWEST,MOST
        How many neighbours --text counts together: 1,2 counts words and pairs of neighbours, 3 triples only. By
        default 1 for words, 1,2 for characters and 1,3 for symbols.
    min_count : N
        In how many texts a word of --text, or in how many molecules a key of --fingerprint morgan-keys, must be to be
        counted.
    fingerprint : NAME
        What --smiles counts: {fingerprints}. Morgan's neighbourhoods are hashed into bins, unless morgan-keys gives
        each a bin of its own, see --min-count.
    salts : NAME
        Of a molecule of several fragments, such as a salt: keep all, or count the largest.
    morgan_radius : N
        Radius of Morgan's neighbourhoods, in bonds.
    morgan_size : N
        Number of bins of the --smiles fingerprints, if they are hashed.
    """

    text: str | None = None
    smiles: str | None = None
    tokens: Tokens = _TOKENS
    ngrams: str | None = None
    min_count: int = default("min_count", "WordCounts")
    fingerprint: Fingerprint = _FINGERPRINT
    salts: Salts = _SALTS
    morgan_radius: int = default("radius", "MorganCounts")
    morgan_size: int = default("size", "MorganCounts")

    def given(self) -> JSON:
        """Return the options that are not as by default, by name."""
        return {
            field.name: getattr(value, "value", value)
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    def reading(self, memory: str = default("memory", "WordCounts")) -> Reading | None:
        """Return the reading that turns the column into rows, or None if no column is named.

        ``memory`` is the budget of the fit, in which words are counted.
        """
        from chimap._validation import ParameterError, check_positive
        from chimap.readers import WordCounts

        if self.text is not None and self.smiles is not None:
            raise InputError(
                "--text and --smiles name one column each, but only one can be read: leave one of them out."
            )
        check_positive(self.morgan_size, "morgan_size", integer=True)
        if self.morgan_radius < 0:
            raise ParameterError("morgan_radius", self.morgan_radius, "a whole number, 0 or more")
        self._check_use()
        if self.text is not None:
            return WordCounts(
                self.text, min_count=self.min_count, tokens=self.tokens.value, ngrams=self._neighbours(), memory=memory
            )
        if self.smiles is None:
            return None
        from chimap.readers.molecules import fingerprint

        return fingerprint(
            self.fingerprint.value,
            column=self.smiles,
            salts=self.salts.value,
            radius=self.morgan_radius,
            size=self.morgan_size,
            min_count=self.min_count,
        )

    def _check_use(self) -> None:
        """Raise InputError for a flag that the column does not use: of texts, of molecules or of one fingerprint."""
        kind, given = self.fingerprint.value, self.given()
        of_texts = {"tokens": True, "ngrams": True, "min_count": self.smiles is None or kind != "morgan-keys"}
        unused = {
            "is for texts: name their column with --text": of_texts if self.text is None else {},
            "is for molecules: name the column of their SMILES with --smiles": (
                dict.fromkeys(("fingerprint", "salts", "morgan_radius", "morgan_size"), self.smiles is None)
            ),
            f"is not used by --fingerprint {kind}: name another one": {
                "morgan_radius": not kind.startswith("morgan"),
                "morgan_size": kind == "morgan-keys",
            },
        }
        for remedy, flags in unused.items():
            for name, is_unused in flags.items():
                if is_unused and name in given:
                    flag = f"--{name.replace('_', '-')}"
                    raise InputError(f"{flag} {remedy}, or leave {flag} out.")

    def _neighbours(self) -> tuple[int, int] | None:
        """Return the numbers of --ngrams: the fewest and the most neighbours. Raise ValueError for other text."""
        if self.ngrams is None:
            return None
        numbers = self.ngrams.split(",")
        if not all(number.strip().isdecimal() for number in numbers) or len(numbers) > 2:
            raise InputError(
                f"--ngrams must be the fewest and the most neighbours, such as 1,2, or one number; got {self.ngrams!r}."
            )
        return int(numbers[0]), int(numbers[-1])


AS_IT_IS = TableOptions()


_NOT_KEPT = ("config_file", "save_config", "json", "overwrite", "help")


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Use the options of the file as defaults, so that flags on the command line take precedence."""
    if path is None or context.resilient_parsing:
        return path
    options = _words_of(path)
    known = {p.name: p for p in context.command.params if p.name not in _NOT_KEPT}
    unknown = [option for option in options if option not in known]
    if unknown:
        listed = ", ".join(sorted(name.replace("_", "-") for name in known if name))
        raise InputError(
            f"--config {path}: {context.command_path} has no option {unknown[0]!r}. Its options are {listed}."
        )
    context.default_map = {**(context.default_map or {}), **options}
    return path


def _words_of(path: Path) -> JSON:
    import tomllib

    from chimap._validation import DataError

    try:
        with path.open("rb") as file:
            options = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"--config {path} is not valid TOML: {error}. Write lines such as kernel = 'chi2'.") from error
    by_parameter: Parameters = {}
    for name, value in options.items():
        if isinstance(value, dict):
            raise DataError(f"--config {path}: [{name}] is a table; write options alone, such as kernel = 'chi2'.")
        by_parameter[name.replace("-", "_")] = ",".join(map(str, value)) if isinstance(value, list) else value
    return by_parameter


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_read_config,
        show_default=False,
        help="Read options from a TOML file; flags take precedence. A line is written kernel = 'chi2'.",
    ),
]
SaveConfig = Annotated[
    Path | None, optional("FILE", "Write the options of this command to a file for --config.", "--save-config")
]


def save_config(context: typer.Context, path: Path | None) -> None:
    """Write the options that differ from their defaults, under the names of their flags."""
    from chimap._files import replacing

    if path is None:
        return
    lines = [
        f"{parameter.name.replace('_', '-')} = {_toml(context.params[parameter.name])}\n"
        for parameter in context.command.params
        if parameter.name in context.params
        and parameter.name not in _NOT_KEPT
        and context.params[parameter.name] != parameter.default
    ]
    with replacing(path) as unfinished:
        unfinished.write_text(f"# {context.command_path} --config {path.name}\n{''.join(lines)}", encoding="utf-8")


def _toml(value: object) -> str:
    value = value.value if isinstance(value, Enum) else value
    return json.dumps(value if isinstance(value, bool | int | float) else str(value))
