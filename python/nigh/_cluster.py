"""Clusters records, and leaves out near-duplicates."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, get_args, overload

from . import _progress
from ._data import Data, data_of, send, wanted
from ._program import Failed, NoColumn, Pipe, execute

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Unpack

Level = Literal["similar", "identical", "exact"]
Policy = Literal["first", "longest", "newest", "shortest-url", "per-host", "root"]
SameId = Literal["equal", "first", "reject", "row"]
Verify = Literal["none", "estimate", "exact"]
Words = Literal["letters", "code", "characters", "icu"] | int
#: The columns that a call names, by what they are.
Columns = Mapping[str, str | Sequence[str] | None]

#: What documents are ordered and grouped by besides columns. Between backquotes these are names of columns, too.
_NO_COLUMNS = ("length", "words", "fetched", "url-length", "place", "host")
#: A term of an order in one text: commas within quotes, backquotes and brackets do not end it.
_TERM = re.compile(r'''(?:"(?:\\.|[^"\\])*"|`[^`]*`|\[(?:"(?:\\.|[^"\\])*"|[^\]"])*\]|[^,])+''')

#: The week of a store with one batch of data.
_WEEK = "2000-01-03"

_Rows = TypeVar("_Rows")


class _Scans(Protocol):
    """A dataset of pyarrow: it has no rows itself."""

    def scanner(self, *arguments: Any, **options: Any) -> Any: ...


@dataclass(frozen=True)
class Method:
    """How documents are compared: the fields of ``[cluster.method]``."""

    similarity: float | None
    verify: Verify | None
    preset: str | None
    words: Words | None
    shingle: int | None
    fold_case: bool

    def job(self, columns: Columns, same_id: SameId | None, canonical: str, *, max_reject_share: float | None) -> str:
        """The job of a call, as TOML. ``max_reject_share`` is the share of records that may be bad, by default that of the program."""
        tables: dict[str, Mapping[str, Any]] = {
            "read": {"same-id": same_id},
            "read.columns": columns,
            "method": {
                "similarity": self.similarity,
                "verify": self.verify,
                "preset": self.preset,
                "words": self.words,
                "shingle": self.shingle,
                "fold-case": self.fold_case or None,
            },
        }
        lines = ["[cluster]", f"canonical = {canonical}"]
        lines += [] if max_reject_share is None else [f"max-reject-share = {float(max_reject_share)}"]
        for table, fields in tables.items():
            lines.append(f"[cluster.{table}]")
            lines += [f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None]
        return "\n".join(lines) + "\n"


def cluster(
    data: object,
    *,
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    url: str | None = None,
    date: str | None = None,
    same_id: SameId | None = None,
    similarity: float | None = None,
    verify: Verify | None = None,
    preset: str | None = None,
    words: Words | None = None,
    shingle: int | None = None,
    fold_case: bool = False,
    level: Level = "similar",
    keep: Policy | str | Sequence[str] = "first",
    most: int | None = None,
    each: str | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> pyarrow.Table:
    """Clusters records, and returns a row for each document: where it is, its cluster, and whether it stays.

    ``data`` is rows in memory: of pyarrow a ``Table``, a ``RecordBatch``, a ``RecordBatchReader`` or a ``Dataset``, a frame of pandas or Polars, a dataset of
    Hugging Face, or what else has ``__arrow_c_stream__``. The columns that are read go to the program through a pipe, a batch at a time; the
    program keeps a copy of them in ``TMPDIR`` until it ends. Or ``data`` is paths, folders and globs of files as ``nigh run --input`` takes them.

    ``text``, ``id``, ``url`` and ``date`` name columns; of several with texts, such as ``text=["question", "answer"]``, the texts are joined in this order,
    with a line break between two, and one that is not there is empty. ``same_id`` says what becomes of records with one id and different texts; they are an error without it.
    ``similarity``, ``verify``, ``preset``, ``words``, ``shingle``, ``fold_case`` and the level are those of the program (``nigh help run``); without
    ``similarity`` and ``preset`` it has the numbers of Fetterly's study. The tables are kept if ``store`` names a folder for them.

    ``keep`` says which record of a cluster stays: a policy, or terms such as ``["score desc", "length desc", 'source in ["a", "b"]']``, of which
    the first decides in which two records differ. ``most`` records of a cluster stay, one if it is not given, and none of a cluster of two or
    more if it is 0; or so many of each value of the column ``each``.

    ``progress`` shows how far the run is: a bar of tqdm if that is installed, or of the notebook. Without it a bar is shown in a notebook and on a
    terminal. Ctrl-C ends the program.

    The columns: ``file`` and ``offset`` (of rows and of a Parquet file, the number of the row), ``id``, ``url``, ``doc``, ``cluster``,
    ``size`` (records of the cluster), ``rank`` (in the cluster, from 1), ``stays`` (by ``keep``). The rows are in the order of the inputs. Each
    row in memory has one, and there is no ``file``; rows that are not documents, as those without a text, have a null ``doc``.

    Raises ``NoColumn`` if a column is not there, ``WrongUse`` if another argument is wrong, ``Killed`` if a signal ended the program, and ``Failed``,
    of which these are kinds, for all else that the program says; and what a reader raises.
    """
    rows = data_of(data, is_kept=False)
    method = Method(similarity, verify, preset, words, shingle, fold_case)
    columns: Columns = {"text": text, "id": id, "url": url, "date": date}
    return _listed(data, rows, method, columns, same_id, level, keep, most, each, store, workers, progress, None)[0]


class _Options(TypedDict, total=False):
    """The arguments of ``deduplicate``, for its two kinds of results."""

    text: str | Sequence[str]
    id: str | None
    url: str | None
    date: str | None
    same_id: SameId | None
    similarity: float | None
    verify: Verify | None
    preset: str | None
    words: Words | None
    shingle: int | None
    fold_case: bool
    level: Level
    keep: Policy | str | Sequence[str]
    most: int | None
    each: str | None
    store: str | os.PathLike[str] | None
    workers: int | None
    progress: bool | None


@overload
def deduplicate(data: _Scans, **options: Unpack[_Options]) -> pyarrow.RecordBatchReader: ...


@overload
def deduplicate(data: _Rows, **options: Unpack[_Options]) -> _Rows: ...


def deduplicate(
    data: Any,
    *,
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002
    url: str | None = None,
    date: str | None = None,
    same_id: SameId | None = None,
    similarity: float | None = None,
    verify: Verify | None = None,
    preset: str | None = None,
    words: Words | None = None,
    shingle: int | None = None,
    fold_case: bool = False,
    level: Level = "similar",
    keep: Policy | str | Sequence[str] = "first",
    most: int | None = None,
    each: str | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Any:
    """The rows that stay, in their order, with all of their columns and types.

    ``data`` is rows in memory, and the arguments are those of ``nigh.cluster``. A table, a frame or a dataset gives one of the same kind, and a reader of
    batches gives a reader. A ``Dataset`` of pyarrow, which is read once more, gives a reader, and so does anything else with ``__arrow_c_stream__``.
    What can be read only once waits in a temporary file, until the reader of what stays is gone. A streamed dataset of Hugging Face is read
    once more, too, and what stays of it is one shard.

    What is read once more must have the same rows in the same order. ``Failed`` is raised where it is read if the size or the time of a local file of a
    ``Dataset`` of pyarrow changed, or, at the end, if the number of rows did; other changes are not noticed.

    Rows that are not documents do not stay, as ``nigh export`` does not write them: those without a text, those with an id and a text of a row
    before, and those whose id is not a text or a whole number. A warning counts them by these reasons.

    Raises what ``nigh.cluster`` raises, and ``TypeError`` for files: ``nigh.cluster(files, store=...)`` and ``nigh.open(...).export(...)`` write files.
    """
    rows = data_of(data, is_kept=True)
    if rows is None:
        raise TypeError(
            f"{type(data).__name__} has no rows in memory: give a table, a frame, a dataset or a reader of batches. "
            "For files, nigh.cluster(files, store=STORE) and nigh.open(STORE).export(FOLDER) write files without duplicates"
        )
    method = Method(similarity, verify, preset, words, shingle, fold_case)
    columns: Columns = {"text": text, "id": id, "url": url, "date": date}
    try:
        found, rejects = _listed(data, rows, method, columns, same_id, level, keep, most, each, store, workers, progress, ["stays"])
    except BaseException:
        rows.close()
        raise
    stays = found["stays"].combine_chunks()
    if stays.null_count:
        reasons = {reason.removeprefix("arrow: "): count for reason, count in rejects.items()}
        reasons["the id of another row"] = stays.null_count - sum(rejects.values())
        listed = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.items() if count)
        warnings.warn(f"{stays.null_count:,} of {len(stays):,} rows do not stay, because they are not documents: {listed}", stacklevel=2)
    return rows.keep(stays.fill_null(False))


def _listed(
    data: object,
    rows: Data | None,
    method: Method,
    columns: Columns,
    same_id: SameId | None,
    level: Level,
    keep: str | Sequence[str],
    most: int | None,
    each: str | None,
    store: str | os.PathLike[str] | None,
    workers: int | None,
    progress: bool | None,
    chosen: list[str] | None,
) -> tuple[pyarrow.Table, dict[str, int]]:
    """The row of each document, or of each row in memory: all columns, or those that are chosen. And the records that are bad, by their reasons."""
    import pyarrow.parquet

    inputs = inputs_of(data, rows)
    with tempfile.TemporaryDirectory(prefix="nigh-") as folder:
        scratch = Path(folder)
        # The URL of a bucket is no path.
        root = str(scratch / "store") if store is None else os.fspath(store)
        # Bad rows in memory are no error, since the result shows them: their `doc` is null, and `deduplicate` counts them.
        job = method.job(columns, same_id, order(keep, most, each), max_reject_share=None if rows is None else 1.0)
        flags: list[str] = ["--store", root, "--week", _WEEK, *([] if rows is None else ["--allow-empty"])]
        flags += [] if workers is None else ["--workers", str(workers)]
        summary = run_job(["run"], job, scratch, inputs, rows, columns, columns_of(keep, each), flags, progress)
        listed = scratch / "list.parquet"
        # The job of the week names the inputs relative to this folder, as they are given here.
        execute(("export", root, "--week", _WEEK, "--list", listed, "--what", "annotated", "--level", level))
        of_rows = None if rows is None or chosen is None else ["offset", *chosen]
        found = pyarrow.parquet.read_table(listed, columns=of_rows)
    counts = summary["counts"]
    return found if rows is None else _every_row(found, counts["records"]), counts["rejects"]


def inputs_of(data: Any, rows: Data | None) -> list[str]:
    """The inputs as the program takes them: standard input for rows in memory, else paths.

    Raises ``TypeError`` if it is neither.
    """
    if rows is not None:
        return ["-"]
    paths = [data] if isinstance(data, (str, os.PathLike)) else data
    is_paths = isinstance(paths, Iterable) and not isinstance(paths, (bytes, Mapping))
    paths = list(paths) if is_paths else []
    if not is_paths or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise TypeError(
            f"{type(data).__name__} is neither rows nor paths: give a table, a frame, a dataset or a reader of batches "
            "(pyarrow.Table.from_pylist makes a table of dictionaries), or paths of files"
        )
    return [os.fspath(path) for path in paths]


def order(keep: str | Sequence[str], most: int | None, each: str | None) -> str:
    """Which records stay, as TOML."""
    if isinstance(keep, str) and most is None and each is None and keep in get_args(Policy):
        return _toml(keep)
    fields = {"by": keep if isinstance(keep, str) else list(keep), "most": most, "each": each}
    return "{ " + ", ".join(f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None) + " }"


def _toml(value: Any) -> str:
    """A value as TOML, which has no surrogates (``json.dumps`` escapes with them by default), and no character 127 that is not escaped."""
    value = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def columns_of(keep: str | Sequence[str], each: str | None) -> list[str]:
    """The columns that an order names, perhaps by a path, as the program reads it: ``crates/store/src/config/terms.rs``."""
    terms = [] if isinstance(keep, str) and keep in get_args(Policy) else _TERM.findall(keep) if isinstance(keep, str) else keep
    names = [re.match(r"`[^`]*`|\S*", term.strip()) for term in terms]
    keys = [name[0] for name in names if name is not None] + ([] if each is None else [each.strip()])
    return [key[1:-1] if re.fullmatch("`.+`", key) else key for key in keys if key not in _NO_COLUMNS]


def run_job(
    command: list[str | os.PathLike[str]],
    job: str,
    scratch: Path,
    inputs: list[str],
    rows: Data | None,
    columns: Columns,
    ordered: Sequence[str],
    flags: Sequence[str],
    progress: bool | None,
) -> dict[str, Any]:
    """Runs a job on the inputs, or on rows, of which ``columns`` and ``ordered`` name the columns. Returns the summary of the week.

    Raises ``Failed`` if the program fails, or does not read each row.
    """
    written = scratch / "job.toml"
    written.write_text(job, encoding="utf-8")
    arguments = (*command, written, "--json", *flags, "--input", *inputs)
    bar = _progress.bar(progress)
    try:
        if rows is None:
            printed, _ = execute(arguments, bar=bar)
            summary: dict[str, Any] = json.loads(printed)
            return summary
        named = [name for value in columns.values() if value is not None for name in ([value] if isinstance(value, str) else value)]
        names, count = wanted(rows, named, ordered), 0

        def feed(pipe: Pipe) -> None:
            nonlocal count
            count = send(rows, names, pipe, lambda sent: bar.show("sending rows", sent, rows.rows or 0))

        printed, _ = execute(arguments, feed=feed, bar=bar, notices=False)
    except Failed as failed:
        missing = re.search(r"no input has a column `[^`]*`", failed.message)
        if rows is not None and missing is not None:
            raise NoColumn(f"{missing[0]} (its columns: {', '.join(rows.names)})") from None
        raise
    finally:
        bar.close()
    summary = json.loads(printed)
    if summary["counts"]["records"] != count:
        rejects = ", ".join(summary["counts"]["rejects"])
        raise Failed(1, f"the program has read {summary['counts']['records']:,} of {count:,} rows: {rejects}")
    return summary


def _every_row(rows: pyarrow.Table, count: int) -> pyarrow.Table:
    """The rows of a list, with one for each row in memory."""
    import pyarrow
    import pyarrow.compute

    # 0, 1, 2, ...: a range of Python would become a list of its numbers first.
    places = pyarrow.compute.cumulative_sum(pyarrow.repeat(pyarrow.scalar(1, pyarrow.int64()), count), start=pyarrow.scalar(-1, pyarrow.int64()))
    found = pyarrow.compute.index_in(places, rows["offset"].cast(pyarrow.int64()).combine_chunks())
    others = [name for name in rows.column_names if name not in ("file", "offset")]
    return rows.select(others).take(found).add_column(0, "offset", places)
