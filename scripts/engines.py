#!/usr/bin/env python3
"""Opens every table of a store with DuckDB, Polars, pyarrow, pandas and fastparquet, and compares what they read.

    scripts/engines.py STORE

Of each file: the metadata, the statistics and key-values (pyarrow), the rows (fastparquet, which shares no code with the others). Of each
table: all its weeks as one folder (pandas, pyarrow, Polars) and through views.sql (DuckDB). All must count the same rows, keep whole
numbers whole, and find the same row by URL. Exits with 1 and names the file or table where one does not.

If the store has a catalog, each table is also read as a table of Delta Lake (deltalake, and through it DuckDB and Polars).

It needs: pip install duckdb polars pyarrow pandas fastparquet deltalake
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

PACKAGES = ["duckdb", "polars", "pyarrow", "pandas", "fastparquet", "deltalake"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, metavar="STORE", help="the folder of a store")
    args = parser.parse_args()
    missing = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        fail(4, f"not installed: {', '.join(missing)} (pip install {' '.join(missing)})")

    import duckdb

    connection = duckdb.connect()
    connection.execute("SET VARIABLE nigh_store = ?", [f"{args.store}/"])
    connection.execute((args.store / "views.sql").read_text())
    tables = sorted(path.name for path in args.store.iterdir() if list(path.glob("week=*/*.parquet")))
    if not tables:
        fail(1, f"{args.store}: no folder TABLE/week=YYYY-MM-DD; is this a store?")
    for table in tables:
        files = sorted((args.store / table).glob("week=*/*.parquet"))
        rows = sum(rows_of(file) for file in files)
        counts = rows_of_table(args.store / table, table, connection)
        for engine, count in counts.items():
            check(count == rows, f"{table}: {engine} counts {count} rows, its files have {rows}")
        check_delta(args.store / table, files, rows)
        print(f"{table}\t{len(files)} files\t{rows} rows")
    by_name(args.store, connection)
    similarity(connection)
    for job in json.loads((args.store / "_nigh/manifest.json").read_text())["results"]:
        for folder in sorted({path.parent for path in (args.store / job).glob("*/*.parquet")}):
            files = sorted(folder.glob("*.parquet"))
            rows = sum(rows_of(file) for file in files)
            name = f"{job}_{folder.name}".replace("-", "_")
            count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            check(count == rows, f"{name}: DuckDB counts {count} rows, its files have {rows}")
            check_delta(folder, files, rows)
            print(f"{name}\t{len(files)} files\t{rows} rows")


def rows_of(file):
    """The rows of a file, after its metadata and every row group were read by two readers that share no code."""
    import fastparquet
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(file)
    opened.metadata.to_dict()
    key_values = opened.schema_arrow.metadata or {}
    check(b"nigh.table" in key_values, f"{file}: no key nigh.table in its metadata")
    for field in opened.schema_arrow:
        check((field.metadata or {}).get(b"description"), f"{file}: the column {field.name} has no description")
    groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
    for group in groups:
        for number in range(group.num_columns):
            statistics = group.column(number).statistics
            if statistics is not None and statistics.has_min_max:
                check(statistics.min <= statistics.max, f"{file}: statistics of {group.column(number).path_in_schema}")
    rows = opened.read().num_rows
    other = fastparquet.ParquetFile(str(file)).to_pandas()
    check(len(other) == rows, f"{file}: fastparquet reads {len(other)} rows, pyarrow {rows}")
    return rows


def rows_of_table(folder, table, connection):
    """The rows of a table, by engine."""
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

    frame = pd.read_parquet(folder)
    for column in ("cluster_id", "target_doc"):
        if column in frame:
            check(str(frame[column].dtype) in ("Int64", "int64"), f"{table}: pandas reads {column} as {frame[column].dtype}")
    dataset = ds.dataset(folder, partitioning="hive")
    lazy = pl.scan_parquet(folder / "week=*" / "*.parquet", hive_partitioning=True)
    check("week" in lazy.collect_schema().names(), f"{table}: Polars has no column week")
    view = table.replace("-", "_")
    return {
        "pandas": len(frame),
        "pyarrow": dataset.count_rows(),
        "Polars": lazy.select(pl.len()).collect().item(),
        "DuckDB": connection.execute(f"SELECT count(*) FROM {view}").fetchone()[0],
    }


def check_delta(folder, files, rows):
    """Reads a table by its log of Delta Lake, if it has one."""
    if not (folder / "_delta_log").exists():
        return
    import deltalake
    import duckdb
    import polars as pl

    table = deltalake.DeltaTable(folder)
    named = {Path(path).resolve() for path in table.file_uris()}
    check(named == {file.resolve() for file in files}, f"{folder}: its log names {len(named)} files, there are {len(files)}")
    described = all(field.metadata.get("comment") for field in table.schema().fields)
    check(described, f"{folder}: the log does not describe every column")
    dataset = table.to_pyarrow_dataset()
    counts = {
        "DuckDB": duckdb.connect().execute("SELECT count(*) FROM dataset").fetchone()[0],
        "Polars": pl.scan_delta(str(folder)).select(pl.len()).collect().item(),
    }
    for engine, count in counts.items():
        check(count == rows, f"{folder}: {engine} counts {count} rows by the log, its files have {rows}")


def by_name(store, connection):
    """Searches one document by its URL, or by its id, so that filters, statistics and Bloom filters are used."""
    import polars as pl
    import pyarrow.dataset as ds

    url, id, week = connection.execute("SELECT url, id, week FROM documents ORDER BY doc DESC, week LIMIT 1").fetchone()
    column, name = ("id", id) if url is None else ("url", url)
    if name is None:
        return
    found = {
        "DuckDB": connection.execute(f"SELECT count(*) FROM documents WHERE {column} = ? AND week = ?", [name, week]).fetchone()[0],
        "pyarrow": ds.dataset(store / "documents", partitioning="hive").count_rows(
            filter=(ds.field(column) == name) & (ds.field("week") == str(week))
        ),
        "Polars": pl.scan_parquet(store / "documents" / "week=*" / "*.parquet", hive_partitioning=True)
        .filter((pl.col(column) == name) & (pl.col("week") == week))
        .collect()
        .height,
    }
    # Several records may have one id.
    for engine, count in found.items():
        check(count == found["DuckDB"] > 0, f"documents: {engine} finds {count} rows of {name} in week {week}")


def similarity(connection):
    """Compares the macros of views.sql with the evidence that nigh wrote."""
    rows = connection.execute(
        """
        SELECT count(*), count(*) FILTER (
            abs(nigh_similarity(a.features, b.features) - e.similarity) > 1e-6
            OR nigh_agreements(a.supershingles, b.supershingles) <> e.agreements)
        FROM (SELECT * FROM evidence ORDER BY week, doc LIMIT 200) e
        JOIN features a ON a.doc = e.doc AND a.week = e.week
        JOIN features b ON b.doc = e.neighbour AND b.week = e.week
        """
    ).fetchone()
    check(rows[0] > 0 and rows[1] == 0, f"views.sql: {rows[1]} of {rows[0]} rows of evidence have another similarity")


def check(holds, message):
    if not holds:
        fail(1, message)


def fail(code, message):
    print(f"engines.py: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
