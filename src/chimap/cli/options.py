"""Options that several commands share: their texts, and the bundles of the columns of DATA."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypeAlias

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

SHARED: dict[str, tuple[str | None, str]] = {
    "data": (
        None,
        "A table of counts: .csv, .tsv, .npz (X and y, CSR parts, or FILE.npz::MEMBER), .npy, .parquet (file or "
        "folder), .feather, .jsonl, .h5ad, .biom, .qza, .zarr, .h5, .mtx or svmlight text, at a path or an address "
        "such as s3://BUCKET/FILE. DATA of fit, predict and evaluate may also be images, as for 'chimap features'.",
    ),
    "model": (None, "A model file written by 'chimap fit' or 'chimap learn-kernel'."),
    "labels": (
        "LABELS",
        "The labels: the name of a column or array of DATA, a file (.npy, .csv, or text with one label per line), "
        "FILE::COLUMN, or ::MEMBER of DATA.",
    ),
    "output": ("MODEL", "Model file to write."),
    "task": (
        None,
        "Whether to fit a classifier or a regression. auto takes text as classes, and whole numbers too if there are "
        "at most 20 different ones (up to 1000 with ten rows each) and each occurs twice on average. Other numbers are "
        "a regression; regress reads text as numbers.",
    ),
    "class_weight": (
        "WEIGHTS",
        "Weights of the classes: balanced, so that each has the same total weight, or a list such as "
        "active=5,inactive=1.",
    ),
    "positive": (
        "CLASS",
        "The positive one of two classes: that of --threshold, of --scoring f1, precision, recall or "
        "average_precision, and of the scores that are shown. By default the second in alphabetical order.",
    ),
    "time_limit": (
        "TIME",
        "Time limit of race and fit together: 10m, 90s, 1h30m, or a number of seconds. The best machine so far is "
        "kept. By default, work is counted instead of time, so that every computer makes the same choice.",
    ),
    "normalize": (None, "Divide each row, or each of its blocks, by its sum."),
    "normalization": (
        "NAME",
        "Normalisation of the rows: l1 (same as --normalize), log1p or sqrt of every bin, log-cpm or log-cp10k (logs "
        "of shares), log-z (logs standardised in each row), presence, tf-idf, tf-idf-ratio (words weighted by their "
        "labels), or none. The best of several, such as none,log-cpm, wins a race.",
    ),
    "scoring": (
        "NAME",
        "Scorer that decides on held-out rows: any of scikit-learn, such as roc_auc or balanced_accuracy. The default "
        "is accuracy, ROC AUC if one of two classes is rare, and R² for regressions.",
    ),
    "part": ("NAME", "Part of a split image data set to use, such as train."),
    "jobs": ("N", "Number of threads; all cores by default."),
    "seed": ("N", "Random seed; the same seed gives the same result."),
    "overwrite": (None, "Replace existing files."),
    "json": (None, "Print one JSON object instead of text."),
    "config_file": ("FILE", "Read options from a TOML file; flags take precedence. A line is written kernel = 'chi2'."),
    "save_config": ("FILE", "Write the options of this command to a file for --config."),
}
"""What ``--help`` calls the value of an option, and its text, where no docstring describes the option."""


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
        Table with the covariates, joined by id. By default they are columns of DATA.
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
        How many neighbours --text counts together: 1,2 counts words and pairs of neighbours, 3 triples only; auto
        counts pairs of words where texts that are left out are predicted better with them. By default 1 for words, 1,2
        for characters and 1,3 for symbols.
    min_count : N
        In how many texts a word of --text, or in how many molecules a substructure of --smiles that is not hashed, must
        be to be counted.
    fingerprint : NAME
        What --smiles counts: blocks, morgan, morgan-keys, atom-pairs or torsions. blocks counts neighbourhoods of
        atoms, atom pairs and torsions side by side, each with a bin of its own (see --min-count), and so does
        morgan-keys with neighbourhoods alone; the others are hashed into bins.
    salts : NAME
        Of a molecule of several fragments, such as a salt: keep all, or count the largest.
    morgan_radius : N
        Radius of Morgan's neighbourhoods, in bonds: by default 3 for blocks, and 2 for others.
    morgan_size : N
        Number of bins of the --smiles fingerprints, if they are hashed.
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
