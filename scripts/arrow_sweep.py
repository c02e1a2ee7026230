#!/usr/bin/env python3
"""Runs jobs over files of every type, encoding and codec that pyarrow writes, exports them, and compares the exports by pyarrow.

    pip install pyarrow
    scripts/arrow_sweep.py [--nigh PROGRAM] [--only WORDS ...] [--seed N] [--keep FOLDER]

Each file has a column `id`, and a column `text` of distinct texts. Each case is done twice: as it is, and with a row that has the text of another
one, and has to be left out. Parquet has pages of version 1 and then 2 if the case does not say which; Arrow is a stream and then a file.

    Parquet to Parquet     the same schema, Arrow schema, key-values, and bits of the values; annotated, with four columns more
    Arrow to Parquet       the types and values that pyarrow has when it writes the same table to Parquet and reads it
    both to JSON Lines     each line is an object of all columns; null is null, NaN and infinities are null, times RFC 3339, bytes hexadecimal

A line is printed for each difference, and for each refusal of what pyarrow writes as Parquet; then all that nigh refuses, with the message, which
must name the file (read whether it is true); then what pyarrow does not write, and totals. Exit code 0 if all is as it should be, 1 if something
is not, 4 if pyarrow is missing.
"""

import argparse
import base64
import collections
import decimal
import functools
import gzip
import json
import pathlib
import random
import re
import shutil
import string
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import pyarrow.parquet.encryption as encryption
    from pyarrow import ipc, types
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(4)

WEEK = "2024-01-08"
ANNOTATIONS = ["nigh_cluster", "nigh_size", "nigh_rank", "nigh_stays"]
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DECIMALS = decimal.Context(prec=90, Emax=999, Emin=-999)


# Columns.


def spread(kind, values, rows, chance, nulls=True):
    """An array of these values, then of some of them, with nulls between."""
    chosen = (values + [chance.choice(values) for _ in range(rows)])[:rows]
    if nulls:
        chosen = [None if place % 5 == 2 else value for place, value in enumerate([chosen[0], chosen[0], *chosen])][:rows]
    return pa.array(chosen, kind)


def viewed(kind, integer, values):
    """A column of a type whose values are integers: as those."""
    return lambda rows, chance, nulls=True: spread(integer, values, rows, chance, nulls).view(kind)


def plain_values(kind, values):
    return lambda rows, chance, nulls=True: spread(kind, values, rows, chance, nulls)


