"""What a notebook shows of a store, a run, a cluster and a figure.

Texts of others (titles, URLs) are escaped, and characters that would hide or turn text are shown as their codes.
"""

from __future__ import annotations

import base64
import csv
import html
import json
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Rows of a list that a notebook shows.
_SHOWN = 20


def text(value: object) -> str:
    """A text in which nothing is markup, and no character acts."""
    shown = "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in str(value))
    return html.escape(shown)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], more: int = 0) -> str:
    """A table of HTML; numbers stand to the right. ``more`` rows are left out."""

    def cell(value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return f'<td style="text-align: right">{value:,}</td>'
        return f'<td style="text-align: left">{text("" if value is None else value)}</td>'

    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    left_out = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left_out}"


def totals(summary: Mapping[str, Any]) -> str:
    """The totals of a week by level, from its summary."""
    rows = [
        (level["level"], level["clusters"], level["clustered"], level["duplicates"], f"{100 * level['share']:.1f}%") for level in summary["levels"]
    ]
    return table(["level", "clusters", "pages in them", "duplicates", "share"], rows)


class Run:
    """A week as a run made it: ``summary`` is what ``nigh show --json`` prints. A notebook shows totals and the largest clusters."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.week: str = summary["week"]

    def __repr__(self) -> str:
        return f"<run of nigh: week {self.week}, {self.summary['counts']['documents']:,} pages>"

    def _repr_html_(self) -> str:
        similar = self.summary["levels"][0]
        largest = similar["largest"][:_SHOWN]
        rows = [(of["cluster_id"], of["urls"], of["hosts"], of["name"], of["title"]) for of in largest]
        heads = ["cluster", "pages", "hosts", "page", "title"]
        listed = f"<p>Largest very similar clusters</p>{table(heads, rows)}" if rows else ""
        documents = self.summary["counts"]["documents"]
        return f"<p>Week {text(self.week)}: {documents:,} pages</p>{totals(self.summary)}{listed}"


class Cluster:
    """A very similar cluster: ``pages`` are the first of its pages, as ``nigh show --cluster ID --json`` lists them."""

    def __init__(self, cluster_id: int, found: dict[str, Any]) -> None:
        self.cluster_id = cluster_id
        self.size: int = found["pages"]
        self.hosts: int = found["hosts"]
        self.pages: list[dict[str, Any]] = found["listed"]

    def __repr__(self) -> str:
        return f"<cluster {self.cluster_id}: {self.size:,} pages>"

    def _repr_html_(self) -> str:
        rows = []
        for listed in self.pages[:_SHOWN]:
            page, evidence = listed["page"], listed["evidence"] or {}
            similarity = evidence.get("similarity")
            rows.append(
                (
                    page["name"],
                    page["title"],
                    page["words"],
                    "stays" if page["canonical"] else "",
                    evidence.get("agreements"),
                    "" if similarity is None else f"{similarity:.2f}",
                    evidence.get("neighbour"),
                )
            )
        heads = ["page", "title", "words", "what", "agree", "similar", "to"]
        return f"<p>Cluster {self.cluster_id}: {self.size:,} pages</p>{table(heads, rows, self.size - len(rows))}"


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: a notebook shows the picture. ``svg`` is ``None`` for a table, ``csv`` has what is drawn."""

    name: str
    title: str
    svg: str | None
    csv: str

    def _repr_html_(self) -> str:
        if self.svg is not None:
            # An image: the styles of several pictures in one notebook do not touch each other.
            source = base64.b64encode(self.svg.encode()).decode()
            picture = f'<img alt="{text(self.title)}" src="data:image/svg+xml;base64,{source}">'
        else:
            rows = list(csv.reader(self.csv.splitlines()))
            picture = table(rows[0], rows[1 : 1 + _SHOWN], len(rows) - 1 - _SHOWN) if rows else ""
        return f"<p>{text(self.name)}. {text(self.title)}</p>{picture}"


class Figures(Mapping[str, Figure]):
    """The figures and tables of the papers, by their names: ``figures["Fetterly 2004, Fig. 1"]``. They are drawn when one is first asked for."""

    def __init__(self, path: Path, run: Callable[..., str], week: str | None = None) -> None:
        self._path = path
        self._run = run
        self._week = week
        self._drawn: dict[str, Figure] | None = None
        self._missing: dict[str, str] = {}

    def _all(self) -> dict[str, Figure]:
        if self._drawn is None:
            flags = [] if self._week is None else ["--week", self._week]
            drawn = {}
            with tempfile.TemporaryDirectory(prefix="nigh-") as folder:
                written = json.loads(self._run("figures", self._path, "--out", folder, "--format", "svg,csv", "--json", *flags))
                for figure in written["figures"]:
                    name, files = figure["name"], {Path(file).suffix: Path(folder, file) for file in figure["files"]}
                    if figure["missing"] is not None:
                        self._missing[name] = f"{figure['missing']} This makes them: {figure['command']}"
                        continue
                    read = {suffix: file.read_text(encoding="utf-8") for suffix, file in files.items()}
                    drawn[name] = Figure(name, figure["title"], read.get(".svg"), read.get(".csv", ""))
            self._drawn = drawn
        return self._drawn

    def __getitem__(self, name: str) -> Figure:
        figures = self._all()
        if name in figures:
            return figures[name]
        if name in self._missing:
            raise KeyError(f"{name}: {self._missing[name]}")
        raise KeyError(f"there is no figure {name}: there are {', '.join([*figures, *self._missing])}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"<figures of {self._path}>"

    def _repr_html_(self) -> str:
        figures = self._all()
        rows = [(name, figure.title, "") for name, figure in figures.items()]
        rows += [(name, "", why) for name, why in self._missing.items()]
        return table(["figure", "title", "missing"], rows)
