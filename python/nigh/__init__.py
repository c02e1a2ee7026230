"""Clusters of near-duplicate pages and texts.

This module runs the program ``nigh``, which the same package installs, and hands over its tables as pyarrow ones:

>>> import nigh
>>> clusters = nigh.cluster("shards/*.parquet", id="id", similarity=0.8)  # doctest: +SKIP
>>> clusters.column_names  # doctest: +SKIP
['file', 'offset', 'id', 'url', 'doc', 'cluster', 'size', 'rank', 'stays']

Nothing is computed here. A run can be repeated with the program alone: see ``nigh help run``. ``nigh.connect`` is a client of ``nigh live``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from . import _notebook, live
from ._notebook import Cluster, Figure, Figures, Run
from .live import Answer, Client, Refused, connect

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

__all__ = [
    "Answer",
    "Client",
    "Cluster",
    "Failed",
    "Figure",
    "Figures",
    "Refused",
    "Run",
    "Store",
    "cluster",
    "connect",
    "live",
    "open",
    "program",
    "run",
]

Level = Literal["similar", "identical", "exact"]
Policy = Literal["first", "longest", "newest", "shortest-url", "per-host", "root"]

#: The week of a store with one batch of data.
_WEEK = "2000-01-03"


class Failed(RuntimeError):
    """The program failed. ``code`` is its exit code, ``message`` what it said."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message or f"nigh ended with exit code {code}")
        self.code = code
        self.message = message


def program() -> str:
    """The path of the program: that of this installation, or the first one on ``PATH``.

    Raises ``FileNotFoundError`` if there is none.
    """
    name = "nigh" + (sysconfig.get_config_var("EXE") or "")
    here = Path(sysconfig.get_path("scripts")) / name
    if here.is_file():
        return str(here)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError("the program nigh is neither beside this Python nor on PATH: install the wheel of nigh, or put the program on PATH")
    return found


def run(*arguments: str | os.PathLike[str]) -> str:
    """Runs the program, and returns what it prints. What it says besides goes to standard error at its end.

    Raises ``Failed`` if it ends with another exit code than 0.
    """
    command = [program(), *(os.fspath(argument) for argument in arguments)]
    # What the caller passes counts, not the variables of the shell that stand for flags.
    passed = ("NIGH_KERNELS", "NIGH_CLOUD_CREDENTIALS", "NIGH_HUB", "NIGH_COMMON_CRAWL")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NIGH_") or name in passed}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise Failed(done.returncode, done.stderr.strip())
    if done.stderr:
        print(done.stderr, end="", file=sys.stderr)
    return done.stdout


