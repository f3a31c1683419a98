"""Options that several commands share: their texts, and the bundles of the columns of DATA."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from chimap._errors import InputError

if TYPE_CHECKING:
    from chimap._types import JSON
    from chimap.data.reading import Reading

TaskName: TypeAlias = Literal["auto", "classify", "regress"]
"""Whether the labels are classes or numbers."""
Precision: TypeAlias = Literal["auto", "float32", "float64"]
"""A name of ``recipe.recipe.PRECISIONS``."""
Engine: TypeAlias = Literal["local", "dask"]
"""A name of ``engines.ENGINES``."""
Tokens: TypeAlias = Literal["words", "characters", "symbols"]
"""A name of ``readers.words.TOKENS``."""
Fingerprint: TypeAlias = Literal["blocks", "morgan", "morgan-keys", "atom-pairs", "torsions"]
"""A name of ``readers.molecules.FINGERPRINTS``."""
KEYS = ("blocks", "morgan-keys")
"""Fingerprints that are not hashed."""
Salts: TypeAlias = Literal["keep", "largest"]
"""A name of ``readers.molecules.SALTS``."""


class Description(NamedTuple):
    """What help says of an option: the name of its value, its text, and whether it is on the first screen."""

    metavar: str | None
    text: str
    is_common: bool = False


SHARED: dict[str, Description] = {
    "data": Description(
        None,
        "A table, a row for each sample: .csv, .npz, .h5ad, .biom and more. All kinds: .csv, .tsv, .npz (X and y, CSR "
        "parts, or FILE.npz::MEMBER), .npy, .parquet (file or folder), .feather, .jsonl, .h5ad, .biom, .qza, .zarr, "
        ".h5, .mtx and svmlight text, at a path or an address such as s3://BUCKET/FILE. DATA of fit, predict and "
        "evaluate may also be pictures, as for 'chimap features'.",
    ),
    "model": Description(None, "A model file, written by 'chimap fit' or 'chimap learn-kernel'."),
    "labels": Description(
        "LABELS",
        "Column to predict, or FILE::COLUMN of another table. That table is joined by the ids of the rows. A file with "
        "one label per line (.npy, .csv or text) will do too, and ::MEMBER is another array in the file of DATA. The "
        "default is a column called y or label.",
        is_common=True,
    ),
    "output": Description("MODEL", "File to write the model to."),
    "task": Description(
        None,
        "Whether to predict classes or numbers; auto looks at the labels. Text is classes, and so are whole numbers if "
        "at most 20 are different (up to 1000 with ten rows each) and each occurs twice on average. Other numbers are "
        "predicted as numbers, and regress reads text as numbers too.",
    ),
    "class_weight": Description(
        "WEIGHTS",
        "How much each class matters: balanced, or a list such as active=5,inactive=1. balanced lets a rare class "
        "count as much as a common one. By default each row counts the same.",
    ),
    "positive": Description(
        "CLASS",
        "Which of two classes is the one to find, such as ill. --threshold is about it, and so are --scoring f1, "
        "precision, recall and average_precision, and the scores that are shown. The default is the second in "
        "alphabetical order.",
    ),
    "time_limit": Description(
        "TIME",
        "Stop searching after this time, such as 10m. 90s, 1h30m and a number of seconds are times too. It is for "
        "choosing and fitting together, and the best model so far is kept. By default, work is counted instead of "
        "time, so that every computer makes the same choice.",
        is_common=True,
    ),
    "normalize": Description(
        None,
        "Use shares instead of counts (when totals mean nothing, such as sequencing depth). Each row, or each of its "
        "--blocks, is divided by its sum.",
    ),
    "normalization": Description(
        "NAME",
        "How to rescale the rows first: l1 (shares, as --normalize), log1p or sqrt of every count, log-cpm or "
        "log-cp10k (logs of shares), log-z (logs standardised in each row), presence (whether a count is above 0), "
        "tf-idf, tf-idf-ratio (words weighted by their labels), or none. Of several, such as none,log-cpm, the one "
        "that predicts held-out rows best is taken. By default --kernel auto tries those that suit the rows.",
    ),
    "scoring": Description(
        "NAME",
        "The score by which models are compared on held-out rows: any of scikit-learn, such as roc_auc or "
        "balanced_accuracy. The default is accuracy, ROC AUC if one of two classes is rare, and R² for numbers.",
    ),
    "part": Description(
        "NAME", "Which part of a data set of pictures to use, such as train. The default is all of it."
    ),
    "jobs": Description("N", "Number of processor cores to use. The default is all."),
    "seed": Description("N", "Number that random choices start from; the same number gives the same result."),
    "overwrite": Description(None, "Replace files that exist.", is_common=True),
    "json": Description(None, "Print one JSON object instead of text."),
    "config_file": Description(
        "FILE", "Read options from a TOML file with lines such as kernel = 'chi2'. Flags beside it take precedence."
    ),
    "save_config": Description("FILE", "Write the options of this command to a file for --config."),
}
"""What ``--help`` calls the value of an option, and its text, where no docstring describes the option."""


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """The roles of the columns of DATA.

    Parameters
    ----------
    id : COLUMN
        Column with the names of the rows. It is not counted; predictions carry these names, and labels of another table
        are joined on them. A column or array of DATA.
    columns : SPEC
        Columns that hold the counts: names, patterns, numbers from 0 or ranges, such as otu_*,depth or 0:300. The
        default is all that have no other role.
    exclude : SPEC
        Columns that are not counts, in the form of --columns.
    missing : VALUE
        What stands for an unknown label, such as -1, in addition to empty text and NaN; several with commas between
        them. Rows without a label are left out.
    transpose
        Take columns as samples, as tables of MetaPhlAn and featureCounts and .mtx files of genes by cells have them.
        Such tables of text are recognised; --no-transpose reads their lines as samples.
    rank : RANK
        Keep the clades of one rank, such as s__ for species; all sums the counts over the clades of every rank. For
        columns that are named k__Bacteria|p__Firmicutes|..., and for BIOM tables with a taxonomy, which are summed over
        the rank. The default is all columns as they are.
    missing_counts : zero|drop-row|refuse
        What to do about blank counts, and words such as NA: take them as zero, leave their rows out, or refuse them,
        which is the default.
    encoding : NAME
        How the text of DATA, and of tables and files of labels, is encoded, such as cp1252. The default is UTF-8, or
        UTF-16 where a file begins with its mark.
    missing_columns : zero|refuse
        What to do if DATA lacks columns that MODEL knows: take them as zero, or refuse. They are taken as zero only
        where the columns that are there hold at least 80 % of all counts of the training rows. The default is zero for
        models of counts, and refuse for others.
    groups : COLUMN, common
        Column that says what belongs together, such as patient. Rows of a group are held out together, so that the
        score is that of new patients. A column or array of DATA, or TABLE::COLUMN joined by id. It is not counted.
    split : COLUMN, common
        Column that says train or test of each row. A column or array of DATA, or TABLE::COLUMN joined by id. It is not
        counted. With --smiles, scaffold holds molecules of the same scaffold out together, as --groups does.
    sample_weight : COLUMN
        Column that says how much each row counts, 0 for not at all; --weights says in what sense. A column or array of
        DATA, or TABLE::COLUMN joined by id. It is not counted.
    covariates : COLUMNS, common
        Columns to use beside the counts: age,sex,batch. They get a kernel of their own: numbers, or text for
        categories. C(batch) is a category though it holds numbers.
    metadata : TABLE
        Table with the --covariates, joined by the ids of the rows. By default they are columns of DATA.
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


