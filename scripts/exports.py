#!/usr/bin/env python3
"""Random exports, each held against a model that decides from the tables and the inputs what must be written.

    scripts/exports.py --nigh target/release/nigh --seeds 0..300
    scripts/exports.py --nigh target/release/nigh --seeds 17 --keep exports
    scripts/exports.py --nigh target/release/nigh --seeds 0..0 --kills 0..100

A history, drawn by its seed, is one to six batches of WARC, JSON Lines, CSV, TSV, Parquet or text files with copies, near copies, texts without
words and bad records; pages are replaced by later batches or --replace, and deleted; old weeks are vacuumed. The model keeps which record is the
document of each URL or id, and `documents` must say the same. Then come exports with random flags: the model takes the clusters from
`clusters`, and says which records must be in which file, in which order, with which bytes or values, and how many are left out, by the reason; or
that the export is refused. Inputs must stay as they were, and nothing may be left beside the files.

With --kills exports are killed at their N-th operation on files or at a random moment, and given again; or a second export is started while
one runs; or what nigh did not write is in the way.

Needs Linux, cc, and pyarrow. Exit codes: 0 all agree, 1 some do not (each with the command that shows it again), 2 wrong use,
4 something is not installed.
"""

import argparse
import functools
import gzip
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import histories
from histories import HOSTS, Failure, Site, digest_of, record_of, seeds

try:
    import pyarrow as pa
    import pyarrow.parquet as parquet
except ImportError as error:
    print(f"exports: not installed: {error.name} (pip install pyarrow)", file=sys.stderr)
    sys.exit(4)

# What the fields of lines have: each field of numbers has those of one row.
NUMBERS = [
    ["0", "-0", "7", "9007199254740993", "9223372036854775807", "-9223372036854775808"],
    ["0", "9223372036854775808", "18446744073709551615"],
    ["-1", "18446744073709551616", "99999999999999999999999999999999999999"],
    ["0.1", "-0.0", "1.5e3", "1E-7", "5e-324", "9007199254740992"],
    ["0.10000000000000000555", "9007199254740993.25", "-3"],
    ["1e400", "1", "-1.25", "123456789012345678901234567890.123456789012345678"],
]
SHAPES = {
    "list": ["[]", "null", "[null,[1,null]]", "[[2],[]]", "[[9223372036854775808],null]"],
    "object": ['{"x":null,"y":true}', '{"y":false,"z":{"deep":[{"q":1.5},{}]}}', "null", '{"x":"t","x":"u"}', "{}"],
    "mixed": ["true", '"s"', "12.50", "null"],
}
LINES = ["  menu of all pages", "menu of all pages", "a notice, \u201cas everywhere\u201d", "ok", "", "\tpage 7 of the series\r"]
WORDLESS = ["", "!!!", "\u2192 \u2190", "?\n"]
POLICIES = ["first", "longest", "newest", "shortest-url", "per-host", "root"]
COUNTS = ["documents", "written", "others", "revisits", "outside", "kept_whole", "paragraphs", "paragraph_bytes", "passages", "passage_bytes", "emptied",
          "near_duplicates"]
REASONS = ["not_of_week", "failed", "revisits", "media_types", "attached", "bad"]
OWN = ["nigh_cluster", "nigh_size", "nigh_rank", "nigh_stays"]
LIST = ".nigh-export/list.jsonl"
PROFILE = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
# The ids of revisit records, and what stands for them here.
NEW_ID, NEW = re.compile(rb"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>"), b"<new>"
# Weeks that cannot be made, of which the history then has none.
NO_WEEK = ("no page", "cannot be computed again")


@dataclass
class Item:
    """A record of an input: `raw` is as it is stored, or in files of lines as it is uncompressed."""

    kind: str
    raw: bytes = b""
    key: str = None
    text: str = ""
    offset: int = 0
    # Its values by name; of a record beside a capture, that one; of a line the text as it is written, of WARC the record.
    row: dict = None
    of: object = None
    plain: bytes = b""


@dataclass
class File:
    name: str
    format: str
    packing: str
    items: list = field(default_factory=list)
    head: bytes = b""
    # Whether each record is a member, and so is copied as it is stored.
    has_members: bool = False
    # Whether a member has several records, of which none can be copied alone.
    shares_members: bool = False


class Num(str):
    """A number of JSON, as it is written."""


def parsed(line):
    return json.loads(line, parse_int=Num, parse_float=Num)