def typed_columns():
    """A function that makes a column of some rows, by the name of its type."""
    found = {"bool": plain_values(pa.bool_(), [True, False]), "null": lambda rows, chance, nulls=True: pa.nulls(rows)}
    for bits in (8, 16, 32, 64):
        top = 2 ** (bits - 1)
        found[f"int{bits}"] = plain_values(getattr(pa, f"int{bits}")(), [-top, top - 1, 0, -1, 1])
        found[f"uint{bits}"] = plain_values(getattr(pa, f"uint{bits}")(), [0, 2 * top - 1, top, top - 1])
    halves = [0x7E00, 0xFE01, 0x7C00, 0xFC00, 0x8000, 0, 1, 0x7BFF, 0x3555]
    floats = [0x7FC00000, 0xFFC00001, 0x7F800000, 0xFF800000, 0x80000000, 0, 1, 0x7F7FFFFF, 0x3EAAAAAB]
    doubles = [0x7FF8 << 48, 0xFFF8000000000001, 0x7FF0 << 48, 0xFFF0 << 48, 1 << 63, 0, 1, 0x7FEFFFFFFFFFFFFF, 0x3FD5555555555555]
    found["float16"] = viewed(pa.float16(), pa.uint16(), halves)
    found["float32"] = viewed(pa.float32(), pa.uint32(), floats)
    found["float64"] = viewed(pa.float64(), pa.uint64(), doubles)
    shapes = {32: [(9, 2), (1, 0), (9, 9)], 64: [(18, 4), (10, 0)], 128: [(38, 0), (38, 10), (5, 2), (38, 38), (19, 0), (10, -3)]}
    shapes[256] = [(76, 0), (76, 38), (39, 3), (5, 1), (50, -2)]
    for bits, of_bits in shapes.items():
        for digits, scale in of_bits:
            most = 10**digits - 1
            values = [decimal.Decimal(value).scaleb(-scale, DECIMALS) for value in (most, -most, 0, 1, -1, most // 3)]
            found[f"decimal{bits}({digits},{scale})"] = plain_values(getattr(pa, f"decimal{bits}")(digits, scale), values)
    # The years 1, 1969, 9999; and all that the integers hold.
    days = [-719162, -1, 0, 1, 19000, 2932896]
    found["date32"] = viewed(pa.date32(), pa.int32(), days)
    found["date32 far"] = viewed(pa.date32(), pa.int32(), [-(2**31), 2**31 - 1])
    found["date64"] = viewed(pa.date64(), pa.int64(), [day * 86_400_000 for day in days])
    found["date64 far"] = viewed(pa.date64(), pa.int64(), [200_000_000 * 86_400_000, -200_000_000 * 86_400_000])
    found["date64 odd"] = viewed(pa.date64(), pa.int64(), [1, 86_399_999, -1])
    for unit, part in UNITS.items():
        day = 86_400 * part
        time = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        found[f"time {unit}"] = viewed(time, pa.int32() if unit in ("s", "ms") else pa.int64(), [0, day - 1, day // 2 + 1])
        near = [0, 1, -1, 1_704_675_723 * part + part // 3, -10**9 * part - 1]
        reach = near + [] if unit == "ns" else near + [days[0] * day, days[-1] * day + day - 1]
        for zone in (None, "UTC", "Europe/Paris", "+05:30"):
            found[f"timestamp {unit} {zone}"] = viewed(pa.timestamp(unit, zone), pa.int64(), reach)
        found[f"timestamp {unit} far"] = viewed(pa.timestamp(unit), pa.int64(), [2**63 - 1, -(2**63), (2**63 - 1) // part])
        after_9999 = [min(253_402_300_800 * part, 2**63 - 1), -63_000_000_000 * min(part, 10**6)]
        found[f"timestamp {unit} 10000"] = viewed(pa.timestamp(unit), pa.int64(), after_9999)
        found[f"duration {unit}"] = viewed(pa.duration(unit), pa.int64(), [0, 1, -1, part + 1, 90_061 * part, -90_061 * part - 1])
        found[f"duration {unit} far"] = viewed(pa.duration(unit), pa.int64(), [2**63 - 1, -(2**63)])
    found["interval"] = plain_values(pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([-1, 0, 10**12])])
    texts = ["", "\0", "a\0b", "\U0001f600", "é\u2028\u202e", '"\\\n\r\t\x1b', "x" * 300, "null"]
    found |= {str(kind): plain_values(kind, texts) for kind in (pa.string(), pa.large_string(), pa.string_view())}
    strings = [b"", b"\0", b"\xff\xfe", b"abc", b"y" * 300]
    found |= {str(kind): plain_values(kind, strings) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())}
    found["fixed binary 16"] = plain_values(pa.binary(16), [b"\0" * 16, b"\xff" * 16, bytes(range(16))])
    found["fixed binary 1"] = plain_values(pa.binary(1), [b"\0", b"\xff"])
    found["fixed binary 0"] = plain_values(pa.binary(0), [b""])
    for kind, values in [
        (pa.uuid(), [b"\0" * 16, b"\xff" * 16, bytes(range(16))]),
        (pa.json_(), ['{"a": 1}', "null", "[]"]),
        (pa.bool8(), [1, 0, 5]),
        (pa.fixed_shape_tensor(pa.int32(), [2]), [[1, 2], [3, 4]]),
        (pa.opaque(pa.string(), "type", "vendor"), ["a", ""]),
    ]:
        stored = plain_values(kind.storage_type, values)

        def wrapped(rows, chance, nulls=True, kind=kind, stored=stored):
            return kind.wrap_array(stored(rows, chance, nulls))

        found[kind.extension_name] = wrapped

    def dictionary(keys, values, ordered=False):
        def column(rows, chance, nulls=True):
            indices = spread(keys, list(range(len(values))), rows, chance, nulls)
            return pa.DictionaryArray.from_arrays(indices, values, ordered=ordered)

        return column

    words = pa.array(["b", "", "a", "\U0001f600"])
    for keys in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        found[f"dictionary {keys}"] = dictionary(keys, words)
    found["dictionary ordered"] = dictionary(pa.int8(), words, True)
    found["dictionary repeated"] = dictionary(pa.int8(), pa.array(["a", "b", "a"]))
    found["dictionary null"] = dictionary(pa.int8(), pa.array([None, "t", "u"]))
    found["dictionary null int64"] = dictionary(pa.int8(), pa.array([None, 7, 8]))
    for name in (
        "bool|int8|uint64|float32|float64|decimal128(5,2)|decimal256(39,3)|date32|date64|time s|timestamp s None|timestamp ns UTC|"
        "large_string|string_view|binary|large_binary|fixed binary 16"
    ).split("|"):
        of = found[name](8, random.Random(1), False).unique()
        found[f"dictionary of {name}"] = dictionary(pa.int16(), of)

    def nested(kind, values):
        return plain_values(kind, values)

    number, lists = pa.int32(), [[], [1, None, -1], [None], [2**31 - 1]]
    shapes = (pa.list_(number), pa.large_list(number), pa.list_view(number), pa.large_list_view(number))
    found |= {str(kind): nested(kind, lists) for kind in shapes}
    found["list required"] = nested(pa.list_(pa.field("item", number, False)), [[], [1], [2, 3]])
    found["list named"] = nested(pa.list_(pa.field("odd name", number, metadata={"k": "v"})), lists)
    found["fixed list"] = nested(pa.list_(number, 3), [[1, None, 3], [None] * 3, [4, 5, 6]])
    found["map"] = nested(pa.map_(pa.string(), number), [[], [("a", 1), ("b", None)], [("", -1)]])
    found["map twice"] = nested(pa.map_(pa.string(), number), [[("a", 1), ("a", 2)], []])
    found["map of int"] = nested(pa.map_(pa.int64(), pa.string()), [[(1, "a")], []])
    found["map sorted"] = nested(pa.map_(pa.string(), number, keys_sorted=True), [[("a", 1), ("b", 2)]])
    pair = pa.struct([pa.field("a", number), pa.field("b", pa.string(), False)])
    found["struct"] = nested(pair, [{"a": 1, "b": ""}, {"a": None, "b": "x"}])
    found["struct empty"] = nested(pa.struct([]), [{}])
    found["list of struct empty"] = nested(pa.list_(pa.struct([])), [[{}], [], [None, {}]])
    found["struct of null"] = nested(pa.struct([("n", pa.null()), ("a", number)]), [{"a": 1}, {"a": None}])
    found["list of null"] = nested(pa.list_(pa.null()), [[None, None], []])
    found["list of struct"] = nested(pa.list_(pair), [[], [{"a": 1, "b": "x"}, None], [{"a": None, "b": ""}]])
    found["list 3"] = nested(pa.list_(pa.list_(pa.list_(pa.string()))), [[], [[], None, [[], None, ["a", None, ""]]], [[["b"]]]])
    deep = pa.struct([("l", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float64())))])))])
    found["struct list map"] = nested(deep, [{"l": [{"m": [("k", [0.5, None])]}, None]}, {"l": []}, {"l": None}])
    for name in "timestamp s None|date64|time s|decimal128(5,2)|dictionary null|dictionary int8|uuid|duration s|bool8|uint64".split("|"):
        made = found[name if name in found else f"arrow.{name}"]

        def around(rows, chance, nulls=True, made=made, shape=""):
            values = made(3 * rows, chance)
            if shape == "list":
                return pa.ListArray.from_arrays(pa.array([3 * row - row % 2 for row in range(rows + 1)], pa.int32()), values[: 3 * rows])
            if shape == "fixed":
                return pa.FixedSizeListArray.from_arrays(values, 3)
            if shape == "struct":
                return pa.StructArray.from_arrays([values[:rows]], ["x"])
            return pa.MapArray.from_arrays(range(rows + 1), [str(row) for row in range(rows)], values[:rows])

        found |= {f"{shape} of {name}": functools.partial(around, shape=shape) for shape in ("list", "fixed", "struct", "map")}

    def runs(values):
        return lambda rows, chance, nulls=True: pa.RunEndEncodedArray.from_arrays(
            pa.array([rows // 3, rows // 2, rows], pa.int32()), pa.array(values)
        )

    found |= {"runs string": runs(["a", None, ""]), "runs int64": runs([1, None, 2**60]), "runs float64": runs([0.5, -0.0, None])}

    def union(kind):
        def column(rows, chance, nulls=True):
            codes = pa.array([row % 2 for row in range(rows)], pa.int8())
            if kind == "sparse":
                return pa.UnionArray.from_sparse(codes, [pa.array(range(rows)), pa.array([str(row) for row in range(rows)])], ["i", "s"])
            offsets = pa.array([row // 2 for row in range(rows)], pa.int32())
            return pa.UnionArray.from_dense(codes, offsets, [pa.array(range(rows)), pa.array([str(row) for row in range(rows)])], ["i", "s"])

        return column

    return found | {"union sparse": union("sparse"), "union dense": union("dense")}


def documents(rows, chance, double, vocabulary):
    """The columns of the ids and of the texts; if `double`, the text of the row in the middle is that of the second."""
    texts = [" ".join(chance.choices(vocabulary, k=40)) for _ in range(rows)]
    if double:
        texts[rows // 2] = texts[1]
    return {"id": pa.array([f"id-{row}" for row in range(rows)]), "text": pa.array(texts)}


# Cases: a name, the format, the table, how it is written.

Case = collections.namedtuple("Case", "name format table options rows")


def cases(chance, double):
    vocabulary = ["".join(chance.choices(string.ascii_lowercase, k=7)) for _ in range(4000)]
    made = typed_columns()

    def table(columns, rows=12):
        return pa.table(documents(rows, chance, double, vocabulary) | columns)

    def mixed(rows=300):
        names = (
            "int8|int32|int64|uint64|bool|float16|float32|float64|string|binary|fixed binary 16|decimal128(38,10)|date32|timestamp us UTC|"
            "list<item: int32>|struct|map|list 3"
        )
        return table({name: made[name](rows, chance) for name in names.split("|")}, rows)

    def both(name, of, **options):
        for format in ("parquet", "arrow"):
            yield Case(f"{name}", format, of, options, of.num_rows)

    def parquet(name, of=None, **options):
        of = mixed() if of is None else of
        yield Case(name, "parquet", of, options, of.num_rows)

    def arrow(name, of=None, **options):
        of = mixed() if of is None else of
        yield Case(name, "arrow", of, options, of.num_rows)

    for name, column in made.items():
        yield from both(f"type {name}", table({"x": column(12, chance)}))
        # Some have nulls all the same.
        if double and not any(words in name for words in ("null", "runs", "union")):
            required = table({"x": column(12, chance, False)})
            yield from both(f"required {name}", required.cast(pa.schema([field.with_nullable(False) for field in required.schema])))
    # What the job reads, in other types.
    for name in ("large_string", "string_view", "binary", "large_binary", "binary_view", "dictionary"):
        for column in ("id", "text"):
            of = table({})
            values = of[column].combine_chunks()
            values = values.dictionary_encode() if name == "dictionary" else values.cast(name)
            yield from both(f"{column} {name}", of.set_column(of.schema.get_field_index(column), column, values))
    for name in ("int8", "uint64", "decimal128(19,0)", "decimal256(76,0)"):
        kind = made[name](1, chance).type
        ids = pa.array([decimal.Decimal(row) for row in range(12)] if "decimal" in name else range(12), kind)
        yield from both(f"id {name}", table({}).set_column(0, "id", ids))
    # Metadata and names.
    plain = table({"x": made["int32"](12, chance)})
    pairs = {"pandas": '{"index_columns": []}', "huggingface": '{"info": {}}', "own": "v\0\u00e9", "": "", "empty": ""}
    yield from both("metadata", plain.replace_schema_metadata(pairs))
    pairs = [{"k": "v", "": "", "PARQUET:field_id": str(place * 3)} for place in range(3)]
    yield from both("field metadata", plain.cast(pa.schema([field.with_metadata(of) for field, of in zip(plain.schema, pairs)])))
    odd = ["a.b", "a b", "\u00fc\U0001f600", "", "ID", "Text", "TEXT", "a", "A", "a\0b", 'q"uo\nte', "list", "x" * 1000, "-", "`", "$.x[0]"]
    yield from both("names", table({name: made["int32"](12, chance) for name in odd}))
    yield from both("names in struct", table({"s": pa.array([{"a.b": 1, "": 2, "id": 3, "text": "t"}] * 12)}))
    yield from both("names twice", pa.table([*plain.columns, plain["x"]], ["id", "text", "x", "x"]))
    yield from both("many columns", table({f"c{number}": made["int32"](12, chance) for number in range(400)}))
    yield from both("only text", table({}))
    # Empty files.
    yield from both("no rows", mixed(2).slice(0, 0))
    yield from parquet("no row groups", mixed(2).slice(0, 0), parts=[])
    yield from arrow("no batches", mixed(2).slice(0, 0), parts=[])
    lots = mixed(1000)
    yield from both("empty parts", lots, parts=[0, 10, 0, 0, 500, 1, 0, 489, 0])
    yield from both("sliced", lots.slice(3, 901), parts=[13, 88, 800])
    # How Parquet is written.
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        for version in ("1.0", "2.0"):
            for has_dictionary in (True, False):
                options = {"compression": codec, "data_page_version": version, "use_dictionary": has_dictionary}
                yield from parquet(f"{codec} pages {version} dictionary {has_dictionary}", **options)
    encodings = {
        "PLAIN": "int8|int32|int64|uint64|bool|float16|float32|float64|string|binary|fixed binary 16|decimal128(38,10)|date32|timestamp us UTC",
        "RLE": "bool",
        "DELTA_BINARY_PACKED": "int8|int32|int64|uint64|date32|timestamp us UTC",
        "DELTA_LENGTH_BYTE_ARRAY": "string|binary|text|id",
        "DELTA_BYTE_ARRAY": "string|binary|text|id|fixed binary 16|decimal128(38,10)",
        "BYTE_STREAM_SPLIT": "int32|int64|float16|float32|float64|fixed binary 16|decimal128(38,10)|date32",
    }
    for encoding, columns in encodings.items():
        for size in (None, 200):
            of_columns = {column: encoding for column in columns.split("|")}
            yield from parquet(f"{encoding} pages of {size}", use_dictionary=False, column_encoding=of_columns, data_page_size=size)
    yield from parquet("RLE_DICTIONARY falls back", lots, dictionary_pagesize_limit=300, data_page_size=500, write_batch_size=10)
    for name, options in {
        "small pages": {"data_page_size": 1, "write_batch_size": 1},
        "rows of a page": {"max_rows_per_page": 3},
        "row groups of 7": {"row_group_size": 7},
        "row groups of 1": {"row_group_size": 1},
        "checksums": {"write_page_checksum": True},
        "page index": {"write_page_index": True, "data_page_size": 300},
        "Bloom filters": {"bloom_filter_options": {"id": {"ndv": 300, "fpp": 0.01}, "int64": {"ndv": 10, "fpp": 0.1}}},
        "no statistics": {"write_statistics": False},
        "no Arrow schema": {"store_schema": False},
        "lists of old": {"use_compliant_nested_type": False},
        "version 1.0": {"version": "1.0"},
        "version 2.4": {"version": "2.4"},
        "decimals as integers": {"store_decimal_as_integer": True},
        "chunks by content": {"use_content_defined_chunking": True},
        "sorting columns": {"sorting_columns": [pq.SortingColumn(0)]},
        "levels of zstd": {"compression": "zstd", "compression_level": 19},
        "codecs by column": {"compression": {"id": "gzip", "text": "brotli", "int8": "lz4"}},
    }.items():
        yield from parquet(name, lots, **options)
    for name in ("timestamp us None", "timestamp ms UTC", "timestamp ns None", "timestamp s None"):
        yield from parquet(f"INT96 {name}", table({"x": made[name](12, chance)}), use_deprecated_int96_timestamps=True)
    lists = pa.ListArray.from_arrays(range(13), made["timestamp us None"](12, chance))
    yield from parquet("INT96 in a list", table({"x": lists}), use_deprecated_int96_timestamps=True)
    for name in ("timestamp us UTC", "time us", "time ms", "decimal64(18,4)", "decimal32(9,2)", "decimal128(5,2)"):
        options = {"write_time_adjusted_to_utc": True, "store_decimal_as_integer": True}
        yield from parquet(f"other form of {name}", table({"x": made[name](12, chance)}), **options)
        yield from parquet(f"{name} without Arrow schema", table({"x": made[name](12, chance)}), store_schema=False, version="1.0")
    for name in made:
        if not name.startswith(("runs", "union", "dictionary of", "fixed of", "map of", "struct of")):
            yield from parquet(f"no Arrow schema {name}", table({"x": made[name](12, chance)}), store_schema=False)
    # How Arrow is written.
    for codec in (None, "lz4", "zstd"):
        yield from arrow(f"buffers {codec}", lots, compression=codec, parts=[100] * 10)
    yield from arrow("metadata V4", metadata_version=ipc.MetadataVersion.V4)
    yield from arrow("no continuation", metadata_version=ipc.MetadataVersion.V4, use_legacy_format=True)
    yield from arrow("whole gzip", whole="gz")
    grown, other = pa.array(["a", "b"]), pa.array(["z", None, "y", "x"])
    for name, dictionaries, options in [
        ("delta", [grown, pa.array(["a", "b", "c", "d"])], {"emit_dictionary_deltas": True}),
        ("replaced", [grown, other], {}),
        ("unified", [grown, other], {"unify_dictionaries": True}),
    ]:
        keys = [pa.array([0, 1, None, 1, 0, len(values) - 1], pa.int8()) for values in dictionaries]
        chunks = [pa.DictionaryArray.from_arrays(of, values) for of, values in zip(keys, dictionaries)]
        yield from arrow(f"dictionary {name}", table({"x": pa.chunked_array(chunks)}), parts=[6, 6], **options)
    # Each part has keys enough for its values, and not for those of both.
    for kind in (pa.string(), pa.int64()):
        of = [pa.array(range(first, first + 100)).cast(kind) for first in (0, 100)]
        chunks = [pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), values) for values in of]
        yield from both(f"dictionaries of {kind}", table({"x": pa.chunked_array(chunks)}, 200), parts=[100, 100])


def write(case, path, double):
    """Writes the file of a case."""
    options = dict(case.options)
    parts = options.pop("parts", None)
    if case.format == "parquet":
        options.setdefault("data_page_version", "2.0" if double else "1.0")
        if parts is None:
            pq.write_table(case.table, path, **options)
            return
        with pq.ParquetWriter(path, case.table.schema, **options) as writer:
            for part in divided(case.table, parts):
                writer.write_table(part)
        return
    whole = options.pop("whole", None)
    new = ipc.new_file if double else ipc.new_stream
    with pa.OSFile(str(path), "wb") as out, new(out, case.table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for part in divided(case.table, [case.table.num_rows // 2, case.rows] if parts is None else parts):
            for batch in part.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], part.schema)]:
                writer.write_batch(batch)
    if whole:
        data = path.read_bytes()
        path.unlink()
        pathlib.Path(f"{path}.gz").write_bytes(gzip.compress(data))


def divided(table, parts):
    first = 0
    for rows in parts:
        yield table.slice(first, rows)
        first += rows


# What is compared.


def values(array):
    """The values of an array without their type: the bits of floats, integers of times."""
    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in values(chunk)]
    if types.is_dictionary(kind):
        of = values(array.dictionary)
        return [None if key is None else of[key] for key in array.indices.to_pylist()]
    if types.is_run_end_encoded(kind):
        return values(pc.run_end_decode(array))
    if isinstance(kind, pa.BaseExtensionType):
        return values(array.storage)
    if types.is_floating(kind):
        return array.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width]).to_pylist()
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return array.view({32: pa.int32(), 64: pa.int64()}[kind.bit_width]).to_pylist()
    if types.is_map(kind) or is_list(kind):
        return [values(row.values) if row.is_valid else None for row in array]
    if types.is_struct(kind):
        fields = [values(array.field(place)) for place in range(kind.num_fields)]
        names = [field.name for field in kind]
        rows = zip(*fields) if fields else [()] * len(array)
        return [list(zip(names, of_row)) if row.is_valid else None for row, of_row in zip(array, rows)]
    return array.to_pylist()