@dataclasses.dataclass(frozen=True)
class ForwardOptions:
    """Rows that are held out because they are the latest.

    Parameters
    ----------
    splits : forward
        How rows are held out: forward trains on rows before a cut in time, and scores those after it. They are the
        latest fifth, or --test-fraction; rows of one time stay together. A group of --groups is as late as its last
        row.
    time : COLUMN
        Column with the time of each row, for --splits forward: numbers, or dates such as 2024-03-09. Give a column or
        array of DATA, or TABLE::COLUMN joined by id. It is not a bin.
    """

    splits: Literal["forward"] | None = None
    time: str | None = None

    def check(self, split: str | None = None) -> None:
        """Raise InputError, naming the flag, where one flag is without the other, or --split holds out other rows."""
        check_forward(self.splits is not None, self.time)
        if self.time is not None and split is not None:
            raise InputError(f"--splits forward holds out the latest rows, and --split {split} others: leave one out.")

    def aside(self) -> list[str]:
        """Return the column of times, if there is one, for ``open_data``."""
        return [] if self.time is None else [self.time]

    def given(self) -> JSON:
        """Return the options that are set, by name."""
        return {} if self.time is None else {"splits": self.splits, "time": self.time}


def check_forward(is_forward: bool, time: str | None) -> None:
    """Raise InputError where --splits forward is without --time, or --time without it."""
    if is_forward and time is None:
        raise InputError("--splits forward needs times: name their column with --time, such as --time date.")
    if time is not None and not is_forward:
        raise InputError("--time is the column of --splits forward: add --splits forward, or leave --time out.")


