#!/usr/bin/env python3
"""Three questions to the tables of a store, each asked with another engine.

    scripts/queries.py STORE [--week YYYY-MM-DD]

1. DuckDB: which clusters are the largest, and on how many hosts are they?
2. Polars: which pages can be dropped, if the canonical page of each cluster stays?
3. pyarrow: which pages are in a cluster on the weakest evidence?

If the store has the tables of `nigh run jobs/overlap.toml`, DuckDB answers three more:

4. Which pages are a part of a larger page?
5. Which hosts share text in the most pairs of pages?
6. Which families of pages have one text or template?

If it has those of `nigh run jobs/collections.toml`, three more:

7. Which sets of pages were copied most often, and where is the principal copy?
8. Where are the copies of the largest of them?
9. Which prefixes need a crawler not fetch?

If it has those of `nigh run jobs/mirrors-by-url.toml`, three more:

10. Which hosts have names and paths in common, and are they mirrors?
11. Which mirrors are found by content, by URL, or both ways?
12. What should a crawler fetch to test the best pairs?

The tables are plain Parquet, so that each query works alone, copied into a shell or a notebook. Without --week
the latest week is read. Needs: pip install duckdb polars pyarrow

Exit codes: 0 each engine found rows, 1 a table is missing or has no such rows, 2 wrong use, 4 a package is not installed.
"""

import argparse
import glob
import importlib.util
import json
import signal
import sys
from pathlib import Path

PACKAGES = ["duckdb", "polars", "pyarrow"]
ROWS = 10


def main():
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `queries.py STORE | head` ends quietly
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, metavar="STORE", help="the folder of a store")
    parser.add_argument("--week", metavar="YYYY-MM-DD", help="the date of a week (default: the latest)")
    args = parser.parse_args()

    missing = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        fail(4, f"not installed: {', '.join(missing)} (pip install {' '.join(missing)})")

    week = week_of(args.store, args.week)
    clusters, evidence = files(args.store, "clusters", week), files(args.store, "evidence", week)
    found = [largest(clusters), dropped(clusters), weakest(evidence, clusters)]
    if (args.store / "overlap").is_dir():
        found += overlaps(args.store)
    if (args.store / "collections").is_dir():
        found += collections(args.store)
    if (args.store / "mirrors-by-url").is_dir():
        found += mirrors_by_url(args.store)
    if (args.store / "paragraphs").is_dir():
        found += paragraphs(args.store)
    if not all(found):
        fail(1, f"{args.store}, week {week}: a query found no rows; are there no clusters of several pages?")


def largest(clusters):
    """Shows the largest clusters of very similar pages, with one page each. Gives how many."""
    import duckdb

    rows = duckdb.execute(
        """
        SELECT cluster_id, count(*) AS pages, count(DISTINCT host) AS hosts, min(url) FILTER (canonical) AS page
        FROM read_parquet($clusters)
        WHERE similar_size > 1
        GROUP BY similar_root, cluster_id
        ORDER BY pages DESC, similar_root
        LIMIT $rows
        """,
        {"clusters": [glob.escape(path) for path in clusters], "rows": ROWS},
    ).fetchall()
    show(f"DuckDB: the {len(rows)} largest clusters", ["cluster_id", "pages", "hosts", "canonical page"], rows)
    return len(rows)


def dropped(clusters):
    """Shows the pages that are copies of a canonical page elsewhere. Gives how many."""
    import polars as pl

    copies = pl.scan_parquet(clusters, glob=False).filter((pl.col("similar_size") > 1) & ~pl.col("canonical"))
    count = copies.select(pl.len()).collect().item()
    first = copies.select("url").sort("url").head(ROWS).collect()
    show(f"Polars: {count} pages to drop, the first {len(first)}", ["url"], first.rows())
    return count


def weakest(evidence, clusters):
    """Shows the pairs of pages with the lowest similarity that put a page into a cluster. Gives how many."""
    import pyarrow.dataset as ds

    # Only the pairs shown are joined to their URLs: the evidence of a large week need not fit in memory twice.
    pairs = ds.dataset(evidence).to_table(columns=["doc", "neighbour", "agreements", "similarity"])
    pairs = pairs.sort_by([("similarity", "ascending"), ("doc", "ascending")]).slice(0, ROWS)
    pages = ds.dataset(clusters)
    for doc in ("doc", "neighbour"):
        urls = pages.to_table(
            columns={doc: ds.field("doc"), f"{doc}_url": ds.field("url")},
            filter=ds.field("doc").isin(pairs[doc].combine_chunks()),
        )
        pairs = pairs.join(urls, doc, join_type="inner")
    pairs = pairs.sort_by([("similarity", "ascending"), ("doc", "ascending")])
    rows = [
        (f"{row['similarity']:.3f}", row["agreements"], row["doc_url"], row["neighbour_url"])
        for row in pairs.to_pylist()
    ]
    show(f"pyarrow: the {len(rows)} weakest links", ["similarity", "agreements (of 6)", "page", "neighbour"], rows)
    return len(rows)