def is_list(kind):
    shapes = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(is_shape(kind) for is_shape in shapes)


def short(value):
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}..."


def differences(wanted, found, rows):
    """What differs between two tables, of which the first has more rows."""
    if wanted.column_names != found.column_names:
        yield f"expected the columns {short(wanted.column_names)}, found {short(found.column_names)}"
        return
    for place, name in enumerate(wanted.column_names):
        a, b = described(wanted.schema.field(place)), described(found.schema.field(place))
        if a != b:
            yield f"column {name!r}: expected the type {short(a)}, found {short(b)}"
        of_column = values(wanted.column(place))
        yield from unequal(name, [of_column[row] for row in rows], values(found.column(place)))
    if wanted.schema.metadata != found.schema.metadata:
        yield f"expected the metadata {short(wanted.schema.metadata)}, found {short(found.schema.metadata)}"


def unequal(name, wanted, found, same=lambda a, b: a == b):
    if len(wanted) != len(found):
        yield f"column {name!r}: expected {len(wanted)} values, found {len(found)}"
    for row, (a, b) in enumerate(zip(wanted, found)):
        if not same(a, b):
            yield f"column {name!r}: row {row}: expected {short(a)}, found {short(b)}"
            return


def described(field):
    """A field without the names of the items of lists, which pyarrow changes to `element`."""
    fields = [field.type.field(place) for place in range(field.type.num_fields)] if types.is_nested(field.type) else []
    inner = ", ".join((f"{part.name}: " if types.is_struct(field.type) else "") + described(part) for part in fields)
    kind = f"{type(field.type).__name__}<{inner}> {getattr(field.type, 'list_size', '')}" if fields else str(field.type)
    return f"{kind}{'' if field.nullable else ' not null'} {dict(sorted((field.metadata or {}).items())) or ''}".strip()


