"""``chimap features``: write the histograms of images to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap.cli import flag_values, image_rows, messages, outputs, show
from chimap.cli.image_rows import ImageSettings

if TYPE_CHECKING:
    from chimap.images import ImageHistograms


def features(
    images: str,
    *,
    output: Path,
    labels: str | None = None,
    settings: ImageSettings,
    like: Path | None = None,
    jobs: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Turn IMAGES into a table: how often each visual word occurs.

    The table has a histogram of visual words for each image, with its label and name. The words are learned from IMAGES
    and written next to the table, as FILE.words; use --like to describe new images with the same words. Rerun an
    interrupted command to resume it.

    Parameters
    ----------
    images
        A folder, tar or zip with one folder for each class; a CSV of paths and labels; or Parquet with image bytes.
    output : FILE
        File to write: .parquet or .zarr.
    like : FILE.words, common
        Describe pictures with the visual words of an earlier run. Leave out the other options for pictures.

    \b
    Examples:
      chimap features photos/ --output photos.parquet
      chimap features train.tar --descriptors sift,colour -o train.parquet
      chimap features test.tar --like train.words --output test.parquet
      chimap features list.csv --labels species --words 1000 --coding soft --output rows.zarr
    """
    from chimap.images.table import write_table, writer

    words_file = output.with_suffix(".words")
    _check(output, words_file, like, settings, overwrite, images, labels, like)
    flag_values.check_least(seed, "--seed", 0)
    writer(output)
    image_set = image_rows.open_set(images, labels, settings.part)
    histograms = _histograms(like, settings, seed, jobs)
    began = time.perf_counter()
    messages.written.append(f"{output}.parts, from which the same command resumes")
    table = write_table(image_set, histograms, output, show.progress(json), strict=settings.strict, overwrite=overwrite)
    messages.written[-1] = str(output)
    if like is None:
        table.histograms.save(words_file, overwrite=overwrite)
        messages.written.append(str(words_file))
    broken = list(table.broken.values())
    if broken:
        from chimap.images.reading.reader import broken_in_words

        image_rows.warn_of(broken_in_words(broken, len(image_set)))
    seconds = time.perf_counter() - began
    described = len(image_set) - table.n_resumed
    if json:
        show.as_json(
            {
                "command": "features",
                "output": str(output),
                "words": str(like or words_file),
                "rows": table.n_rows,
                "bins": table.histograms.n_columns,
                "broken": table.broken,
                "resumed": table.n_resumed,
                "seconds": seconds,
                "images_per_second": described / max(seconds, 1e-9),
                "output_bytes": _size(output),
                "peak_memory_bytes": show.peak_memory(),
            }
        )
        return
    before = f", {table.n_resumed:,} described earlier" if table.n_resumed else ""
    show.facts(
        f"Described {images}",
        {
            "images": f"{table.n_rows:,}{before}" + (f"; {len(broken):,} broken" if broken else ""),
            "histograms": table.histograms.describe(),
            "bins": f"{table.histograms.n_columns:,}",
            "time": f"{show.duration(seconds)}, {described / max(seconds, 1e-9):,.1f} images/s",
            "peak memory": show.size(show.peak_memory()),
            "rows": f"{output} ({show.size(_size(output))})",
            "words": f"{like or words_file}",
        },
    )
    rows = show.quoted(output)
    if like is not None:
        show.next_commands(
            "Next, evaluate a model that was fitted on rows of the same words:",
            f"chimap evaluate MODEL {rows} --output report.html",
        )
        return
    model, blocks = show.quoted(output.with_suffix(".model")), image_rows.blocks_flag(table.histograms)
    flags = " ".join(filter(None, (blocks, "--test-fraction 0.2", f"--output {model}")))
    show.next_commands("Next, fit a model:", f"chimap fit {rows} {flags}")


def _check(
    output: Path,
    words_file: Path,
    like: Path | None,
    settings: ImageSettings,
    overwrite: bool,
    *inputs: str | Path | None,
) -> None:
    """Refuse conflicting flags and unwritable paths before any work."""
    words = None if like is not None else words_file
    outputs.check_outputs({"--output": output, "the words of --output": words}, inputs, overwrite, stores=(".zarr",))
    if like is not None:
        allowed = ImageSettings(part=settings.part, strict=settings.strict)
        if settings != allowed:
            raise InputError("--like takes every image setting from FILE.words: leave the other image options out.")
        return
    settings.check()


def _histograms(like: Path | None, settings: ImageSettings, seed: int, jobs: int | None) -> ImageHistograms:
    from chimap.images import ImageHistograms

    if like is None:
        return settings.histograms(seed, jobs)
    return ImageHistograms.load(like).set_params(n_jobs=jobs)


def _size(output: Path) -> int:
    """Return the bytes of a file, or of all files of a store."""
    files = output.rglob("*") if output.is_dir() else [output]
    return sum(path.stat().st_size for path in files if path.is_file())
