#!/usr/bin/env python3
"""Runs the commands and queries of README.md and docs/ that have an output, and compares it.

    scripts/documents.py                    all of them, with the program of target/debug, or of the variable NIGH
    scripts/documents.py --kind sh          only the commands: no package of Python is needed
    scripts/documents.py docs/weeks.md      those of one page
    scripts/documents.py --write            writes what they print into the pages

A block of `sh`, `sql` or `python` is run if a block of `text` follows it, with one paragraph
between them at most. A line `...` there stands for any number of lines, and `...` in a line for any
characters. An output that cannot be had here stands in a block without `text`. Where the output has
a line that begins with `nigh: `, it has the messages of the program (which go to standard error)
before its results. Tables of DuckDB and Polars are compared by their rows. Python that ends with
another code than 0 is wrong, whatever it printed, and so are commands, except where the output has
such messages. A block of `toml` whose first line is `# NAME.toml` is written to the file of that name.

`cargo run --release --` is the program that is there, and `cargo test` is left out. The blocks of a
page run one after the other in a folder that looks like a clone of nigh after `cargo install --path
.`: with tests/, jobs/ and configs/, and, except for the pages that make it, with a store `crawls`
of the three weeks of tests/data and all studies.

Ends with 1 if an output differs or a block fails, with 4 if a package is not there: DuckDB or Polars.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEEKS = ["2024-01-08", "2024-01-15", "2024-01-22"]
#: The pages that make their store themselves.
WITHOUT_STORE = {"README.md", "docs/weeks.md"}
#: The width of tables that DuckDB prints.
WIDTH = 150
#: A line of progress, which depends on the time.
PROGRESS = re.compile(r"nigh \[[^\]]*\]: [a-z ]+(: .*(%|/s)| after )")


#: The first line of a block of TOML that is a file.
FILE = re.compile(r"# ([\w-]+\.toml)\n")


@dataclass
class Block:
    """A block that is run, and its output; or a file (the kind `toml`), which has none."""

    kind: str
    source: str
    expected: list[str]
    #: The lines of the page between which the output stands.
    begin: int
    end: int


def blocks(lines: list[str]) -> list[Block]:
    """The blocks of a page that have an output."""
    found: list[Block] = []
    last: tuple[str, str, int] | None = None
    at = 0
    while at < len(lines):
        if not lines[at].startswith("```"):
            at += 1
            continue
        kind, begin = lines[at][3:].strip(), at + 1
        at = begin
        while at < len(lines) and lines[at] != "```":
            at += 1
        if kind == "text" and last is not None:
            between = "\n".join(lines[last[2] : begin - 1]).strip()
            if "\n\n" not in between and "\n#" not in f"\n{between}":
                found.append(Block(last[0], last[1], lines[begin:at], begin, at))
        source = "\n".join(lines[begin:at]) + "\n"
        if kind == "toml" and FILE.match(source):
            found.append(Block(kind, source, [], begin, at))
        last = (kind, source, at + 1) if kind in ("sh", "sql", "python") else None
        at += 1
    return found


def agree(expected: list[str], printed: list[str]) -> bool:
    """Whether the output of a page is what was printed; `...` stands for what is left out."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(agree(expected[1:], printed[at:]) for at in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(re.escape(part) for part in expected[0].split("..."))
    return re.fullmatch(pattern, printed[0]) is not None and agree(expected[1:], printed[1:])


def cells(lines: list[str]) -> list[list[str]]:
    """The rows of a table that DuckDB or Polars printed, with its head: versions draw them with other widths."""
    groups: list[list[list[str]]] = [[]]
    for line in lines:
        if line.startswith(("├", "╞")):
            groups.append([])
        elif line.startswith("│"):
            groups[-1].append([cell.strip() for cell in line.strip("│").replace("┆", "│").split("│")])
    # A line between all rows says that values have more lines than one.
    rows = groups if len(groups) > 2 else [groups[0], *([row] for row in groups[-1])]
    return [["".join(parts) for parts in zip(*row, strict=True)] for row in rows]


def is_table(lines: list[str]) -> bool:
    """Whether an output is such a table."""
    return any(line.startswith("┌") for line in lines[:2])