def schema_text(file):
    """The schema of a Parquet file as its columns and as text, which has the ids of the fields."""
    columns = [file.schema.column(place) for place in range(len(file.schema))]
    names = "path physical_type logical_type converted_type max_definition_level max_repetition_level length precision scale".split()
    facts = [[str(getattr(column, name)) for name in names] for column in columns]
    return facts, str(file.schema).split("\n", 1)[1]


def check_parquet(source, exported, rows, annotated):
    before, after = pq.ParquetFile(source), pq.ParquetFile(exported)
    units = ["ns", "us"] if "INT96" in schema_text(before)[1] else [None]
    for unit in units:
        wanted, found = (pq.ParquetFile(path, coerce_int96_timestamp_unit=unit).read() for path in (source, exported))
        if annotated:
            if found.column_names[-4:] != ANNOTATIONS:
                yield f"expected the columns {ANNOTATIONS} at the end, found {short(found.column_names[-4:])}"
            found = found.select(range(found.num_columns - 4))
        yield from differences(wanted, found, rows)
    (columns, text), (columns_after, text_after) = schema_text(before), schema_text(after)
    if annotated:
        columns_after, text, text_after = columns_after[:-4], "", ""
    if (columns, text) != (columns_after, text_after):
        yield next(
            (f"expected the column {a}, found {b}" for a, b in zip(columns, columns_after) if a != b),
            f"expected the schema {text}, found {text_after}".replace("\n", " "),
        )
    a, b = (dict(file.metadata.metadata or {}) for file in (before, after))
    if annotated:
        a.pop(b"ARROW:schema", None), b.pop(b"ARROW:schema", None)
    if a != b:
        yield f"expected the key-values {short(a)}, found {short(b)}"