def cluster(
    data: pyarrow.Table | str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    text: str = "text",
    id: str | None = None,  # noqa: A002
    url: str | None = None,
    same_id: Literal["equal", "first", "reject", "row"] | None = None,
    similarity: float | None = None,
    verify: Literal["none", "estimate", "exact"] | None = None,
    preset: str | None = None,
    words: Literal["letters", "code", "characters"] | int | None = None,
    shingle: int | None = None,
    fold_case: bool = False,
    level: Level = "similar",
    keep: Policy | str | Sequence[str] = "first",
    most: int | None = None,
    each: str | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
) -> pyarrow.Table:
    """Clusters records, and returns a row for each document: where it is, its cluster, and whether it stays.

    ``data`` is a table, or paths, folders and globs of files as ``nigh run --input`` takes them. ``text``, ``id`` and ``url`` name columns.
    ``same_id`` says what becomes of records with one id and different texts; they are an error without it.
    ``similarity``, ``verify``, ``preset``, ``words``, ``shingle``, ``fold_case`` and the level are those of the program (``nigh help run``); without ``similarity``
    and ``preset`` it has the numbers of Fetterly's study.
    The tables are kept if ``store`` names a folder for them.

    ``keep`` says which record of a cluster stays: a policy, or terms such as ``["score desc", "length desc", 'source in ["a", "b"]']``, of which
    the first decides in which two records differ. ``most`` records of a cluster stay, one if it is not given, and none of a cluster of two or
    more if it is 0; or so many of each value of the column ``each``.

    The columns: ``file`` and ``offset`` (of a table or Parquet file, the number of the row), ``id``, ``url``, ``doc``, ``cluster``,
    ``size`` (records of the cluster), ``rank`` (in the cluster, from 1), ``stays`` (by ``keep``). The rows are in the order of the inputs. Of
    a table every row has one; rows that are no documents, as those without a text, have a null ``doc``.

    Raises ``Failed`` if the program fails.
    """
    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory(prefix="nigh-") as folder:
        scratch = Path(folder)
        table: Any = data if isinstance(data, pyarrow.Table) else None
        if table is not None:
            # Only the columns that are read. Of one that is not there the program says so.
            wanted = [name for name in (text, id, url) if name in table.column_names]
            read = table.select(wanted) if isinstance(keep, str) and keep in get_args(Policy) and each is None else table
            pyarrow.parquet.write_table(read, scratch / "table.parquet", compression="zstd", compression_level=1)
            inputs = [str(scratch / "table.parquet")]
        elif isinstance(data, (str, os.PathLike)):
            inputs = [os.fspath(data)]
        else:
            paths: Any = data
            inputs = [os.fspath(path) for path in paths]
        job = scratch / "job.toml"
        # Rows of a table without a text are in the result, as nulls.
        accepted = None if table is None else 1.0
        fields: dict[str, dict[str, Any]] = {
            "read": {"same-id": same_id},
            "read.columns": {"text": text, "id": id, "url": url},
            "method": {
                "similarity": similarity,
                "verify": verify,
                "preset": preset,
                "words": words,
                "shingle": shingle,
                "fold-case": fold_case or None,
            },
        }
        job.write_text(_job(fields, _canonical(keep, most, each), accepted), encoding="utf-8")
        root = scratch / "store" if store is None else Path(store)
        flags: list[str] = [] if workers is None else ["--workers", str(workers)]
        run("run", job, "--quiet", "--store", root, "--week", _WEEK, *flags, "--input", *inputs)
        listed = scratch / "list.parquet"
        # The job of the week names the inputs relative to this folder, as they are given here.
        run("export", root, "--week", _WEEK, "--list", listed, "--what", "annotated", "--level", level)
        rows = pyarrow.parquet.read_table(listed)
    return rows if table is None else _every_row(rows, table.num_rows)


def _canonical(keep: str | Sequence[str], most: int | None, each: str | None) -> str:
    """Which records stay, as TOML."""
    if isinstance(keep, str) and most is None and each is None and keep in get_args(Policy):
        return json.dumps(keep)
    fields = {"by": keep if isinstance(keep, str) else list(keep), "most": most, "each": each}
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None) + " }"


