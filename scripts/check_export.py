#!/usr/bin/env python3
"""Compares an export with the rows that the tables say, by DuckDB: JSON Lines or Parquet whose documents have ids.

    pip install duckdb
    scripts/check_export.py STORE WEEK ID_COLUMN INPUTS EXPORTED      both as folders or globs of files

The rows that stay are those of the inputs without the ids of `clusters` that are not canonical (an anti-join). Exit code 1 if the export has
other rows, 4 if DuckDB is missing.
"""

import glob
import pathlib
import sys

try:
    import duckdb
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(4)


def files(path):
    """A table function of DuckDB over these files, which are of one format."""
    is_folder = pathlib.Path(path).is_dir()
    found = sorted(pathlib.Path(path).rglob("*.*") if is_folder else map(pathlib.Path, glob.glob(path, recursive=True)))
    # An export keeps its list in a hidden folder.
    hidden = lambda name: name.name.startswith("_") or any(part.startswith(".") for part in name.parts[len(pathlib.Path(path).parts) :])
    names = [str(name) for name in found if name.is_file() and not hidden(name)]
    if all(name.endswith(".parquet") for name in names):
        return f"read_parquet({names})"
    return f"read_json({names}, format='newline_delimited', ignore_errors=true)"


def main():
    store, week, column, inputs, exported = sys.argv[1:]
    gone = f"SELECT id FROM '{store}/clusters/week={week}/*.parquet' WHERE NOT canonical"
    # A line that is no JSON is a row of nulls.
    all_rows = f'SELECT * FROM {files(inputs)} WHERE "{column}" IS NOT NULL'
    wanted = f'SELECT a.* FROM ({all_rows}) a ANTI JOIN ({gone}) g ON CAST(a."{column}" AS VARCHAR) = g.id'
    found = f"SELECT * FROM {files(exported)}"
    count = lambda rows: duckdb.sql(f"SELECT count(*) FROM ({rows})").fetchall()[0][0]
    missing, other = count(f"{wanted} EXCEPT ALL {found}"), count(f"{found} EXCEPT ALL {wanted}")
    print(f"{count(found)} of {count(all_rows)} rows are exported; {missing} are missing, {other} should not be there")
    sys.exit(0 if missing == other == 0 else 1)


main()