def check_converted(table, exported, rows, scratch):
    """Arrow that became Parquet: as pyarrow writes it; if it does not, the values alone."""
    found = pq.ParquetFile(exported).read()
    if not is_written(table, scratch):
        for place, name in enumerate(table.column_names):
            of_column = values(table.column(place))
            yield from unequal(name, [of_column[row] for row in rows], values(found.column(place)))
        return
    yield from differences(pq.ParquetFile(scratch).read(), found, rows)


def is_read(path):
    """Whether pyarrow reads a file that it wrote."""
    try:
        pq.read_table(path)
        return True
    except pa.ArrowException:
        return False


def is_written(table, path):
    try:
        pq.write_table(table, path)
    except (pa.ArrowException, OSError):
        return False
    return True


class Pairs(list):
    """The fields of an object, in order; a name may be there twice."""


def check_lines(table, exported, rows):
    lines = exported.read_bytes().decode().split("\n")
    try:
        found = [json.loads(line, object_pairs_hook=Pairs, parse_float=decimal.Decimal, parse_constant=refuse) for line in lines if line]
    except ValueError as error:
        yield f"a line is no JSON: {error}"
        return
    for row in found:
        if [name for name, _ in row] != table.column_names:
            yield f"expected the fields {short(table.column_names)}, found {short([name for name, _ in row])}"
            return
    for place, name in enumerate(table.column_names):
        of_column, kind = values(table.column(place)), table.schema.field(place).type
        of_lines = [row[place][1] for row in found]
        yield from unequal(name, [of_column[row] for row in rows], of_lines, lambda a, b: is_json_of(kind, a, b))


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def is_json_of(kind, value, found):
    """Whether a value of JSON is what a value of Arrow should be."""
    if isinstance(kind, pa.BaseExtensionType):
        return is_json_of(kind.storage_type, value, found)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return is_json_of(kind.value_type, value, found)
    if value is None or found is None:
        exponents = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0 << 48}
        of_kind = exponents[kind.bit_width] if types.is_floating(kind) else None
        return found is None and (value is None or of_kind is not None and value & of_kind == of_kind)
    if types.is_floating(kind):
        form, code = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[kind.bit_width]
        return isinstance(found, (int, decimal.Decimal)) and struct.pack(form, float(found)) == struct.pack(code, value)
    if types.is_decimal(kind):
        return isinstance(found, (int, decimal.Decimal, str)) and decimal.Decimal(found).compare(value, DECIMALS) == 0
    if types.is_map(kind):
        pairs = [(key, item) for (_, key), (_, item) in value]
        return isinstance(found, Pairs) and len(found) == len(pairs) and all(
            str(key) == name and is_json_of(kind.item_type, item, of) for (key, item), (name, of) in zip(pairs, found)
        )
    if is_list(kind):
        is_same = lambda: all(is_json_of(kind.value_type, *pair) for pair in zip(value, found))
        return type(found) is list and len(found) == len(value) and is_same()
    if types.is_struct(kind):
        return isinstance(found, Pairs) and [name for name, _ in value] == [name for name, _ in found] and all(
            is_json_of(field.type, a, b) for field, (_, a), (_, b) in zip(kind, value, found)
        )
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return isinstance(found, str) and ticks(kind, found) == value
    if isinstance(value, bytes):
        return isinstance(found, str) and found.lower() == value.hex()
    if isinstance(value, pa.MonthDayNano):
        return isinstance(found, str) and "ERROR" not in found
    return type(value) is type(found) and value == found