def is_void(value):
    """Whether a value has nothing that a column could keep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return value is None or isinstance(value, (dict, list)) and all(map(is_void, inner))


def same(a, b):
    """Whether a value of an input and one of an export are the same. Columns that are void everywhere may be left out."""
    if isinstance(a, dict) and isinstance(b, dict):
        return all(same(a.get(name), b[name]) if name in b else is_void(a.get(name)) for name in {*a, *b})
    if isinstance(a, dict) or isinstance(b, dict):
        return is_void(a) and is_void(b) and not isinstance(a, list)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return a is b or isinstance(a, bool) and b == str(a).lower()
    if isinstance(a, Num) and type(b) is str:
        return str(a) == b
    if isinstance(a, (Num, Decimal, int, float)) and isinstance(b, (Num, Decimal, int, float, str)):
        number = lambda value: Decimal(repr(value)) if type(value) is float else Decimal(value)
        return number(a) == number(b)
    if isinstance(a, datetime):
        in_utc = lambda time: time.replace(tzinfo=time.tzinfo or timezone.utc)
        return in_utc(a) == in_utc(b if isinstance(b, datetime) else datetime.fromisoformat(b.replace("Z", "+00:00")))
    return b in (a, a.isoformat() if isinstance(a, date) else a.hex() if isinstance(a, bytes) else a)


# --- Inputs.


class Texts(Site):
    """Texts of which some have no words, and some have lines that others have, too."""

    def text(self):
        rng, kind = self.rng, self.rng.random()
        text = rng.choice(WORDLESS) if kind < 0.08 else super().text()
        if 0.08 < kind < 0.5:
            lines = [text, *rng.choices(LINES, k=rng.randint(1, 3))]
            text = "\n".join(rng.sample(lines, len(lines))) + rng.choice(["", "", "\n"])
        elif kind < 0.55:
            text = text.replace(" ", ' "q\\ \u00e9\U0001f600 ', 1)
        return text if text.split() else ""


def fill_lines(rng, file, rows, key, numbers):
    end, is_ascii = rng.choice([b"\n", b"\n", b"\r\n"]), rng.random() < 0.5
    for _, value, text, day in rows:
        token = json.dumps(text, ensure_ascii=is_ascii)
        fields = [] if key == "place" else [(key, value if value.isdigit() and rng.random() < 0.6 else json.dumps(value))]
        fields += [("text", token), ("date", json.dumps(day))]
        fields += [(f"n{n}", rng.choice(pool)) for n, pool in enumerate(numbers) if rng.random() < 0.8]
        fields += [(name, rng.choice(pool)) for name, pool in SHAPES.items() if rng.random() < 0.7]
        colon, comma = rng.choice([(":", ","), (" : ", ", ")])
        line = "{" + comma.join(json.dumps(name) + colon + value for name, value in rng.sample(fields, len(fields))) + rng.choice(["}", " }"])
        file.items.append(Item("page", line.encode(), value, text, plain=token.encode()))
    for _ in range(rng.choice([0, 0, 1, 2])):
        kinds = [Item("bad", b"no JSON"), Item("bad", b'{"id":"77","text":null}')]
        # A line that nothing names is a page, but no document.
        kinds += [] if key == "place" else [Item("page", b'{"text":"nothing names it"}')]
        file.items.insert(rng.randint(0, len(file.items)), rng.choice(kinds))
    for item in file.items:
        item.raw += end + (b"\n" if rng.random() < 0.05 else b"")
    file.items[-1].raw = file.items[-1].raw.rstrip() if rng.random() < 0.3 else file.items[-1].raw
    file.items[0].raw = (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + file.items[0].raw


def fill_table(rng, file, rows, key):
    delimiter = "," if file.format == "csv" else "\t"
    names = rng.sample(["text", "date", "note"] + [key] * (key != "place"), 3 + (key != "place"))

    def quoted(value):
        needs_quotes = not value or any(mark in value for mark in (delimiter, '"', "\n", "\r")) or rng.random() < 0.2
        return '"' + value.replace('"', '""') + '"' if needs_quotes else value

    file.head = (rng.choice(["", "", "\ufeff"]) + delimiter.join(names) + "\n").encode()
    for _, value, text, day in rows:
        row = {key: value, "text": text, "date": day, "note": rng.choice(["", "a, b", 'x "y"\nz', "007", "\u00e9"])}
        raw = delimiter.join(quoted(row[name]) for name in names) + rng.choice(["\n", "\n", "\r\n"])
        file.items.append(Item("page", raw.encode(), value, text, row={name: row[name] for name in names}))
        file.items += [Item("bad", b"short\n")] * (rng.random() < 0.04)
    file.items[-1].raw = file.items[-1].raw.rstrip(b"\r\n") if rng.random() < 0.3 else file.items[-1].raw


def fill_parquet(rng, file, rows, key, path):
    keys, texts = [row[1] for row in rows], [row[2] if rng.random() < 0.95 else None for row in rows]
    some = lambda make, kind: pa.array([make(n) if rng.random() < 0.7 else None for n in range(len(rows))], kind)
    are_numbers = all(value.isdigit() for value in keys) and rng.random() < 0.5
    of_key = pa.array([int(value) for value in keys], pa.uint64()) if are_numbers else pa.array(keys)
    group = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    others = {
        "u64": lambda: some(lambda n: 2**64 - 1 - n, pa.uint64()),
        "real": lambda: some(lambda n: rng.choice([-0.0, 0.1, 1e300, float(n)]), pa.float64()),
        "half": lambda: some(lambda n: rng.choice([0.5, 3.25]), pa.float32()),
        "bytes": lambda: some(lambda n: bytes([n % 256, 255]), pa.binary()),
        "time": lambda: some(lambda n: datetime(1 + n, 1, 1, 2, 3, 4, n), pa.timestamp("us", rng.choice([None, "UTC"]))),
        "day": lambda: some(lambda n: date(1 + 97 * n % 9999, 1, 1), pa.date32()),
        "decimal": lambda: some(lambda n: Decimal(n) + Decimal("0.01"), pa.decimal128(30, 2)),
        "tag": lambda: some(lambda n: f"t{n % 3}", pa.string()).dictionary_encode(),
        "list": lambda: some(lambda n: [None if n % 2 else n] * (n % 3), pa.list_(pa.int64())),
        "group": lambda: some(lambda n: {"a": n, "b": [{"c": f"{n}"}] if n % 2 else None}, group),
    }
    columns = {"text": pa.array(texts, rng.choice([pa.string(), pa.large_string()])), "date": pa.array([row[3] for row in rows])}
    columns |= {} if key == "place" else {key: of_key}
    columns |= {name: others[name]() for name in rng.sample(list(others), rng.randint(1, len(others)))}
    table = pa.table(dict(rng.sample(list(columns.items()), len(columns))))
    parquet.write_table(
        table.replace_schema_metadata({"huggingface": '{"info":{}}', "own": "v1"} if rng.random() < 0.5 else None),
        path,
        row_group_size=rng.choice([1, 3, 7, 1000]),
        compression=rng.choice(["none", "snappy", "gzip", "brotli", "lz4", "zstd"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        data_page_size=rng.choice([100, 1 << 20]),
        use_dictionary=rng.random() < 0.5,
        store_schema=rng.random() < 0.7,
        use_deprecated_int96_timestamps=rng.random() < 0.2,
    )
    for n, (value, text) in enumerate(zip(keys, texts)):
        file.items.append(Item("bad" if text is None else "page", key=value, text=text, offset=n))


def fill_warc(rng, file, captures, day):
    """Captures are (kind, URL, text, the URL and the body that a revisit refers to)."""
    number = rng.randrange(10**9)

    def record(kind, name, url, fields, block, media="application/http; msgtype=response"):
        fields = f"WARC-Record-ID: <urn:x:{name}-{number}>\r\n{fields}"
        text = record_of(kind, url, f"{day}T00:00:0{number % 10}Z", fields, block)
        return text.replace("application/http; msgtype=response", media, 1).encode()

    def page(media, body, status="200 OK"):
        return f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\n\r\n{body}"

    info = lambda name: Item("info", record("warcinfo", name, "", "", f"software: {name}", "application/warc-fields"))
    groups = [[info("info")]]
    for place, (kind, url, text, of) in enumerate(captures):
        name, given = f"c{place}", url.replace("http", "HTTP", 1) + "#part" if url and rng.random() < 0.1 else url
        body = text if kind == "conversion" else f"<html><title>t{len(text)}</title><p>{text}</p>"
        concurrent = lambda other: f"WARC-Concurrent-To: <urn:x:{other}-{number}>\r\n"
        # Either the capture names its request, or this names the capture.
        is_named, request_first = rng.random() < 0.5, rng.random() < 0.5
        fields = (concurrent(f"request-{place}") if is_named else "") + f"WARC-Payload-Digest: {digest_of(body)}\r\nWARC-Block-Digest: sha1:X\r\n"
        refers = f"{PROFILE}WARC-Payload-Digest: {digest_of(of[1])}\r\nWARC-Refers-To-Target-URI: {of[0]}\r\n" if of else ""
        type_of_record, what_fields, block, media = {
            "page": ("response", fields, page("text/html; charset=utf-8", body), None),
            "resource": ("resource", fields, body, "text/html"),
            "conversion": ("conversion", fields, body, "text/plain"),
            "media": ("response", fields, page("image/png", "\x01"), None),
            "failed": ("response", fields, page("text/html", "x", text), None),
            "revisit": ("revisit", refers, page("text/html", ""), None),
            "unchanged": ("response", "", page("text/html", "", "304 Not Modified"), None),
            "bad": ("response", "", page("text/html", "x"), None),
        }[kind]
        row = {"url": given, "status": 200, "media_type": media if kind == "conversion" else "text/html", "words": text.split()}
        row["title"] = None if kind == "conversion" else f"t{len(text)}"
        capture = Item({"resource": "page", "conversion": "page", "unchanged": "revisit"}.get(kind, kind), key=url, text=body, row=row)
        capture.raw = record(type_of_record, name, given, what_fields, block, *([media] if media else []))
        group = [capture]
        if kind not in ("revisit", "unchanged", "bad"):
            beside = lambda other, fields: Item("beside", record(other, f"{other}-{place}", given, fields, "GET / HTTP/1.1\r\n\r\n"), of=capture)
            request = beside("request", "" if is_named else concurrent(name))
            metadata = beside("metadata", f"WARC-Refers-To: <urn:x:{name}-{number}>\r\n")
            group = [*([request, capture] if request_first else [capture, request]), metadata]
        groups.append([item for item in group if item is capture or rng.random() < 0.7])
    file.items = [item for group in groups for item in group]
    if rng.random() < 0.3:
        file.items.append(Item("beside", record("metadata", "log", "metadata://log", "", "the log", "text/plain")))
    if rng.random() < 0.2:
        file.items.insert(1, info("other"))


def pack(data, packing):
    if packing == ".gz":
        return gzip.compress(data, 1, mtime=0)
    return pa.compress(data, "zstd", asbytes=True) if packing else data


def unpack(data, packing):
    return pa.CompressedInputStream(pa.BufferReader(data), {".gz": "gzip", ".zst": "zstd"}[packing]).read() if packing else data


def store_file(rng, file, path):
    """Gives the records their offsets, and writes the file."""
    file.has_members = file.format == "warc" and (not file.packing or rng.random() < 0.7)
    cuts = [0, *sorted(rng.sample(range(1, len(file.items)), min(max(len(file.items) - 1, 0), rng.randint(1, 3)))), len(file.items)]
    file.shares_members = file.has_members and bool(file.packing) and len(file.items) > len(cuts) - 1 > 1 and rng.random() < 0.1
    if file.shares_members:
        store_shared(file, path, cuts)
        return
    at = len(file.head)
    for item in file.items:
        item.offset, item.plain = at, item.raw if file.format == "warc" else item.plain
        item.raw = pack(item.raw, file.packing) if file.has_members else item.raw
        at += len(item.raw)
    parts = [file.head, *(item.raw for item in file.items)]
    # Files of lines are one or two members.
    cut = 0 if file.format == "warc" else rng.randint(0, len(parts))
    members = [b"".join(parts[:cut]), b"".join(parts[cut:])]
    path.write_bytes(b"".join(parts if file.has_members else (pack(member, file.packing) for member in members if member)))


def store_shared(file, path, cuts):
    """Writes members of several records: the place of a record is that of its member, and the number of those before it there."""
    stored = b""
    for begin, end in itertools.pairwise(cuts):
        for number, item in enumerate(file.items[begin:end]):
            item.offset, item.plain = len(stored) + number, item.raw
        stored += pack(b"".join(item.raw for item in file.items[begin:end]), file.packing)
    path.write_bytes(stored)


# --- The model.


def read_table(store, name, week, columns):
    paths = sorted((store / name / f"week={week}").glob("*.parquet"))
    table = pa.concat_tables(parquet.ParquetFile(path).read(columns) for path in paths)
    if "fetched" in columns:
        table = table.set_column(table.column_names.index("fetched"), "fetched", table["fetched"].cast("int64"))
    return [row | ({"crawled": str(row["crawled"])} if "crawled" in row else {}) for row in table.to_pylist()]


def verdicts_of(store, week, level, policy, since, older=False):
    """What becomes of each record that is a document, by its place: (week, file, offset). `older` says that those before `since` are there, too."""
    columns = ["doc", "file", "offset", "crawled", "words", "bytes", "fetched", "url", "given_url", "record_url", "host", "id"]
    clusters = {row["doc"]: row for row in read_table(store, "clusters", week, ["doc", f"{level}_root", f"{level}_size", "canonical"])}
    of_cluster, found, infinite = {}, {}, float("inf")
    for row in read_table(store, "documents", week, columns):
        of_doc = clusters[row["doc"]]
        row |= {"place": (row["crawled"], row["file"], row["offset"]), "cluster": of_doc[f"{level}_root"], "canonical": of_doc["canonical"]}
        row |= {"url": row["given_url"] or row["url"], "size": of_doc[f"{level}_size"], "canonical_url": row["url"]}
        row["is_new"] = since is None or row["crawled"] >= since
        of_cluster.setdefault(row["cluster"] if row["size"] > 1 else ("alone", row["doc"]), []).append(row)
    order = {
        "longest": lambda row: (-row["words"], -row["bytes"]),
        "newest": lambda row: infinite if row["fetched"] is None else -row["fetched"],
        "shortest-url": lambda row: infinite if row["canonical_url"] is None else len(row["canonical_url"].encode()),
        "root": lambda row: 0,
    }.get(policy, lambda row: row["place"])
    for rows in of_cluster.values():
        rows.sort(key=lambda row: (row["is_new"], order(row), row["doc"]))
        stay = {}
        for rank, row in enumerate(rows, 1):
            first = stay.setdefault(row["host"] if policy == "per-host" else None, row)
            row |= {"rank": rank, "stays": first is row, "first": first}
            if row["is_new"]:
                found.setdefault(row["place"], []).append(row)
            elif older:
                found.setdefault(row["place"], []).append(row)
    # A record may be the page of several documents, whose revisits name it: it stays if one of them does. The verdict is that of the
    # document with its URL, or else of one that stays.
    for place, rows in found.items():
        first = min(rows, key=lambda row: (row["record_url"] is not None, not row["stays"], row["doc"]))
        found[place] = first | {"stays": any(row["stays"] for row in rows)}
    return dict(sorted(found.items()))


def replace(verdicts, files, policy):
    """Says of each record of WARC that goes what it refers to: the first record of its cluster with its payload; None, if it is written whole."""
    firsts = {}
    for row in sorted(verdicts, key=lambda row: (not row["stays"], row["rank"], row["place"])):
        file = files[row["place"][:2]]
        if row["size"] < 2 or file.format != "warc":
            continue
        record = next(item.plain for item in file.items if item.offset == row["place"][2])
        form = [re.search(b"\r\nWARC-%s: (.+?)\r\n" % name, record)[1] for name in (b"Type", b"Payload-Digest")]
        key = (row["cluster"], row["host"] if policy == "per-host" else None, *form)
        first, place = firsts.setdefault(key, (record, row["place"]))
        row["refers_to"], row["of_week"] = (None, None) if first is record else (first, place[0])


@dataclass
class Options:
    week: str
    what: str = "kept"
    level: str = "similar"
    format: str = "same"
    keep: str = None
    since: str = None
    others: bool = False
    revisits: bool = False
    # What earlier weeks have is not modelled; what older batches of a week have is.
    alone: bool = False
    min_count: int = 2
    min_length: int = 1
    list: str = None

    def flags(self):
        flags = []
        for name, value in vars(self).items():
            if value not in (None, False) and name != "list":
                flags += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return flags


def without_repeated(texts, least_count, least_characters):
    """Yields texts without the lines that others before have, and how many went; None for a text of which nothing is left."""
    is_long = lambda line: line.strip() and len(line.strip()) >= least_characters
    counts, seen = {}, set()
    for line in (line.strip() for text in texts for line in text.split("\n") if is_long(line)):
        counts[line] = counts.get(line, 0) + 1
    for text in texts:
        kept, lines = [], text.split("\n")
        for line in lines:
            if not is_long(line) or counts[line.strip()] < least_count or line.strip() not in seen:
                kept.append(line)
            seen |= {line.strip()} if is_long(line) else set()
        left = "\n".join(kept)
        yield text if len(kept) == len(lines) else left if left.strip() else None, len(lines) - len(kept)


class Model:
    """What an export must have. `files` are those of all batches by (week, name), `inputs` those that the week has."""

    def __init__(self, store, files, inputs, options, policy):
        self.options, self.files_of_all = options, files
        level = "similar" if options.level == "paragraph" else options.level
        keep = options.keep or policy
        self.verdicts = verdicts_of(store, options.week, level, keep, options.since)
        if options.revisits:
            all_of_week = verdicts_of(store, options.week, level, keep, options.since, older=True)
            replace(all_of_week.values(), files, keep)
            self.verdicts = {place: all_of_week[place] for place in self.verdicts}
        self.inputs = {key: files[key] for key in inputs if options.since is None or key[0] >= options.since}
        self.counts = dict.fromkeys(COUNTS, 0)
        self.left_out = dict.fromkeys(REASONS, 0)
        # The files that are written.
        self.count = 0

    def wants(self, verdict):
        return self.options.what == "annotated" or verdict["stays"] == (self.options.what == "kept")

    def is_same(self, file):
        return self.options.format in ("same", "warc", file.format)

    def refused(self):
        """The exit code of an export that is refused, or 0."""
        options, formats = self.options, {file.format for file in self.inputs.values()}
        is_kept = options.what == "kept" and not options.list
        wrong = options.revisits and (not is_kept or options.level != "exact" or options.format not in ("same", "warc"))
        wrong = wrong or options.list and options.format != "same" or not is_kept and (options.others or options.level == "paragraph")
        # Also where the week has no batch from `since` on.
        if wrong or options.since is not None and options.since > options.week:
            return 2
        failed = options.format == "warc" and formats - {"warc"} or options.level == "paragraph" and formats - {"jsonl", "parquet", "text"}
        same = {file.format for file in self.inputs.values() if self.is_same(file)}
        failed = failed or options.what == "annotated" and same & {"warc", "text"}
        failed = failed or any(file.shares_members and self.is_same(file) for file in self.inputs.values())
        return int(not options.list and bool(failed or len(set(self.paths())) < len(self.inputs)))

    def paths(self):
        """The files that are written: below the folder that all inputs have in common."""
        names = [file.name.split("/") for file in self.inputs.values()]
        common = len(os.path.commonprefix([parts[:-1] for parts in names])) if names else 0
        paths = ["/".join(parts[common:]) for parts in names]
        other = lambda file, path: path.removesuffix(file.packing).rsplit(".", 1)[0] + "." + self.options.format
        return [path if self.is_same(file) else other(file, path) for file, path in zip(self.inputs.values(), paths)]

    def listed(self):
        listed = [verdict for verdict in self.verdicts.values() if self.wants(verdict)]
        self.counts |= {"documents": len(self.verdicts), "written": len(listed)}
        return listed

    def files(self):
        """Yields each file that is written: its path, its input, and what is in it: records with their verdicts and texts."""
        texts = self.without_paragraphs() if self.options.level == "paragraph" else {}
        for path, (key, file) in zip(self.paths(), self.inputs.items()):
            records = list(self.records(file, key, texts))
            if file.format != "text" or records:
                self.count += 1
                yield path, file, records

    def without_paragraphs(self):
        texts = {(*key, item.offset): item.text for key, file in self.inputs.items() for item in file.items}
        texts = {place: text for place, text in texts.items() if place in self.verdicts and self.verdicts[place]["stays"]}
        after = {}
        for place, (text, count) in zip(texts, without_repeated(list(texts.values()), self.options.min_count, self.options.min_length)):
            after[place] = text
            self.counts["paragraphs"] += count
            self.counts["paragraph_bytes"] += len(texts[place].encode()) - len((text or "").encode())
            self.counts["emptied"] += text is None
        return after

    def records(self, file, key, texts):
        options, is_archive = self.options, file.format == "warc" and self.is_same(file)
        verdict_of = lambda item: self.verdicts.get((*key, item.offset)) if item.kind == "page" else None
        others = options.others and is_archive

        def is_written(item):
            verdict = verdict_of(item)
            if verdict:
                return self.wants(verdict) and texts.get(verdict["place"], "") is not None or options.revisits and is_archive
            if item.kind in ("info", "beside"):
                return is_archive and (item.kind == "info" or (is_written(item.of) if item.of else others))
            return others and item.kind in ("failed", "revisit", "media")

        reason = {"page": "not_of_week", "revisit": "revisits", "media": "media_types", "info": "attached", "beside": "attached"}
        for item in file.items:
            verdict, goes_on = verdict_of(item), is_written(item)
            if verdict:
                self.counts["documents"] += 1
                self.counts["written"] += goes_on and self.wants(verdict)
                if goes_on and not self.wants(verdict):
                    self.counts["kept_whole" if verdict["refers_to"] is None else "revisits"] += 1
                    self.counts["outside"] += verdict["refers_to"] is not None and bool(options.since and verdict["of_week"] < options.since)
            else:
                self.counts["others"] += goes_on
                self.left_out[reason.get(item.kind, item.kind)] += not goes_on
            if goes_on:
                yield item, verdict, texts.get(verdict["place"], item.text) if verdict else None

    def own(self, verdict):
        values = [verdict["cluster"], verdict["size"], verdict["rank"], verdict["stays"]] if verdict else []
        return dict(zip(OWN, values)) if self.options.what == "annotated" else {}

    def content(self, file, records, root):
        """What a file has: bytes, or rows."""
        if file.format == "parquet":
            rows = read_rows(root / file.name).take(pa.array([item.offset for item, _, _ in records], pa.int64())).to_pylist()
            return [row | {"text": text} | self.own(verdict) for row, (_, verdict, text) in zip(rows, records)]
        if self.is_same(file):
            head, delimiter = file.head, "," if file.format == "csv" else "\t"
            if head and self.options.what == "annotated":
                head = head.rstrip(b"\n") + delimiter.join(["", *OWN]).encode() + b"\n"
            return head + b"".join(self.bytes_of(file, delimiter, *record) for record in records)
        if file.format == "jsonl":
            return [parsed(item.raw.removeprefix(b"\xef\xbb\xbf")) | {"text": text} | self.own(verdict) for item, verdict, text in records]
        if file.format in ("csv", "tsv"):
            return [item.row | {name: str(value).lower() for name, value in self.own(verdict).items()} for item, verdict, _ in records]
        row = lambda item, text: item.row or {"url": None, "title": None, "words": text.split()}
        return [row(item, text) | self.own(verdict) for item, verdict, text in records]

    def bytes_of(self, file, delimiter, item, verdict, text):
        if verdict and file.format == "warc" and not self.wants(verdict) and verdict["refers_to"]:
            return pack(self.revisit_of(item.plain, verdict["refers_to"]), file.packing if file.has_members else "")
        if verdict and self.options.what == "annotated":
            values = self.own(verdict)
            if file.format == "jsonl":
                return item.raw.rstrip().removesuffix(b"}").rstrip() + b"," + json.dumps(values, separators=(",", ":"))[1:].encode() + b"\n"
            fields = delimiter.join(["", *(str(value).lower() for value in values.values())]).encode()
            return item.raw.rstrip(b"\r\n") + fields + (b"\r\n" if item.raw.endswith(b"\r\n") else b"\n")
        if verdict and text != item.text:
            return text.encode() if file.format == "text" else item.raw.replace(item.plain, json.dumps(text, ensure_ascii=False).encode(), 1)
        return item.raw

    def revisit_of(self, record, first):
        """The revisit record for a response, which refers to another record. It has a new id."""
        head, block = record.split(b"\r\n\r\n", 1)
        version, *lines = head.split(b"\r\n")
        goes = re.compile(rb"(?i)(warc-(type|record-id|(block|payload)-digest|truncated|segment-number|profile|refers-to.*)|content-length):")
        http = block[: block.index(b"\r\n\r\n") + 4] if block.startswith(b"HTTP/") else b""
        lines = [version, b"WARC-Type: revisit", PROFILE.strip().encode(), b"WARC-Record-ID: " + NEW, *(line for line in lines if not goes.match(line))]
        names = {b"Payload-Digest": b"Payload-Digest", b"Record-ID": b"Refers-To", b"Target-URI": b"Refers-To-Target-URI", b"Date": b"Refers-To-Date"}
        for name, field in names.items():
            lines.append(b"WARC-%s: %s" % (field, re.search(b"\r\nWARC-%s: (.+?)\r\n" % name, first)[1]))
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(http), b"", http, b"", b""])


@functools.lru_cache(64)
def read_rows(path):
    return parquet.ParquetFile(path, coerce_int96_timestamp_unit="us").read()


# --- Histories, and their exports.


class History:
    def __init__(self, seed, args, folder, library):
        self.args, self.folder, self.library = args, folder, library
        rng = self.rng = random.Random(f"{seed} of nigh's exports")
        self.store, self.site, self.day, self.version = folder / "store", Texts(rng), date(2024, 1, 8), 0
        # How documents are known; in a crawl, by their URLs.
        self.kind, self.policy, self.numbers = rng.choice(["warc", "warc", "id", "id", "url", "place"]), rng.choice(POLICIES), rng.sample(NUMBERS, 2)
        # Files by (week, name), and those that each week has; of the last week, the places of documents by their keys, and those of the week before;
        # what of these was deleted since; the bodies of documents by their places.
        self.files, self.inputs, self.docs, self.before, self.deleted, self.bodies = {}, {}, {}, {}, set(), {}
        # The URLs of which a batch had several answers.
        self.several = set()
        self.weeks, self.log, self.exports, self.refusals = [], [], 0, 0
        columns = ('id = "id"\n' if self.kind == "id" else "") + ("" if self.kind == "warc" else 'date = "date"\n')
        methods = ["similarity = 0.6\n", 'similarity = 0.7\nverify = "exact"\n', "features = 24\nsupershingles = 12\nagreements = 2\n"]
        (folder / "job.toml").write_text(
            f'[cluster]\nmax-reject-share = 1.0\nmax-unknown-share = 1.0\ncanonical = "{self.policy}"\n[cluster.read]\nsame-id = "first"\n'
            f"[cluster.read.columns]\n{columns}[cluster.method]\nwords = {rng.choice([2, 3])}\nshards = 4\n{rng.choice(methods)}"
        )

    def start(self, *arguments, environment=None):
        self.log.append(f"{' '.join(f'{name}={value}' for name, value in (environment or {}).items())} nigh {' '.join(arguments)}".strip())
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([self.args.nigh, *arguments], cwd=self.folder, text=True, env={**os.environ, **(environment or {})}, **pipes)

    def end(self, child):
        out, said = child.communicate(timeout=300)
        self.log.append(f"  -> {child.returncode}")
        if "fault" in said or "panicked" in said:
            raise Failure(f"a panic: {said}")
        return child.returncode, out, said

    def run(self, *arguments, wanted=(0,)):
        code, out, said = self.end(self.start(*arguments))
        if code not in wanted:
            raise Failure(f"ends with {code}, not {wanted}: nigh {' '.join(arguments)}\n{out}{said}")
        return code, out, said

    # Batches.

    def key(self, url):
        number = int(re.search(r"\d+$", url)[0])
        return url if self.kind in ("warc", "url") else str(number if number % 5 else 2**64 - 1 - number)

    def crawl(self, week):
        """Writes the files of a batch: some pages of the site, and some of them twice."""
        rng, site = self.rng, self.site
        self.version += 1
        (self.folder / f"b{self.version}" / "deep").mkdir(parents=True)
        pages = list(site.pages.items()) or [("http://one.example/p0", "the only page")]
        pages = rng.sample(pages, rng.randint(1, len(pages)) if self.weeks else len(pages))
        pages += [(url, site.text()) for url, _ in rng.sample(pages, min(len(pages), rng.choice([0, 1, 3])))]
        parts = [[] for _ in range(rng.randint(1, 4))]
        for page in pages:
            rng.choice(parts).append(page)
        self.answered = set()
        files, key = {}, "url" if self.kind == "warc" else self.kind
        for number, part in enumerate(part for part in parts if part):
            formats = ["jsonl", "jsonl", "csv", "tsv", "parquet"] + ["text"] * (key == "place")
            format = "warc" if self.kind == "warc" and rng.random() < 0.93 else rng.choice(formats)
            packing = "" if format in ("parquet", "text") else rng.choice(["", ".gz", ".zst"])
            # Names that differ by their endings only become one in another format.
            stem = rng.choice(["", "deep/"]) + (f"{chr(97 + number)}{number}" if rng.random() < 0.9 else "x")
            name = f"b{self.version}/{stem}.{'txt' if format == 'text' else format}{packing}"
            file, path = files.setdefault(name, File(name, format, packing)), self.folder / name
            if file.items:
                continue
            rows = [(url, self.key(url), text, str(week + timedelta(rng.randint(-9, 0)))) for url, text in part]
            if format == "warc":
                fill_warc(rng, file, self.captures(part), week)
            elif format == "parquet":
                fill_parquet(rng, file, rows, key, path)
                continue
            elif format == "text":
                file.items.append(Item("page", part[0][1].encode(), None, part[0][1]))
            else:
                fill_lines(rng, file, rows, key, self.numbers) if format == "jsonl" else fill_table(rng, file, rows, key)
            store_file(rng, file, path)
        return [files[name] for name in sorted(files)]

    def captures(self, part):
        """The captures of some pages; of known ones, also revisits; and records that are no pages."""
        rng, captures = self.rng, []
        known = [url for url, place in self.docs.items() if place]
        for url, text in part:
            # No URL has two answers of which none is a page.
            chance, other = rng.random() if url not in self.answered else 1, url if rng.random() < 0.6 or not known else rng.choice(known)
            self.answered |= {url} if chance < 0.35 else set()
            if url in known and chance < 0.25:
                captures.append(("unchanged" if chance < 0.05 else "revisit", url, "", (other, self.bodies[self.docs[other]])))
            elif self.weeks and chance < 0.35:
                captures.append(("failed", url, rng.choice(["404 Not Found", "410 Gone", "500 Error"]), None))
            else:
                captures.append((rng.choice(["page"] * 6 + ["resource", "conversion"]), url, text, None))
        for _ in range(rng.choice([0, 0, 2])):
            url = f"http://{rng.choice(HOSTS)}/other"
            others = [("media", url, "", None), ("failed", url, "301 Moved", None), ("bad", "", "", None), ("revisit", url, "", (url, "never seen"))]
            captures.insert(rng.randint(0, len(captures)), rng.choice(others))
        return captures

    def batch(self, replaces=False):
        """Adds a week, or makes the last one again. Returns whether there is one now."""
        rng, known, week = self.rng, self.docs, date.fromisoformat(self.weeks[-1]) if replaces else self.day
        base = {key: place for key, place in self.before.items() if key not in self.deleted} if replaces else self.docs
        self.docs = base
        files, keep = self.crawl(week), rng.random() < 0.7
        flags = ["--week", str(week), "--store", "store", "--absent", "keep" if keep else "missing", "-q", "--no-accuracy"]
        flags += ["--replace"] * replaces + ["--input", *(file.name for file in files)]
        code, _, said = self.run("run", "job.toml", *flags, wanted=(0, 1))
        if code:
            self.docs = known
            if any(reason in said for reason in NO_WEEK):
                return False
            raise Failure(f"the week is not made: {said}")
        now, several, lost, unchanged = {}, set(), set(), {}
        for file in files:
            self.files[str(week), file.name] = file
            for item in file.items:
                place = (str(week), file.name, item.offset)
                key = place if self.kind == "place" else item.key
                if item.kind == "page" and key is not None:
                    several |= {key} & now.keys()
                    now.setdefault(key, place)
                    self.bodies[place] = item.text
                elif item.kind == "failed" and re.search(b"HTTP/1.1 4(04|10)", item.plain):
                    lost.add(key)
                elif item.kind == "revisit":
                    refers = re.search(rb"Refers-To-Target-URI: (\S+)", item.plain)
                    unchanged.setdefault(key, refers[1].decode() if refers else key)
        docs = {key: place for key, place in base.items() if keep and key not in lost}
        # Where the page is that a revisit of another URL means, or of a URL with several answers in a batch, or of a page without bytes, and
        # whether it is known, is not modelled: None.
        is_modelled = lambda key, other: key == other and key not in self.several and self.bodies.get(base[key])
        docs |= {key: base[key] if is_modelled(key, other) else None for key, other in unchanged.items() if other in base}
        self.several |= several
        self.docs, last = docs | now, str(week)
        if not replaces:
            self.weeks.append(last)
            self.before, self.deleted, self.day = base, set(), self.day + timedelta(days=7 * rng.choice([1, 1, 2]))
        crawled = {(row["crawled"], row["file"]) for row in read_table(self.store, "documents", last, ["crawled", "file"])}
        self.inputs[last] = sorted({key for key in crawled if key[0] < last} | {(last, file.name) for file in files})
        self.site.next_week()
        return True

    def delete(self):
        # Pages of the week before that this one does not have are forgotten, too.
        rng, keys = self.rng, sorted(map(str, {*self.docs, *self.before}))
        if self.kind == "place" or not keys:
            return
        some, host = rng.sample(keys, min(len(keys), rng.randint(1, 4))), rng.choice(HOSTS)
        how = "id" if self.kind == "id" else rng.choice(["url", "host", "prefix"])
        prefix = f"http://{host}/" + ("~me/" if how == "prefix" else "")
        gone = some if how in ("id", "url") else [key for key in keys if key.startswith(prefix)]
        values = {"host": [host], "prefix": [prefix]}.get(how, some)
        if self.run("delete", "--store", "store", "-q", f"--{how}", *values, wanted=(0,) if {*gone} & {*self.docs} else (0, 1))[0] == 0:
            self.deleted |= set(gone)
            self.docs = {key: place for key, place in self.docs.items() if key not in gone}

    def vacuum(self):
        keep = self.rng.randint(1, 2)
        self.run("vacuum", "--store", "store", "--keep", str(keep))
        self.weeks = self.weeks[-keep:]

    def play(self):
        while not self.batch():
            pass
        for _ in range(self.rng.randint(0, 5)):
            self.rng.choice([self.batch, self.batch, lambda: self.batch(True), self.delete, self.vacuum])()
            self.check_documents()
            self.export(self.options()) if self.rng.random() < 0.3 else None
        for _ in range(4):
            self.export(self.options())

    def check_documents(self):
        """The table has the record of the last version of each page that was not deleted."""
        column, found = {"id": "id", "place": "doc"}.get(self.kind, "url"), {}
        for row in read_table(self.store, "documents", self.weeks[-1], ["crawled", "file", "offset", column]):
            place = (row["crawled"], row["file"], row["offset"])
            found[place if self.kind == "place" else row[column]] = place
        for key in sorted(found.keys() | self.docs.keys(), key=str):
            if key in self.docs and self.docs[key] is None:
                continue
            if key not in found or key not in self.docs or self.docs[key] != found[key]:
                raise Failure(f"the document {key} is {found.get(key)}, and should be {self.docs.get(key, 'none')}")

    # Exports.

    def options(self):
        rng = self.rng
        options = Options(self.weeks[-1] if rng.random() < 0.85 else rng.choice(self.weeks), rng.choice(["kept"] * 3 + ["removed", "annotated"]))
        options.level, options.keep = rng.choice(["similar", "similar", "identical", "exact", "exact"]), rng.choice([None, None, *POLICIES])
        options.format = rng.choice(["same", "same", "same", "jsonl", "parquet"])
        options.since = rng.choice(self.weeks) if rng.random() < 0.25 else None
        if rng.random() < 0.25:
            options.list, options.format = rng.choice(["l.txt", "l.parquet"]), "same"
        elif self.kind == "warc":
            options.what = "removed" if options.what == "annotated" and options.format == "same" else options.what
            options.others = options.what == "kept" and rng.random() < 0.4
            options.revisits = (options.what, options.level, options.format) == ("kept", "exact", "same") and rng.random() < 0.6
        elif rng.random() < 0.3:
            options.what, options.level = "kept", "paragraph"
            options.min_count, options.min_length = rng.choice([(2, 1), (3, 1), (2, 8)])
        if rng.random() < 0.15:
            # Many of these are refused.
            flags = [("format", "warc"), ("format", "jsonl"), ("level", "paragraph"), ("others", True), ("revisits", True), ("what", "annotated")]
            setattr(options, *rng.choice(flags))
        options.alone = options.revisits and options.since is None
        return options

    def model(self, options):
        return Model(self.store, self.files, self.inputs[options.week], options, self.policy)

    def command(self, options, out):
        return ["export", "store", *options.flags(), "--workers", self.rng.choice("12"), "--list" if options.list else "--out", out]

    def digests(self):
        return {path: hashlib.sha256(path.read_bytes()).digest() for path in self.folder.glob("b*/**/*") if path.is_file()}

    def check_inputs(self, before):
        if self.digests() != before:
            raise Failure("an input is another one now")
        left = [str(path) for path in self.folder.rglob("*nigh-export-work*")]
        if left:
            raise Failure(f"left behind: {left}")

    def export(self, options):
        """One export, held against the model."""
        rng, model, before = self.rng, self.model(options), self.digests()
        self.exports += 1
        command, code = self.command(options, out := f"out-{self.exports}{'-' + options.list if options.list else ''}"), model.refused()
        touched = code == 0 and not options.list and model.inputs and rng.random() < 0.15
        if touched:
            # Copies with other times must be asked for.
            times = {path: path.stat().st_mtime_ns for path in before}
            list(map(lambda path: os.utime(path, (0, 0)), before))
            self.run(*command, wanted=(1,))
        # Records that are written as those of other documents are not modelled.
        is_modelled = bool(options.list) or all(verdict["record_url"] is None for verdict in model.verdicts.values())
        _, found, _ = self.run(*command, *(["--touched"] if touched else []), "--json", wanted=(code,))
        if touched:
            list(map(lambda path: os.utime(path, ns=(times[path], times[path])), before))
        self.check_inputs(before)
        self.refusals += code > 0
        if code == 0 and is_modelled:
            try:
                self.check_list(options, model, out) if options.list else self.check_files(options, model, out)
                self.check_counts(options, model, json.loads(found), None if touched or rng.random() < 0.8 else command)
            except Failure as failure:
                raise Failure(f"{failure}\n  of nigh {' '.join(command)}") from None

    def check_counts(self, options, model, found, again):
        wanted = {"week": options.week, "files": 1 if options.list else model.count, **model.counts, "left_out": model.left_out}
        if found != wanted:
            raise Failure(f"counts\n  {found}, wanted\n  {wanted}")
        if options.what == "annotated" and options.level == "similar" and not options.keep and not options.since and self.kind != "warc":
            other = next((verdict for verdict in model.verdicts.values() if verdict["canonical"] != verdict["stays"]), None)
            if other:
                raise Failure(f"`canonical` of {other}")
        if again:
            # The same again has nothing to do, and says the same in words.
            text = self.run(*again)[1].replace(",", "")
            said = [int(number) for number in re.findall(r"(?:wrote|listed|and|without|left out:|of) (\d+) ", text)]
            counts = [model.counts["written"], model.counts["documents"]]
            outside = model.counts["outside"]
            counts += [model.counts["revisits"] - outside, *[outside] * (outside > 0), model.counts["kept_whole"]] * options.revisits
            counts += [model.counts["others"]] * (model.counts["others"] > 0)
            counts += [model.counts["paragraphs"], model.counts["emptied"]] * (options.level == "paragraph")
            if said != counts + [count for count in model.left_out.values() if count]:
                raise Failure(f"says {said}, not {counts}, {model.left_out}: {text}")

    def check_list(self, options, model, out):
        listed, row = model.listed(), lambda verdict: {name: verdict[name] for name in ("id", "doc", "cluster", "size", "rank", "stays")}
        if options.list.endswith("parquet"):
            found = parquet.ParquetFile(self.folder / out).read().to_pylist()
            place = lambda verdict: {"file": verdict["place"][1], "offset": verdict["place"][2], "url": verdict["url"]}
            wanted = [place(verdict) | row(verdict) for verdict in listed]
        else:
            found = (self.folder / out).read_text()
            found = found.split("\n")
            wanted = [verdict["id"] or verdict["url"] or "\t".join(map(str, verdict["place"][1:])) for verdict in listed] + [""]
        differs = [(a, b) for a, b in zip(found, wanted) if a != b]
        if differs or len(found) != len(wanted):
            raise Failure(f"{len(found)} are listed, wanted {len(wanted)}; {len(differs)} differ:\n  {differs[:3]}")

    def check_files(self, options, model, out):
        folder, wanted = self.folder / out, {LIST} if model.inputs else set()
        for path, file, records in model.files():
            wanted.add(path)
            if not (folder / path).is_file():
                raise Failure(f"{path} is not there")
            content = model.content(file, records, self.folder)
            check = self.check_bytes if isinstance(content, bytes) else self.check_rows
            check(options, folder / path, file, content)
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        if found != wanted:
            raise Failure(f"there is {sorted(found)}, wanted {sorted(wanted)}")

    def check_bytes(self, options, path, file, wanted):
        found = path.read_bytes()
        if not file.has_members or options.revisits:
            found, wanted = unpack(found, file.packing), unpack(wanted, file.packing if file.has_members else "")
        if options.revisits:
            ids = NEW_ID.findall(found)
            if len(ids) != len(set(ids)):
                raise Failure(f"{path.name} has an id twice")
            found = NEW_ID.sub(NEW, found)
        if file.format == "jsonl":
            found, wanted = ([line for line in data.split(b"\n") if line.strip()] for data in (found, wanted))
        if found != wanted:
            at = max(0, next((n for n, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted))) - 100)
            raise Failure(f"{path.name} differs, from {at} on:\n  {found[at:][:300]}\n  wanted\n  {wanted[at:][:300]}")

    def check_rows(self, options, path, file, wanted):
        is_parquet = path.suffix == ".parquet"
        whole = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") if is_parquet else None
        found = whole.read().to_pylist() if whole else list(map(parsed, path.read_bytes().splitlines()))
        if len(found) != len(wanted):
            raise Failure(f"{path.name} has {len(found)} rows, wanted {len(wanted)}")
        for number, (row, other) in enumerate(zip(wanted, found)):
            if "words" in row:
                # Of a page the title is in the text, too.
                text = [word for word in other["text"].split() if word != row["title"]]
                other = {name: other.get(name) for name in row} | {"words": text}
            if not same(row, other) or whole and file.format == "parquet" and repr(row) != repr(other):
                raise Failure(f"row {number} of {path.name} is\n  {other}\n  wanted\n  {row}")
        if whole and file.format == "parquet":
            before = parquet.ParquetFile(self.folder / file.name, coerce_int96_timestamp_unit="us")
            groups = lambda of: [of.metadata.row_group(n) for n in range(of.num_row_groups)]
            is_same = options.what == "annotated" or whole.schema.equals(before.schema) and whole.metadata.metadata == before.metadata.metadata
            same_field = lambda n: whole.schema_arrow.field(n).equals(before.schema_arrow.field(n), True)
            is_same &= whole.schema_arrow.metadata == before.schema_arrow.metadata and all(map(same_field, range(len(before.schema_arrow))))
            most = max((group.num_rows for group in groups(before)), default=0)
            codecs_of = lambda of: {group.column(n).compression for group in groups(of) for n in range(group.num_columns)}
            # Columns that are added have no codec of their own.
            added = {"ZSTD"} if options.what == "annotated" else set()
            codecs = codecs_of(whole)
            if not is_same or codecs - codecs_of(before) - added or any(group.num_rows > most for group in groups(whole)):
                raise Failure(f"{path.name} has another schema, larger row groups or codecs {codecs}:\n{whole.schema}\n  wanted\n{before.schema}")


class Kills(History):
    """Exports that are killed and given again, second writers, and what is in the way."""

    def play(self):
        while not self.batch() or self.rng.random() < 0.5:
            pass
        self.delete()
        options = self.options()
        while self.model(options).refused() or not self.model(options).inputs:
            options = self.options()
        for number, attack in enumerate([self.killed, self.killed, self.second, self.second, self.in_the_way]):
            attack(options, f"k{number}{'-' + options.list if options.list else ''}")

    def state(self, out):
        """The files of an export, without what nigh needs beside them."""
        path = self.folder / out
        paths = [path] if path.is_file() else [path for path in path.rglob("*") if path.is_file()]
        return {str(file.relative_to(path)): file.read_bytes() for file in paths if "_nigh-export-work" not in file.parts and file.parts[-2:] != tuple(LIST.split("/"))}

    def whole(self, options):
        """What an export has that nothing disturbs."""
        out = f"whole{'-' + options.list if options.list else ''}"
        self.run(*self.command(options, out))
        return self.state(out)

    def check(self, options, out, before):
        wanted, found = self.whole(options), self.state(out)
        if found != wanted:
            raise Failure(f"{out} is not as an export that nothing disturbs: {found.keys() ^ wanted.keys() or 'the names are the same'}")
        self.check_inputs(before)

    def killed(self, options, out):
        rng, before, wanted = self.rng, self.digests(), self.whole(options)
        for _ in range(rng.randint(1, 3)):
            once = self.folder / f"once-{self.exports}"
            library = {"LD_PRELOAD": self.library, "KILL_AT": str(int(2 ** rng.uniform(0, 5))), "KILL_ONCE": str(once)}
            at_operation = rng.random() < 0.7
            child = self.start(*self.command(options, out), environment=library if at_operation else None)
            if not at_operation:
                time.sleep(rng.uniform(0, 0.03))
                child.kill()
            code, _, said = self.end(child)
            self.exports += code == -signal.SIGKILL
            if code not in (0, -signal.SIGKILL):
                raise Failure(f"ends with {code}: {said}")
            # What has its name is whole.
            if any(wanted.get(name) != data for name, data in self.state(out).items()):
                raise Failure(f"after a kill a file of {out} is not whole")
        self.run(*self.command(options, out))
        self.check(options, out, before)

    def second(self, options, out):
        """A second export of the same or another kind, while the first is stopped, or runs."""
        rng, before = self.rng, self.digests()
        other = options if rng.random() < 0.5 else Options(options.week, keep="longest", level="exact", list=options.list)
        lock = self.folder / (f".{out}.nigh-export-work" if options.list else f"{out}/_nigh-export-work") / "lock"
        first, stops = self.start(*self.command(options, out)), rng.random() < 0.7
        while stops and first.poll() is None and not is_taken(lock):
            pass
        first.send_signal(signal.SIGSTOP) if stops else time.sleep(rng.uniform(0, 0.03))
        # It may have ended before it was stopped.
        had_lock = stops and lock.exists()
        code, _, said = self.end(self.start(*self.command(other, out)))
        is_killed = had_lock and rng.random() < 0.3
        first.send_signal(signal.SIGKILL if is_killed else signal.SIGCONT) if stops else None
        of_first, _, first_said = self.end(first)
        self.exports += 1
        reasons = ("another export writes", "has files of another export")
        if code != 0 and (code != 2 or not any(reason in said for reason in reasons)) or had_lock and code != 2:
            raise Failure(f"the second writer ends with {code}: {said}")
        if of_first != (-signal.SIGKILL if is_killed else 0) and not (of_first == 2 and code == 0 and not had_lock):
            raise Failure(f"the first writer ends with {of_first}: {first_said}")
        if code == 0 and other is not options:
            # The second has replaced the list of the first, or came before it.
            return
        self.run(*self.command(options, out)) if is_killed else None
        self.check(options, out, before)

    def in_the_way(self, options, out):
        rng, before, path, precious = self.rng, self.digests(), self.folder / out, self.folder / "precious"
        kind = rng.choice(["file", "link", "folder", "device", "input", "work"] if options.list else ["file", "link", "input", "work", "own", "own"])
        precious.write_text("precious")
        source, thesis = rng.choice(list(before)).relative_to(self.folder), path / "thesis"
        target = {"device": "/dev/null", "input": str(source if options.list else source.parent)}.get(kind, out)
        if kind == "work":
            thesis = (path.with_name(f".{out}.nigh-export-work") if options.list else path / "_nigh-export-work") / "thesis"
        if kind == "own":
            return self.own(options, out, before)
        if kind == "folder" or kind not in ("device", "input") and (kind == "work" or not options.list):
            thesis.parent.mkdir(parents=True)
        if kind in ("file", "work", "link"):
            place = path if options.list and kind != "work" else thesis
            place.symlink_to(precious) if kind == "link" else shutil.copy(precious, place)
        tree = lambda: sorted((str(path), path.is_symlink(), path.is_file() and path.read_bytes()) for path in self.folder.rglob("*"))
        then = tree()
        self.run(*self.command(options, target), wanted=(2,))
        if tree() != then or not Path("/dev/null").is_char_device():
            raise Failure(f"what was in the way ({kind}) is not as it was")

    def own(self, options, out, before):
        """Files of the export that somebody changed are written again; a list that is none is not replaced."""
        self.run(*self.command(options, out))
        for file in [file for file in (self.folder / out).rglob("*") if file.is_file() and file.parts[-2:] != tuple(LIST.split("/"))]:
            file.unlink() if self.rng.random() < 0.5 else file.write_bytes(file.read_bytes()[1:] + b"?")
        self.run(*self.command(options, out))
        self.check(options, out, before)
        (self.folder / out / LIST).write_text("precious")
        self.run(*self.command(options, out), wanted=(2,))
        if (self.folder / out / LIST).read_text() != "precious":
            raise Failure(f"{LIST} was replaced")


def is_taken(lock):
    try:
        return "process" in lock.read_text()
    except FileNotFoundError:
        return False


# --- The program.


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nigh", required=True, type=lambda text: str(Path(text).resolve()), help="the program to try")
    parser.add_argument("--seeds", default="0..20", type=seeds, metavar="N or N..M", help="the histories (default: 0..20; M is excluded)")
    parser.add_argument("--kills", default="0..0", type=seeds, metavar="N or N..M", help="those with kills and second writers (default: none)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in DIR, and keep the histories that fail")
    args = parser.parse_args()
    if shutil.which("cc") is None:
        fail(4, "not installed: cc")
    if not os.access(args.nigh, os.X_OK):
        fail(2, f"{args.nigh} is not a program")
    with tempfile.TemporaryDirectory(prefix="nigh-exports-") as temporary:
        root = args.keep.resolve() if args.keep else Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        library, begun, failed, counts = histories.build(Path(temporary)), time.monotonic(), [], {History: 0, Kills: 0, "refused": 0}
        played = [(History, "seeds", seed) for seed in args.seeds] + [(Kills, "kills", seed) for seed in args.kills]
        for kind, flag, seed in played:
            folder = root / f"{flag}-{seed}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            history = kind(seed, args, folder, library)
            try:
                history.play()
                shutil.rmtree(folder)
            except Exception as error:
                failed.append(f"{flag} {seed}")
                text = error if isinstance(error, Failure) else traceback.format_exc()
                again = f"{sys.argv[0]} --nigh {args.nigh} --seeds 0..0 --{flag} {seed} --keep {args.keep or 'exports'}"
                print(f"{flag} {seed} FAILED: {text}\n  commands:\n    " + "\n    ".join(history.log) + f"\n  again: {again}", flush=True)
            counts[kind] += history.exports
            counts["refused"] += history.refusals
    print(
        f"{len(played)} histories in {time.monotonic() - begun:.0f} s, {counts[History]} exports, of which {counts['refused']} were refused, "
        f"{counts[Kills]} kills and second writers, {len(failed)} histories failed: {failed}"
    )
    sys.exit(1 if failed else 0)


def fail(code, text):
    print(f"exports: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