@dataclasses.dataclass(frozen=True)
class CountedColumn:
    """A column of text or molecules whose words or fingerprints are counted to form the bins.

    Parameters
    ----------
    text : COLUMN, common
        Column of texts whose words are counted. For a folder of texts, it is called text. The model stores the words.
    smiles : COLUMN, common
        Column of molecules as SMILES (needs RDKit). Their parts are counted. The case of the heading does not matter.
        Molecules that RDKit refuses are left out and named.
    tokens
        What is counted in --text: words, characters or symbols. characters is for texts without blanks between words;
        symbols are all characters as they are, of sequences for example.
    ngrams : FEWEST,MOST
        How many neighbouring words (or characters) of --text are counted together: 1,2 counts single ones and pairs, 3
        triples only. auto counts pairs of words where that predicts held-out texts better. The default is 1 for words,
        1,2 for characters and 1,3 for symbols.
    min_count : N
        Leave out words that are in fewer texts than this, and parts that are in fewer molecules. Fingerprints that are
        hashed count all.
    fingerprint : NAME
        What is counted in --smiles: blocks, morgan, morgan-keys, atom-pairs or torsions. blocks counts neighbourhoods
        of atoms, atom pairs and torsions side by side, each in a column of its own (see --min-count), and so does
        morgan-keys with neighbourhoods alone; the others are hashed into columns.
    salts
        What to count of a molecule in several pieces, such as a salt: keep all, or only the largest.
    morgan_radius : N
        How far neighbourhoods of atoms reach, in bonds. The default is 3 for --fingerprint blocks, and 2 for others.
    morgan_size : N
        Number of columns into which fingerprints of --smiles are hashed.
    """

    text: str | None = None
    smiles: str | None = None
    tokens: Tokens = "words"
    ngrams: str | None = None
    min_count: int = 2
    fingerprint: Fingerprint = "blocks"
    salts: Salts = "keep"
    morgan_radius: int | None = None
    morgan_size: int = 2048

    def given(self) -> JSON:
        """Return the options that are not as by default, by name."""
        return {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    def reading(self, memory: str = "1GiB") -> Reading | None:
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
        if self.morgan_radius is not None and self.morgan_radius < 0:
            raise ParameterError("morgan_radius", self.morgan_radius, "a whole number, 0 or more")
        self._check_use()
        if self.text is not None:
            return WordCounts(
                self.text, min_count=self.min_count, tokens=self.tokens, ngrams=self._neighbours(), memory=memory
            )
        if self.smiles is None:
            return None
        from chimap.readers.molecules import fingerprint

        return fingerprint(
            self.fingerprint,
            column=self.smiles,
            salts=self.salts,
            radius=self.morgan_radius,
            size=self.morgan_size,
            min_count=self.min_count,
        )

    def _check_use(self) -> None:
        """Raise InputError for a flag that the column does not use: of texts, of molecules or of one fingerprint."""
        kind, given = self.fingerprint, self.given()
        of_texts = {"tokens": True, "ngrams": True, "min_count": self.smiles is None or kind not in KEYS}
        unused = {
            "is for texts: name their column with --text": of_texts if self.text is None else {},
            "is for molecules: name the column of their SMILES with --smiles": (
                dict.fromkeys(("fingerprint", "salts", "morgan_radius", "morgan_size"), self.smiles is None)
            ),
            f"is not used by --fingerprint {kind}: name another one": {
                "morgan_radius": not (kind.startswith("morgan") or kind in KEYS),
                "morgan_size": kind in KEYS,
            },
        }
        for remedy, flags in unused.items():
            for name, is_unused in flags.items():
                if is_unused and name in given:
                    flag = f"--{name.replace('_', '-')}"
                    raise InputError(f"{flag} {remedy}, or leave {flag} out.")

    def _neighbours(self) -> tuple[int, int] | str | None:
        """Return the fewest and the most neighbours of --ngrams, None or "auto". Raise ValueError for other text."""
        if self.ngrams is None or self.ngrams == "auto":
            return self.ngrams
        numbers = self.ngrams.split(",")
        if not all(number.strip().isdecimal() for number in numbers) or len(numbers) > 2:
            raise InputError(
                f"--ngrams must be the fewest and the most neighbours, such as 1,2, or one number, or auto; got "
                f"{self.ngrams!r}."
            )
        return int(numbers[0]), int(numbers[-1])


AS_IT_IS = TableOptions()
AT_RANDOM = ForwardOptions()