def _job(tables: dict[str, dict[str, Any]], canonical: str, accepted: float | None) -> str:
    """The job of a call, as TOML: the tables of the job with their fields."""
    lines = ["[cluster]", f"canonical = {canonical}"]
    lines += [] if accepted is None else [f"max-reject-share = {accepted}"]
    for table, fields in tables.items():
        lines.append(f"[cluster.{table}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None]
    return "\n".join(lines) + "\n"


def _every_row(rows: pyarrow.Table, count: int) -> pyarrow.Table:
    """The rows of a list, with one for each row of a table."""
    import pyarrow

    if rows.num_rows == count:
        return rows.drop_columns(["file"])
    places: list[int | None] = [None] * count
    for row, offset in enumerate(rows["offset"].to_pylist()):
        places[offset] = row
    every = rows.drop_columns(["file", "offset"]).take(pyarrow.array(places, pyarrow.int64()))
    return every.add_column(0, "offset", pyarrow.array(range(count), pyarrow.int64()))


def _is_table(folder: Path) -> bool:
    """Whether a folder of a store has the files of one table, in folders of weeks or beside each other."""
    return folder.is_dir() and any(folder.glob("week=*")) or any(folder.glob("nigh-*.parquet"))


class Store:
    """The tables of a store. Those of weeks are attributes too: ``nigh.open("corpus").clusters`` is ``table("clusters")``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "_nigh" / "manifest.json").is_file():
            raise FileNotFoundError(f"{self.path} is not a store of nigh: it has no _nigh/manifest.json")
        self._figures: Figures | None = None

    @property
    def weeks(self) -> list[str]:
        """The weeks of the store, ascending, as ``YYYY-MM-DD``."""
        manifest = json.loads((self.path / "_nigh" / "manifest.json").read_text(encoding="utf-8"))
        return [week["week"] for week in manifest["weeks"]]

    @property
    def tables(self) -> list[str]:
        """The names of its tables: ``clusters``, and of a study with the name of it before, ``overlap/families``."""
        names = []
        for folder in self.path.iterdir():
            if folder.name.startswith("_") or not folder.is_dir():
                continue
            if _is_table(folder):
                names.append(folder.name)
            else:
                names += [f"{folder.name}/{inner.name}" for inner in folder.iterdir() if _is_table(inner)]
        return sorted(names)

    def table(self, name: str, week: str | None = None) -> pyarrow.dataset.Dataset:
        """A table of all weeks, with the column ``week``; or of one. A table of a study, which is made of several weeks, has no such column.

        Raises ``KeyError`` if the store has no such table or week.
        """
        import pyarrow
        import pyarrow.dataset

        if name not in self.tables:
            raise KeyError(f"{self.path} has no table {name}: it has {', '.join(self.tables)}")
        folder = self.path / name
        if week is not None:
            folder = folder / f"week={week}"
            if not folder.is_dir():
                raise KeyError(f"{self.path} has no {name} of week {week}: it has weeks {', '.join(self.weeks)}")
        return pyarrow.dataset.dataset(folder, format="parquet", exclude_invalid_files=False)

    def rows(
        self,
        name: str,
        *,
        week: str | None = None,
        where: Mapping[str, object] | None = None,
        columns: Sequence[str] = (),
        limit: int | None = None,
    ) -> pyarrow.Table:
        """The rows of a table, as ``nigh table`` chooses them: of the last week, of ``week``, or of all weeks if that is ``"all"``.

        ``where`` has values of columns, which must all be equal; ``None`` stands for no value.

        Raises ``Failed`` if there is no such table, column or week.
        """
        import pyarrow.ipc

        flags = ["--all-weeks"] if week == "all" else [] if week is None else ["--week", week]
        for column, value in (where or {}).items():
            text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            flags += ["--where", f"{column}={text}"]
        flags += ["--columns", ",".join(columns)] if columns else []
        flags += [] if limit is None else ["--limit", str(limit)]
        with tempfile.TemporaryDirectory(prefix="nigh-") as folder:
            out = Path(folder) / "rows.arrow"
            run("table", self.path, name, "--format", "arrow", "--out", out, *flags)
            with pyarrow.ipc.open_file(out) as rows:
                return rows.read_all()

    def summary(self, week: str | None = None) -> dict[str, Any]:
        """The summary of a week, by default of the last one, as ``nigh show --json`` prints it."""
        flags = [] if week is None else ["--week", week]
        summary: dict[str, Any] = json.loads(run("show", self.path, "--json", *flags))
        return summary

    def run(self, week: str | None = None) -> Run:
        """A week as a run made it, by default the last one: a notebook shows its totals and largest clusters."""
        return Run(self.summary(week))

    def cluster(self, cluster_id: int, week: str | None = None) -> Cluster:
        """A very similar cluster of a week, by default of the last one: a notebook shows its pages.

        Raises ``Failed`` if the week has no such cluster.
        """
        flags = [] if week is None else ["--week", week]
        return Cluster(cluster_id, json.loads(run("show", self.path, "--cluster", str(cluster_id), "--json", *flags)))

    @property
    def figures(self) -> Figures:
        """The figures and tables of the papers, by their names: ``figures["Fetterly 2004, Fig. 1"]``. A notebook shows the picture."""
        if self._figures is None:
            self._figures = Figures(self.path, run)
        return self._figures

    def export(self, out: str | os.PathLike[str], *flags: str) -> dict[str, Any]:
        """Writes the inputs again without duplicates: ``nigh export`` with further flags. Returns what was written."""
        written: dict[str, Any] = json.loads(run("export", self.path, "--out", out, "--json", *flags))
        return written

    def __getattr__(self, name: str) -> pyarrow.dataset.Dataset:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name.replace("_", "-"))
        except KeyError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> Sequence[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in self.tables if "/" not in name)]

    def __repr__(self) -> str:
        return f"nigh.open({str(self.path)!r})"

    def _repr_html_(self) -> str:
        weeks, tables = self.weeks, self.tables
        shown = f"<p>Store {_notebook.text(self.path)}: {len(weeks)} weeks ({_notebook.text(', '.join(weeks))})</p>"
        if weeks:
            shown += _notebook.totals(self.summary())
        return f"{shown}<p>Tables: {_notebook.text(', '.join(tables))}</p>"


def open(path: str | os.PathLike[str]) -> Store:  # noqa: A001
    """Opens a store that ``nigh run`` made.

    Raises ``FileNotFoundError`` if there is none.
    """
    return Store(path)