def ticks(kind, text):
    """The integer that a date, time or duration is."""
    second = UNITS[getattr(kind, "unit", "ms")]
    part = lambda digits: int((digits or "").ljust(9, "0")) * second // 10**9
    if types.is_duration(kind):
        found = re.fullmatch(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?", text)
        if not found:
            return None
        days, hours, minutes, seconds = (int(group or 0) for group in found.groups()[1:5])
        sum = (days * 86_400 + hours * 3600 + minutes * 60 + seconds) * second + part(found[6])
        return -sum if found[1] else sum
    found = re.fullmatch(r"(?:([+-]?\d{4,})-(\d\d)-(\d\d))?T?(?:(\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:\d\d)?", text)
    has_zone = getattr(kind, "tz", None) is not None
    if not found or bool(found[8]) != has_zone or ("T" in text) != (bool(found[1]) and bool(found[4])):
        return None
    year, month, day, hours, minutes, seconds = (int(group or 0) for group in found.groups()[:6])
    if found[1]:
        # Days since 1970 in the proleptic Gregorian calendar.
        of_year, march = (year - 1, month + 9) if month < 3 else (year, month - 3)
        day += 365 * of_year + of_year // 4 - of_year // 100 + of_year // 400 + (153 * march + 2) // 5 - 719469
    if types.is_date32(kind):
        return day
    offset = 0 if found[8] in (None, "Z") else int(f"{found[8][0]}1") * (int(found[8][1:3]) * 60 + int(found[8][4:]))
    return (day * 86_400 + hours * 3600 + (minutes - offset) * 60 + seconds) * second + part(found[7])


# What is done with each case.


class Sweep:
    def __init__(self, nigh, folder, keep):
        self.nigh, self.folder, self.keep = nigh, folder, keep
        self.totals, self.failed, self.refused, self.unwritten = collections.Counter(), [], [], []

    def run(self, *args):
        done = subprocess.run([self.nigh, *map(str, args)], capture_output=True, text=True, errors="replace", timeout=600)
        return done.returncode, (done.stdout + done.stderr).strip()

    def fail(self, case, text):
        self.totals["failures"] += 1
        self.failed.append((case, text))
        print(f"FAILED  {case}: {text}", flush=True)

    def step(self, case, file, *args):
        """Runs a command. Whether it did; if not, it must say why, and of which file."""
        self.totals["commands"] += 1
        code, text = self.run(*args)
        if code == 0:
            return True
        self.totals["refused"] += 1
        self.refused.append((case, code, text))
        if code not in (1, 2, 3) or "panicked" in text or "a fault of nigh" in text:
            self.fail(case, f"exit code {code}: {short(text)}")
        elif file not in text:
            self.fail(case, f"refused, and the file is not named: {short(text)}")
        return False

    def start(self, name):
        place = self.folder / re.sub(r"[^\w.+-]+", "_", name)[:100]
        shutil.rmtree(place, ignore_errors=True)
        (place / "in").mkdir(parents=True)
        (place / "job.toml").write_text('[cluster]\n[cluster.read.columns]\nid = "id"\ntext = "text"\n')
        return place

    def job(self, place, *more):
        where = ["--input", place / "in", "--store", place / "store", "--week", WEEK]
        return ["run", place / "job.toml", *where, "-q", "--no-accuracy", "--workers", 1, *more]

    def case(self, case, double):
        name = f"{case.format} {case.name}{' with a duplicate' if double else ''}"
        self.totals["cases"] += 1
        place = self.start(name)
        file = place / "in" / f"a.{case.format}"
        try:
            write(case, file, double)
        except (pa.ArrowException, OSError) as error:
            self.totals["cases"] -= 1
            self.totals["not written by pyarrow"] += 1
            self.unwritten.append((name, error))
            shutil.rmtree(place)
            return
        failures = len(self.failed)
        source = next((place / "in").iterdir())
        if self.step(f"{name}: run", source.name, *self.job(place, *([] if case.rows else ["--allow-empty"]))):
            # The slice has one of the two.
            gone = [case.rows // 2] if double and case.rows and case.name != "sliced" else []
            rows = [row for row in range(case.rows) if row not in gone]
            self.exports(case, name, place, source, rows, double)
        if len(self.failed) == failures and not self.keep:
            shutil.rmtree(place)

    def exports(self, case, name, place, source, rows, double):
        # What pyarrow reads of INT96 is nanoseconds, which do not reach as far.
        is_table = case.format == "arrow" or case.options.get("use_deprecated_int96_timestamps")
        table = case.table if is_table else pq.ParquetFile(source).read()
        all_rows = list(range(case.rows))
        steps = {"jsonl": lambda out: check_lines(table, out, rows)}
        if case.format == "parquet":
            steps["parquet"] = lambda out: check_parquet(source, out, rows, False)
        else:
            steps["parquet"] = lambda out: check_converted(table, out, rows, place / "pyarrow.parquet")
        if double and case.format == "parquet":
            steps["annotated"] = lambda out: check_parquet(source, out, all_rows, True)
        for format, check in steps.items():
            out, step = place / format, f"{name}: export {format}"
            args = ["--what", "annotated"] if format == "annotated" else ["--format", format]
            if not self.step(step, source.name, "export", place / "store", "--out", out, *args):
                # Files that are compressed as a whole are refused on purpose.
                if format == "parquet" and case.name != "whole gzip" and is_written(table, place / "pyarrow.parquet"):
                    self.fail(step, "refused, and pyarrow writes it")
                continue
            written = out / f"a.{'jsonl' if format == 'jsonl' else 'parquet'}"
            if not written.exists():
                self.fail(step, f"exit code 0, and no file: {[path.name for path in out.iterdir()]}")
                continue
            try:
                for text in list(check(written))[:4]:
                    self.fail(step, text)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                # Nor does it read some that it wrote itself.
                own = place / "pyarrow.parquet"
                if format != "parquet" or case.format == "parquet" or (is_written(table, own) and is_read(own)):
                    self.fail(step, f"pyarrow does not read it: {short(error)}")

    def encrypted(self, name, options, is_needed, beside=0):
        """A file with encrypted columns, beside others: who needs one must say so."""
        self.totals["cases"] += 1
        name, place, chance = f"encrypted {name}", self.start(f"with keys {name}"), random.Random(7)
        words = ["".join(chance.choices(string.ascii_lowercase, k=7)) for _ in range(2000)]
        factory = encryption.CryptoFactory(Keys)
        config = encryption.EncryptionConfiguration(footer_key="footer", data_key_length_bits=128, **options)
        for number in range(beside + 1):
            columns = documents(10, chance, False, words)
            columns |= {"id": pa.array([f"{number}-{row}" for row in range(10)]), "secret": pa.array(range(10))}
            properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), config) if number == 0 else None
            pq.write_table(pa.table(columns), place / "in" / f"{'a' if number == 0 else f'b{number}'}.parquet", encryption_properties=properties)
        steps = {"run --dry-run": self.job(place, "--dry-run"), "run": self.job(place)}
        steps |= {f"export {form}": ["export", place / "store", "--out", place / form, "--format", form] for form in ("parquet", "jsonl")}
        for step, args in steps.items():
            self.totals["commands"] += 1
            code, text = self.run(*args)
            is_export, says = step.startswith("export"), "encrypt" in text and ("a.parquet" in text or step == "run")
            if code != 0:
                self.totals["refused"] += 1
                self.refused.append((f"{name}: {step}", code, text))
            # A run lists rejects by file in a table. An export counts what the run rejected.
            is_right = says or (code == 0 and ("left out" in text if is_export else not is_needed))
            if code not in (0, 1, 3) or "panicked" in text or not is_right:
                lines = [line.strip() for line in text.split("\n") if re.search("nigh|reject|Damaged|left out", line)]
                self.fail(f"{name}: {step}", f"exit code {code}, expected what is encrypted, found {short(' / '.join(lines))}")
            if step == "run" and code != 0:
                break