def asker(store, folders):
    """Asks DuckDB about tables of a store, by the names of their folders."""
    import duckdb

    def ask(title, names, query):
        asked = {name: f"{glob.escape(str(store / path))}/*.parquet" for name, path in folders.items() if f"${name}" in query}
        rows = duckdb.execute(query, {**asked, "rows": ROWS}).fetchall()
        show(title, names, rows)
        return len(rows)

    return ask


def overlaps(store):
    """Shows three results of the overlap job. Gives how many rows each has; a crawl may lack such pages."""
    documents = f"documents/week={job_week(store, 'overlap')}"
    ask = asker(store, {"overlap": "overlap/overlap", "families": "overlap/families", "documents": documents})
    ask(
        "DuckDB: pages that are a part of a larger page",
        ["shared", "of the part", "of the whole", "part", "whole"],
        """
        WITH either AS (
            SELECT doc_a AS part, doc_b AS whole, shared, containment_a AS of_part, containment_b AS of_whole
            FROM read_parquet($overlap) WHERE chunking = 'two-lines'
            UNION ALL
            SELECT doc_b, doc_a, shared, containment_b, containment_a
            FROM read_parquet($overlap) WHERE chunking = 'two-lines'
        )
        SELECT shared, round(of_part, 2), round(of_whole, 2), p.url, w.url
        FROM either
        JOIN read_parquet($documents) p ON p.doc = part
        JOIN read_parquet($documents) w ON w.doc = whole
        WHERE of_part >= 0.8 AND of_whole < of_part
        ORDER BY of_part - of_whole DESC, part, whole
        LIMIT $rows
        """,
    )
    ask(
        "DuckDB: hosts that share text in the most pairs of pages",
        ["chunking", "pairs", "host", "other host"],
        """
        SELECT chunking, count(*) AS pairs, least(a.host, b.host) AS one, greatest(a.host, b.host) AS other
        FROM read_parquet($overlap)
        JOIN read_parquet($documents) a ON a.doc = doc_a
        JOIN read_parquet($documents) b ON b.doc = doc_b
        WHERE a.host <> b.host
        GROUP BY chunking, one, other
        ORDER BY pairs DESC, chunking, one, other
        LIMIT $rows
        """,
    )
    families = ask(
        "DuckDB: the largest families of pages with one text or template",
        ["chunking", "pages", "hosts", "pairs", "first page"],
        """
        SELECT chunking, count(*) AS pages, count(DISTINCT d.host), count(*) * (count(*) - 1) // 2, min(url) FILTER (d.doc = family)
        FROM read_parquet($families)
        JOIN read_parquet($documents) d USING (doc)
        GROUP BY chunking, family
        ORDER BY pages DESC, chunking, family
        LIMIT $rows
        """,
    )
    return [families]


def collections(store):
    """Shows three results of the collections job. Gives how many rows the first two have; a crawl may have nothing to avoid."""
    tables = {name: f"collections/{name}" for name in ["clusters", "collections", "avoid"]}
    ask = asker(store, tables)
    found = [
        ask(
            "DuckDB: the sets of pages that were copied most often",
            ["copies", "pages of each", "pages in all", "principal copy"],
            """
            SELECT cardinality, size, k.pages, coalesce(nullif(prefix, ''), url)
            FROM read_parquet($clusters) k
            JOIN read_parquet($collections) c USING (cluster)
            WHERE principal
            ORDER BY cardinality * size DESC, cluster
            LIMIT $rows
            """,
        ),
        ask(
            "DuckDB: the copies of the largest of them",
            ["pages", "links from other hosts", "principal", "prefix"],
            """
            SELECT pages, in_links, principal, prefix
            FROM read_parquet($collections)
            WHERE cluster = (SELECT cluster FROM read_parquet($clusters) ORDER BY cardinality * size DESC, cluster LIMIT 1)
            ORDER BY pages DESC, collection
            LIMIT $rows
            """,
        ),
    ]
    ask(
        "DuckDB: prefixes that need not be fetched",
        ["pages", "bytes", "prefix", "principal copy"],
        """
        SELECT pages, bytes, prefix, principal_url
        FROM read_parquet($avoid)
        ORDER BY bytes DESC, prefix
        LIMIT $rows
        """,
    )
    return found