def tidy(text: str) -> list[str]:
    """The lines of a text, without white space at their ends and empty lines at its own."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def environment(program: Path) -> dict[str, str]:
    """The variables of the commands: those of this process, the program first on the path, and the module of Python."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NIGH_")}
    variables |= {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python")}
    return {**variables, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run_commands(source: str, folder: Path, variables: dict[str, str], with_messages: bool) -> tuple[list[str], bool]:
    """What commands print, and whether they may end as they did: with another code than 0 only if their messages are compared."""
    source = source.replace("cargo run --release --", "nigh").replace("cargo test\n", "")
    done = subprocess.run(
        ["bash", "-e", "-c", source], cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )
    messages = [re.sub(r"^nigh \[[^\]]*\]: ", "nigh: ", line) for line in done.stderr.splitlines() if not PROGRESS.match(line)]
    if with_messages:
        return tidy("\n".join([*messages, done.stdout])), True
    return tidy(done.stdout), is_well(done)


def run_python(source: str, folder: Path, variables: dict[str, str]) -> tuple[list[str], bool]:
    """What a program in Python prints, and whether it ended well."""
    done = subprocess.run([sys.executable, "-c", source], cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return tidy(done.stdout), is_well(done)


def is_well(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a program ended with 0; if not, its errors are shown."""
    if done.returncode != 0:
        print(f"ended with {done.returncode}:\n{done.stderr}", file=sys.stderr)
    return done.returncode == 0


def run_query(source: str, folder: Path) -> list[str]:
    """The table that a query gives, as DuckDB prints it."""
    import duckdb

    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        duckdb.connect().sql(source).show(max_width=WIDTH)
    return tidy(printed.getvalue())


def prepared(folder: Path, variables: dict[str, str]) -> Path:
    """A store of the three weeks, with all studies of the last one."""
    store = folder / "crawls"
    for week in WEEKS:
        flags = ["--week", week, "--input", f"tests/data/week-{week}", "--store", store, "--quiet"]
        subprocess.run(["nigh", "run", *flags], cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["nigh", "studies", store, "--last", "--quiet"], cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, check=True)
    return store


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="pages, relative to the clone (default: README.md and docs/*.md)")
    parser.add_argument("--kind", action="append", choices=["sh", "sql", "python"], help="only blocks of this kind")
    parser.add_argument("--write", action="store_true", help="write what is printed into the pages, except for outputs with `...`")
    arguments = parser.parse_args()
    kinds = arguments.kind or ["sh", "sql", "python"]
    try:
        if "sql" in kinds:
            import duckdb  # noqa: F401
        if "python" in kinds:
            import polars  # noqa: F401
    except ImportError as error:
        print(f"{error}: python3 -m pip install duckdb polars", file=sys.stderr)
        return 4
    program = Path(os.environ.get("NIGH", ROOT / "target/debug/nigh")).resolve()
    variables = environment(program)
    pages = arguments.pages or ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
    ran = wrong = 0
    with tempfile.TemporaryDirectory(prefix="nigh-docs-") as scratch:
        store: Path | None = None
        for number, page in enumerate(pages):
            lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
            found = blocks(lines)
            if not any(block.kind in kinds for block in found):
                continue
            folder = Path(scratch) / str(number)
            folder.mkdir()
            for name in ("tests", "jobs", "configs", "scripts"):
                (folder / name).symlink_to(ROOT / name)
            if page not in WITHOUT_STORE:
                store = store or prepared(Path(scratch), variables)
                shutil.copytree(store, folder / "crawls")
            written = list(lines)
            for block in found:
                if block.kind == "toml":
                    # Written before the commands that stand behind it are run.
                    (folder / FILE.match(block.source)[1]).write_text(block.source, encoding="utf-8")
                    continue
                if block.kind == "sh":
                    # Also if only queries are asked for: they may need the store that commands make.
                    with_messages = any(line.startswith("nigh: ") for line in block.expected)
                    printed, ended_well = run_commands(block.source, folder, variables, with_messages)
                elif block.kind not in kinds:
                    continue
                elif block.kind == "sql":
                    printed, ended_well = run_query(block.source, folder), True
                else:
                    printed, ended_well = run_python(block.source, folder, variables)
                if block.kind not in kinds:
                    continue
                ran += 1
                expected = [line.rstrip() for line in block.expected]
                same_table = is_table(expected) and is_table(printed) and cells(expected) == cells(printed)
                if ended_well and (same_table or agree(expected, printed)):
                    continue
                if ended_well and arguments.write and not any("..." in line for line in block.expected):
                    # Later blocks of the page are found by the old numbers of lines.
                    shift = len(written) - len(lines)
                    written[block.begin + shift : block.end + shift] = printed
                    continue
                wrong += 1
                what = "the output is not what is printed there" if ended_well else "it failed"
                print(f"{page}, line {block.begin}: {what}\n{block.source}")
                print("\n".join(["---- printed:", *printed, "----", ""]))
            if written != lines:
                (ROOT / page).write_text("\n".join(written) + "\n", encoding="utf-8")
    print(f"{ran} outputs were compared, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