class Keys(encryption.KmsClient):
    """Keys that are not secret."""

    def __init__(self, _config):
        encryption.KmsClient.__init__(self)

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nigh", default="nigh", metavar="PROGRAM", help="the program (default: nigh, on the path)")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORDS", help="only the cases whose name has one of these")
    parser.add_argument("--seed", type=int, default=1, help="of the texts and values")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="keep the files of all cases there")
    args = parser.parse_args()
    folder = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="arrow-sweep-"))
    sweep = Sweep(args.nigh, folder, args.keep is not None)
    is_chosen = lambda name: not args.only or any(words in name for words in args.only)
    for double in (False, True):
        for case in cases(random.Random(args.seed), double):
            if is_chosen(f"{case.format} {case.name}"):
                sweep.case(case, double)
    encrypted = [(["secret"], True), (["text"], True), (["id"], True), (["id", "text", "secret"], True), (["secret"], False)]
    for columns, has_plain_footer in encrypted:
        for beside in (0, 39):
            name = f"{', '.join(columns)}{'' if has_plain_footer else ' and footer'}, beside {beside} files"
            if is_chosen(f"encrypted {name}"):
                options = {"plaintext_footer": has_plain_footer, "column_keys": {"k": columns}}
                sweep.encrypted(name, options, columns != ["secret"] or not has_plain_footer, beside)
    print(f"\nRefused: {len(sweep.refused)}")
    for case, code, text in sweep.refused:
        print(f"    {case} (exit code {code}): " + text.replace("\n", "\n        "))
    print(f"\nNot written by pyarrow: {len(sweep.unwritten)}")
    for name, error in sweep.unwritten:
        print(f"    {name}: {short(error)}")
    print("\n" + ", ".join(f"{count} {what}" for what, count in sweep.totals.items()))
    if not sweep.keep and not sweep.failed:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if sweep.failed else 0)


main()
