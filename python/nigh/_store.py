"""A store: its tables, what is added to it, found in it and written of it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _notebook
from ._cluster import Columns, Level, Method, Policy, Words, columns_of, inputs_of, order, run_job
from ._data import data_of
from ._notebook import Cluster, Figures, Run
from ._program import execute, run

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


def _is_table(folder: Path) -> bool:
    """Whether a folder of a store has the files of one table, in folders of weeks or beside each other."""
    return folder.is_dir() and any(folder.glob("week=*")) or any(folder.glob("nigh-*.parquet"))


class Store:
    """The tables of a store. Those of weeks are attributes too: ``nigh.open("corpus").clusters`` is ``table("clusters")``."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        if "://" in os.fspath(path):
            raise ValueError(f"{path} is no folder of this machine: a store in a bucket is for the program, as nigh.run(\"show\", {str(path)!r}) runs it")
        self.path = Path(path)
        if not create and not (self.path / "_nigh" / "manifest.json").is_file():
            raise FileNotFoundError(f"{self.path} is not a store of nigh: it has no _nigh/manifest.json (create=True allows that)")
        self._figures: Figures | None = None

    @property
    def weeks(self) -> list[str]:
        """The weeks of the store, ascending, as ``YYYY-MM-DD``."""
        file = self.path / "_nigh" / "manifest.json"
        if not file.is_file():
            return []
        manifest = json.loads(file.read_text(encoding="utf-8"))
        return [week["week"] for week in manifest["weeks"]]

    @property
    def tables(self) -> list[str]:
        """The names of its tables: ``clusters``, and of a study with the name of it before, ``overlap/families``."""
        names = []
        for folder in self.path.iterdir() if self.path.is_dir() else []:
            if folder.name.startswith("_") or not folder.is_dir():
                continue
            if _is_table(folder):
                names.append(folder.name)
            else:
                names += [f"{folder.name}/{inner.name}" for inner in folder.iterdir() if _is_table(inner)]
        return sorted(names)

    def table(self, name: str, week: str | None = None) -> pyarrow.dataset.Dataset:
        """A table of all weeks, with the column ``week``, a date; or of one, without it. A table of a study is made of several weeks: it has the columns
        of its files.

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
        weeks = pyarrow.dataset.partitioning(pyarrow.schema({"week": pyarrow.date32()}), flavor="hive")
        is_of_weeks = any(folder.glob("week=*"))
        return pyarrow.dataset.dataset(folder, format="parquet", partitioning=weeks if is_of_weeks else None, exclude_invalid_files=False)

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

    def add(
        self,
        data: object,
        *,
        text: str | Sequence[str] = "text",
        id: str | None = None,  # noqa: A002
        url: str | None = None,
        date: str | None = None,
        same_id: Literal["equal", "first", "reject", "row"] | None = None,
        similarity: float | None = None,
        verify: Literal["none", "estimate", "exact"] | None = None,
        preset: str | None = None,
        words: Words | None = None,
        shingle: int | None = None,
        fold_case: bool = False,
        keep: Policy | str | Sequence[str] = "first",
        most: int | None = None,
        each: str | None = None,
        only_older: bool = False,
        max_reject_share: float | None = None,
        week: str | None = None,
        workers: int | None = None,
        progress: bool | None = None,
    ) -> Run:
        """Adds a batch, as ``nigh add``: its documents are compared with all that are there, which stay. A store that is not there yet is made.

        ``data`` and the other arguments are those of ``nigh.cluster``. The method must be that of the batches before. Rows in memory need an
        ``id`` or a ``url``, by which a later batch knows them. A batch without a ``week`` is named by today's date, or by the day after the last one.

        ``only_older`` compares the batch only with those before: a record goes if its cluster has one of an older batch, and otherwise stays with all records
        of the batch that are like it.

        ``keep``, ``most``, ``each`` and ``only_older`` decide for all batches, not only for this one. A warning says if the batch before had another choice.

        Records without a text, an id or a URL, where these are named, are bad. ``max_reject_share`` of the records may be bad, by default 0.05, in
        memory as in files; the summary counts them by reasons.

        Raises ``TooManyRejects`` if more are bad, ``Failed`` if the program fails or a batch has no document, ``ValueError`` if rows in memory have neither an id nor a URL, or are to be verified by their texts,
        which are not at hand for a later batch.
        """
        method = Method(similarity, verify, preset, words, shingle, fold_case)
        rows = data_of(data, is_kept=False)
        if rows is not None and id is None and url is None:
            raise ValueError("rows in memory have no place that a later batch could know them by: name a column of ids or URLs by id= or url=")
        if rows is not None and verify == "exact":
            raise ValueError('verify="exact" reads the texts of all batches again, and those of rows in memory are gone: verify="estimate", or add files')
        flags: list[str] = [] if week is None else ["--week", week]
        flags += [] if workers is None else ["--workers", str(workers)]
        flags += ["--only-older"] if only_older else []
        columns: Columns = {"text": text, "id": id, "url": url, "date": date}
        with tempfile.TemporaryDirectory(prefix="nigh-") as folder:
            job = method.job(columns, same_id, order(keep, most, each), max_reject_share=max_reject_share)
            summary = run_job(
                ["add", self.path], job, Path(folder), inputs_of(data, rows), rows, columns, columns_of(keep, each), flags, progress
            )
        return Run(summary)

    def find(
        self,
        text: str | None = None,
        *,
        url: str | None = None,
        top: int = 20,
        all: bool = False,  # noqa: A002
        week: str | None = None,
    ) -> pyarrow.Table:
        """The documents of a week, by default of the last one, that are most like a text, or like a document: its URL, or its id in a store of ids.

        Documents that share no supershingle with it are compared only with ``all``, as in ``nigh find``. The columns: ``name`` (the URL, the id, or file
        and place), ``doc``, ``title``, ``words``, ``file``, ``offset``, ``cluster_id``, ``stays``, ``agreements`` (equal supershingles), ``features``
        (equal features) and ``similarity``, an estimate. The most similar one comes first.

        Raises ``Failed`` if the week has no such document, ``ValueError`` if both or none are given.
        """
        import pyarrow

        if (text is None) == (url is None):
            raise ValueError("give a text, or a URL or id by url=")
        flags = ["--text", "-"] if text is not None else [f"--url={url}"]
        flags += ["--top", str(top)] + (["--all"] if all else []) + ([] if week is None else ["--week", week])
        written = None if text is None else text.encode("utf-8", errors="surrogatepass")
        printed, _ = execute(("find", self.path, "--json", *flags), feed=None if written is None else lambda pipe: _write(pipe, written))
        found = []
        for each in json.loads(printed)["found"]:
            page = each.pop("page")
            found.append({**page, **each, "stays": page["canonical"]})
        fields = {
            "name": pyarrow.string(),
            "doc": pyarrow.uint64(),
            "title": pyarrow.string(),
            "words": pyarrow.int64(),
            "file": pyarrow.string(),
            "offset": pyarrow.int64(),
            "cluster_id": pyarrow.uint64(),
            "stays": pyarrow.bool_(),
            "agreements": pyarrow.int64(),
            "features": pyarrow.int64(),
            "similarity": pyarrow.float64(),
        }
        return pyarrow.Table.from_pylist(found, schema=pyarrow.schema(fields))

    def export(
        self,
        out: str | os.PathLike[str],
        *flags: str,
        keep: Policy | str | Sequence[str] | None = None,
        most: int | None = None,
        each: str | None = None,
        keep_rows: int | None = None,
        at_similarity: float | None = None,
        level: Level | Literal["paragraph"] | None = None,
        what: Literal["kept", "removed", "annotated"] | None = None,
        format: Literal["same", "jsonl", "parquet"] | None = None,  # noqa: A002
        shards: int | None = None,
        shard_bytes: int | str | None = None,
        rename: Mapping[str, str] | None = None,
        since: str | None = None,
        only_older: bool = False,
        week: str | None = None,
    ) -> dict[str, Any]:
        """Writes the inputs again without duplicates, as ``nigh export``, of which ``flags`` are further flags. Returns what was written.

        ``keep``, ``most`` and ``each`` are those of ``nigh.cluster``, by default of the week's job. ``rename`` has the new names of columns by the old ones.
        ``keep_rows`` keeps a number of records, and ``at_similarity`` takes clusters of pairs that are as similar: then the texts of clusters are read again.
        With ``since``, ``only_older`` leaves out only what duplicates a record of before. The inputs must be there: a batch that came from memory has none.

        Raises ``Failed`` if the program fails.
        """
        joined = keep if keep is None or isinstance(keep, str) else ", ".join(keep)
        given = {
            "keep": joined,
            "most": most,
            "each": each,
            "keep-rows": keep_rows,
            "at-similarity": at_similarity,
            "level": level,
            "what": what,
            "format": format,
            "shards": shards,
            "shard-bytes": shard_bytes,
            "since": since,
            "week": week,
        }
        # Names of columns may begin with a hyphen, as ids may.
        named = [f"--{name}={value}" for name, value in given.items() if value is not None]
        named += ["--only-older"] if only_older else []
        named += [f"--rename={old}={new}" for old, new in (rename or {}).items()]
        written: dict[str, Any] = json.loads(run("export", self.path, "--out", out, "--json", *named, *flags))
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


def _write(pipe: Any, text: bytes) -> None:
    pipe.write(text)