def mirrors_by_url(store):
    """Shows three results of the mirrors-by-url job. Gives how many rows the first has; a crawl may have no mirrors."""
    tables = {name: f"mirrors-by-url/{name}" for name in ["candidates", "compared", "probes"]}
    ask = asker(store, tables)
    found = ask(
        "DuckDB: pairs of hosts with names and paths in common",
        ["score", "level", "host", "other host", "tests that match", "tests that do not"],
        """
        SELECT round(score, 2), level, host_a, host_b, fm + fs + hs, tf + ts + ns
        FROM read_parquet($candidates)
        ORDER BY rank
        LIMIT $rows
        """,
    )
    ask(
        "DuckDB: mirrors by content and by URL",
        ["shared clusters", "by content", "by URL", "host or prefix", "other one"],
        """
        SELECT shared, by_content, by_url, coalesce(prefix_a, host_a), coalesce(prefix_b, host_b)
        FROM read_parquet($compared)
        ORDER BY shared DESC, 4, 5
        LIMIT $rows
        """,
    )
    ask(
        "DuckDB: URLs to fetch",
        ["pair", "URL"],
        """
        SELECT rank, url
        FROM read_parquet($probes)
        ORDER BY rank, url
        LIMIT $rows
        """,
    )
    return [found]


def paragraphs(store):
    """Shows three results of the paragraphs job. Gives how many rows the first has."""
    tables = {name: f"paragraphs/{name}" for name in ["boilerplate", "growth", "births", "parents"]}
    ask = asker(store, tables)
    found = ask(
        "DuckDB: paragraphs of many pages, which a cleaner can drop",
        ["paragraph", "pages", "hosts", "host with most", "example", "place"],
        """
        SELECT paragraph, documents, hosts, host, url, place
        FROM read_parquet($boilerplate)
        ORDER BY documents DESC, paragraph
        LIMIT $rows
        """,
    )
    ask(
        "DuckDB: duplicates grow with the parts of the crawl that are searched",
        ["parts", "pages", "duplicates", "share of all"],
        """
        SELECT step, documents, duplicates, round(duplicates / greatest(max(duplicates) OVER (), 1), 3)
        FROM read_parquet($growth)
        ORDER BY step
        LIMIT $rows
        """,
    )
    ask(
        "DuckDB: pages of the week before of which most new pages have text",
        ["parent", "new pages", "on other hosts", "text of other pages, too"],
        """
        SELECT parent, count(*), count(*) FILTER (NOT same_host), count(*) FILTER (parents > 1)
        FROM read_parquet($parents) JOIN read_parquet($births) USING (doc)
        GROUP BY parent
        ORDER BY 2 DESC, parent
        LIMIT $rows
        """,
    )
    return [found]


def job_week(store, job):
    """The week that a job was about."""
    commit = json.loads((store / "_nigh/manifest.json").read_text())["results"][job]
    return json.loads((store / f"_nigh/{job}/{commit:05}/summary.json").read_text())["last"]


def week_of(store, week):
    """A week of a store, or the latest one."""
    weeks = sorted(path.name.removeprefix("week=") for path in (store / "clusters").glob("week=*") if path.is_dir())
    if not weeks:
        fail(1, f"{store}: no folder clusters/week=YYYY-MM-DD; is this a store?")
    if week is None:
        return weeks[-1]
    if week not in weeks:
        fail(1, f"{store}: no week {week}; there are {', '.join(weeks)}")
    return week


def files(store, table, week):
    """The files of a table of a week."""
    found = sorted(str(path) for path in (store / table / f"week={week}").glob("*.parquet"))
    if not found:
        fail(1, f"{store}: the table {table} of week {week} is missing")
    return found


def show(title, names, rows):
    """Prints rows under their names, with tabs between: a terminal and a spreadsheet read it."""
    print(f"{title}\n")
    print("\t".join(names))
    for row in rows:
        print("\t".join(str(value) for value in row))
    print()


def fail(code, message):
    print(f"queries.py: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
