"""`nigh.cluster`, `nigh.deduplicate` and `Store.add` on rows in memory and in streams, against the same rows in files.

Run by tests/suite/inputs/in_memory.rs with the program on PATH. Ends with 4 if pandas, Polars
or DuckDB is not there.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.fs
    import pyarrow.parquet as pq
except ImportError as error:
    print(f"{error}: python3 -m pip install duckdb pandas polars pyarrow", file=sys.stderr)
    sys.exit(4)

import nigh
import nigh._cluster
import nigh._data
import nigh._program
from made_rows import FAMILIES, ROWS, children, table, texts


class Memory(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # What is left behind would be here.
        self.scratch = self.folder / "tmp"
        self.scratch.mkdir()
        variables = unittest.mock.patch.dict(os.environ, {"TMPDIR": str(self.scratch)})
        variables.start()
        self.addCleanup(variables.stop)
        tempfile.tempdir = None
        self.addCleanup(setattr, tempfile, "tempdir", None)

    def assert_nothing_left(self) -> None:
        self.assertEqual(list(self.scratch.iterdir()), [])
        self.assertEqual(children(), [])

    def kinds(self, rows: pa.Table) -> dict[str, Any]:
        """The same rows as values of each kind."""
        pq.write_table(rows, self.folder / "rows.parquet", row_group_size=7)
        return {
            "table": rows,
            "chunks": pa.concat_tables([rows.slice(0, 1), rows.slice(1, 0), rows.slice(1, 30), rows.slice(31)]),
            "batch": pa.RecordBatch.from_arrays([column.combine_chunks() for column in rows.columns], schema=rows.schema),
            "reader": pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=7)),
            "dataset": pyarrow.dataset.dataset(self.folder / "rows.parquet"),
            "pandas": rows.to_pandas(types_mapper=pandas.ArrowDtype),
            "polars": polars.DataFrame(rows),
            "duckdb": duckdb.connect().from_arrow(rows),
        }

    def test_each_kind_has_the_clusters_of_a_file(self) -> None:
        rows = table()
        kinds = self.kinds(rows)
        expected = nigh.cluster(self.folder / "rows.parquet", id="key", similarity=0.8, verify="exact")
        self.assertEqual(sum(expected["stays"].to_pylist()), FAMILIES)
        for name, data in kinds.items():
            found = nigh.cluster(data, id="key", similarity=0.8, verify="exact", progress=False)
            self.assertEqual(found.to_pydict(), expected.drop_columns(["file"]).to_pydict(), name)
        self.assert_nothing_left()

    def test_what_stays_is_of_the_same_kind_with_all_columns_and_types(self) -> None:
        rows = table()
        expected = rows.slice(0, FAMILIES)
        for name, data in self.kinds(rows).items():
            kept = nigh.deduplicate(data, id="key", similarity=0.8)
            same = {"dataset": pa.RecordBatchReader, "duckdb": pa.RecordBatchReader}.get(name, type(data))
            self.assertIs(type(kept), same, name)
            if name == "pandas":
                self.assertTrue(kept.equals(data.head(FAMILIES)))
            elif name == "polars":
                self.assertTrue(kept.equals(data.head(FAMILIES)))
            elif name == "batch":
                self.assertEqual(kept, expected.combine_chunks().to_batches()[0])
            elif name == "duckdb":
                self.assertEqual(kept.read_all()["key"].to_pylist(), expected["key"].to_pylist())
            else:
                self.assertEqual(kept.read_all() if same is pa.RecordBatchReader else kept, expected, name)
        self.assert_nothing_left()

    def test_what_stays_is_what_an_export_writes(self) -> None:
        rows = table()
        pq.write_table(rows, self.folder / "rows.parquet")
        choice: dict[str, Any] = {"keep": ["score desc", "meta.n desc"], "most": 2, "each": "meta.source"}
        kept = nigh.deduplicate(rows, id="key", similarity=0.8, **choice)
        nigh.cluster(self.folder / "rows.parquet", id="key", similarity=0.8, store=self.folder / "store", **choice)
        nigh.open(self.folder / "store").export(self.folder / "out")
        self.assertEqual(kept, pq.read_table(self.folder / "out" / "rows.parquet"))
        self.assertTrue(FAMILIES < kept.num_rows < ROWS)

    def test_types_of_texts(self) -> None:
        plain = pa.array(texts())
        long = pa.array(["unread"] * 11 + texts() + ["unread"] * 5)
        columns: dict[str, Any] = {
            "large": plain.cast(pa.large_string()),
            "view": plain.cast(pa.string_view()),
            "binary": plain.cast(pa.binary()),
            "dictionary": plain.dictionary_encode(),
            "dictionaries": pa.chunked_array([plain.slice(0, 25).dictionary_encode(), plain.slice(25).dictionary_encode()]),
            "sliced": long.slice(11, ROWS),
            "sliced view": long.cast(pa.string_view()).slice(11, ROWS),
            "sliced dictionary": long.dictionary_encode().slice(11, ROWS),
        }
        for name, column in columns.items():
            rows = pa.table({"text": column, "place": range(ROWS), "within": pa.StructArray.from_arrays([plain.cast(pa.string_view())], ["view"])})
            kept = nigh.deduplicate(rows, similarity=0.8)
            self.assertEqual(kept.schema, rows.schema, name)
            self.assertEqual(kept.to_pylist(), rows.slice(0, FAMILIES).to_pylist(), name)
            reader = nigh.deduplicate(rows.to_reader(max_chunksize=9), similarity=0.8)
            self.assertEqual(reader.schema, rows.schema, name)
            self.assertEqual(reader.read_all().to_pylist(), rows.slice(0, FAMILIES).to_pylist(), name)
        frame = polars.DataFrame({"text": polars.Series(texts(), dtype=polars.Categorical), "place": range(ROWS)})
        self.assertTrue(nigh.deduplicate(frame, similarity=0.8).equals(frame.head(FAMILIES)))
        objects = pandas.DataFrame({"text": texts()}, dtype=object, index=[f"row {number}" for number in range(ROWS)])
        self.assertTrue(nigh.deduplicate(objects, similarity=0.8).equals(objects.head(FAMILIES)))

    def test_columns_within_others(self) -> None:
        rows = pa.table({"doc": [{"body": text, "key": number} for number, text in enumerate(texts())]})
        kept = nigh.deduplicate(rows, text="doc.body", id="doc.key", similarity=0.8)
        self.assertEqual(kept, rows.slice(0, FAMILIES))

    def test_texts_in_several_columns(self) -> None:
        halves = [text.split(" ", 9) for text in texts()]
        first = [None if number % 3 == 2 else " ".join(half[:9]) for number, half in enumerate(halves)]
        rows = pa.table({"q": first, "doc": [{"a": half[9]} for half in halves], "text": [f"{one or ''}\n{half[9]}" for one, half in zip(first, halves)]})
        for name, data in self.kinds(rows).items():
            found = nigh.deduplicate(data, text=["q", "doc.a"], similarity=0.8)
            self.assertEqual(len(found) if not isinstance(found, pa.RecordBatchReader) else len(found.read_all()), len(nigh.deduplicate(rows, similarity=0.8)), name)
        self.assertEqual(nigh.deduplicate(rows, text=("q", "doc.a"), similarity=0.8), nigh.deduplicate(rows, similarity=0.8))
        with self.assertRaisesRegex(nigh.NoColumn, "no column `answer`"):
            nigh.cluster(rows, text=["q", "answer"])
        with self.assertRaisesRegex(nigh.Failed, "`q` is named twice"):
            nigh.cluster(rows, text=["q", "q"])

    def test_rows_without_a_text_do_not_stay(self) -> None:
        some: list[str | None] = [*texts()[:FAMILIES], None, "", None]
        with self.assertWarnsRegex(UserWarning, "2 of 23 rows do not stay"):
            kept = nigh.deduplicate(pa.table({"text": some}), similarity=0.8)
        self.assertEqual(kept["text"].to_pylist(), [*texts()[:FAMILIES], ""])
        found = nigh.cluster(pa.table({"text": some}), similarity=0.8)
        self.assertEqual([place for place, doc in enumerate(found["doc"].to_pylist()) if doc is None], [20, 22])
        with self.assertWarnsRegex(UserWarning, "3 of 3 rows"):
            self.assertEqual(nigh.deduplicate(pa.table({"text": pa.nulls(3)})), pa.table({"text": pa.nulls(0)}))

    def test_a_warning_says_why_rows_are_no_documents(self) -> None:
        some: list[str | None] = [*texts()[:3], None]
        frame = pandas.DataFrame({"key": [1.0, 2.0, None, 4.0], "text": some})
        # As pandas makes of whole numbers of which one is missing.
        wanted = r"4 of 4 rows .*: an id that is neither text nor a whole number \(3\); no id \(1\)"
        with self.assertWarnsRegex(UserWarning, wanted):
            self.assertEqual(len(nigh.deduplicate(frame, id="key")), 0)
        with self.assertWarnsRegex(UserWarning, r"2 of 4 rows .*: no text \(1\); the id of another row \(1\)"):
            nigh.deduplicate(pa.table({"key": ["a", "b", "a", "c"], "text": [some[0], some[1], some[0], None]}), id="key")

    def test_no_rows(self) -> None:
        empty = table().slice(0, 0)
        for name, data in self.kinds(empty).items():
            kept = nigh.deduplicate(data, id="key")
            kept = kept.read_all() if isinstance(kept, pa.RecordBatchReader) else kept
            self.assertEqual(len(kept), 0, name)
            names = kept.columns if name in ("pandas", "polars") else kept.schema.names
            self.assertEqual(list(names), table().column_names, name)
        self.assertEqual(nigh.cluster(empty, id="key").num_rows, 0)

    def test_columns_that_are_not_there_or_there_twice(self) -> None:
        rows = table()
        for name, data in self.kinds(rows).items():
            with self.assertRaisesRegex(nigh.NoColumn, r"no column `body` \(its columns: key, text, score, meta, tags, day\)", msg=name):
                nigh.deduplicate(data, text="body")
        twice = pa.table([pa.array(texts()), pa.array(texts())], names=["text", "text"])
        with self.assertRaisesRegex(nigh.NoColumn, "2 columns `text`"):
            nigh.cluster(twice)
        with self.assertRaisesRegex(nigh.NoColumn, r"no input has a column `quality` \(its columns: key, text, score"):
            nigh.cluster(rows, keep=["quality desc"])
        with self.assertRaisesRegex(nigh.Failed, "the column `tags` of - is"):
            nigh.cluster(rows, text="tags")
        self.assertTrue(issubclass(nigh.NoColumn, LookupError) and issubclass(nigh.NoColumn, ValueError))
        self.assert_nothing_left()

    def test_wrong_arguments(self) -> None:
        with self.assertRaises(nigh.WrongUse):
            nigh.cluster(table(), similarity=2.0)
        for wrong in ([{"text": "a"}], {"text": ["a"]}, 7, b"text", table().column("text")):
            with self.assertRaises(TypeError):
                nigh.cluster(wrong)
        with self.assertRaisesRegex(TypeError, "export"):
            nigh.deduplicate("shards/*.parquet")
        with self.assertRaisesRegex(TypeError, "collect"):
            nigh.deduplicate(polars.DataFrame(table()).lazy())
        self.assert_nothing_left()

    def test_a_column_of_urls_is_read_only_if_it_is_named(self) -> None:
        rows = pa.table({"url": ["http://a.example/"] * ROWS, "text": texts(), "source_url": [str(n) for n in range(ROWS)]})
        self.assertEqual(nigh.deduplicate(rows, similarity=0.8, keep=["source_url"]).num_rows, FAMILIES)
        with warnings.catch_warnings(record=True):
            self.assertEqual(nigh.deduplicate(rows, similarity=0.8, url="url", same_id="first").num_rows, 1)

    def test_columns_of_an_order_are_whole_names(self) -> None:
        # Names that are parts of terms, twice; names of policies, and of what is no column.
        unread = {name: pa.nulls(ROWS, pa.string()) for name in ("s", "e", "core", "")}
        read = {"text": texts(), "score": [number % 7 for number in range(ROWS)], "a, b": list(range(ROWS)), "root": ["x", "y", "z", "z"] * 15}
        columns = [pa.array(column) for column in [*unread.values(), *unread.values(), *read.values()]]
        rows = pa.table(columns, names=[*unread, *unread, *read])
        file = pa.table(read)
        pq.write_table(file, self.folder / "rows.parquet")
        orders: list[tuple[dict[str, Any], list[str]]] = [
            ({"keep": "score desc"}, ["score"]),
            ({"keep": ["score desc", 'root in ["s", "e"]']}, ["score", "root"]),
            ({"keep": "`a, b` desc, length", "most": 2}, ["a, b"]),
            ({"keep": "longest", "each": "root"}, ["root"]),
            ({"keep": "root", "each": "`a, b`"}, ["a, b"]),
            ({"keep": "root"}, []),
        ]
        for order, named in orders:
            with unittest.mock.patch("nigh._cluster.send", wraps=nigh._cluster.send) as sent:
                found = nigh.cluster(rows, similarity=0.8, **order)
            self.assertEqual(sent.call_args[0][1], ["text", *named], order)
            if order["keep"] == "root":
                # Which document is the root of its cluster depends on the name of its file.
                continue
            of_file = nigh.cluster(self.folder / "rows.parquet", similarity=0.8, **order)
            self.assertEqual(found["stays"].to_pylist(), of_file["stays"].to_pylist(), order)
        with self.assertRaisesRegex(nigh.NoColumn, "2 columns `core`"):
            nigh.cluster(rows, keep=["core desc"])

    def test_names_of_any_characters(self) -> None:
        for name in ("\U0001f70a", "del\x7f", 'quote" \\ and\ttab', "a = b"):
            rows = pa.table({name: texts(), f"{name} of order": range(ROWS)})
            kept = nigh.deduplicate(rows, text=name, similarity=0.8, keep=[f"`{name} of order` desc"])
            self.assertEqual(kept, rows.slice(ROWS - FAMILIES), name)
            grouped = nigh.deduplicate(rows, text=name, similarity=0.8, each=f"{name} of order")
            self.assertEqual(grouped, rows, name)

    def test_an_error_of_a_reader_is_shown_and_nothing_is_left(self) -> None:
        class Broken(Exception):
            pass

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in table().to_batches(max_chunksize=20):
                yield batch
            raise Broken("the source is gone")

        for call in (nigh.cluster, nigh.deduplicate):
            for store in (None, self.folder / "store"):
                reader = pa.RecordBatchReader.from_batches(table().schema, batches())
                with self.assertRaisesRegex(Broken, "the source is gone"):
                    call(reader, id="key", store=store)
                self.assertFalse((self.folder / "store").exists())
                self.assert_nothing_left()

    def test_a_program_that_is_killed(self) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            for place, batch in enumerate(table().to_batches(max_chunksize=20)):
                if place == 1:
                    for child in children():
                        os.kill(child, signal.SIGKILL)
                yield batch

        with self.assertRaisesRegex(nigh.Killed, "SIGKILL") as killed:
            nigh.deduplicate(pa.RecordBatchReader.from_batches(table().schema, batches()))
        self.assertEqual((killed.exception.signal, killed.exception.code), (signal.SIGKILL, -signal.SIGKILL))
        self.assert_nothing_left()

    def test_a_python_that_is_killed_while_it_sends_adds_nothing(self) -> None:
        code = f"""
            import os, signal, sys
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            import pyarrow as pa
            import made_rows, nigh

            def batches():
                pieces = made_rows.table().to_batches(max_chunksize=20)
                for place in range(len(pieces) + 1):
                    if place == {{}}:
                        print(*made_rows.children(), flush=True)
                        os.kill(os.getpid(), signal.SIGKILL)
                    yield pieces[place]

            reader = pa.RecordBatchReader.from_batches(made_rows.table().schema, batches())
            nigh.open({str(self.folder / "store")!r}).add(reader, id="key", similarity=0.8, week="2024-01-02")
        """
        store = nigh.open(self.folder / "store", create=True)
        store.add(table().slice(0, 25), id="key", similarity=0.8, week="2024-01-01")
        # Before the first batch, in the middle, and after the last one.
        for place in (0, 2, 3):
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code).replace("{}", str(place))], capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            until = time.monotonic() + 60
            for child in done.stdout.split():
                # One that has ended is a zombie until its parent knows it.
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    while " Z " not in Path(f"/proc/{child}/stat").read_text():
                        self.assertLess(time.monotonic(), until, "the program still runs")
                        time.sleep(0.05)
            self.assertEqual(store.weeks, ["2024-01-01"], place)
        store.add(table().slice(25), id="key", similarity=0.8, week="2024-01-02")
        self.assertEqual(store.weeks, ["2024-01-01", "2024-01-02"])

    def interrupted(self, code: str, until: str, *, by_terminal: bool = False) -> subprocess.CompletedProcess[str]:
        """Runs some code, and interrupts it when it has printed a line: it alone, or with the program as Ctrl-C does on a terminal."""
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(until):
                break
        started = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        (os.killpg if by_terminal else os.kill)(process.pid, signal.SIGINT)
        printed, said = process.communicate(timeout=60)
        for child in started:
            self.assertFalse(Path(f"/proc/{child}").exists())
        return subprocess.CompletedProcess(process.args, process.returncode, printed, f"{len(started)} {said}")

    def test_an_interrupted_call_ends_the_program(self) -> None:
        code = f"""
            import sys, time
            import pyarrow as pa
            import nigh

            def batches():
                yield pa.record_batch({{"text": ["some words"]}})
                print("reading", flush=True)
                time.sleep(600)

            store = {str(self.folder / "store")!r} if {{}} else None
            nigh.deduplicate(pa.RecordBatchReader.from_batches(pa.schema({{"text": pa.string()}}), batches()), store=store)
        """
        for with_store, by_terminal in (("True", True), ("True", False), ("False", True), ("False", False)):
            ended = self.interrupted(code.replace("{}", with_store), "reading", by_terminal=by_terminal)
            self.assertIn("KeyboardInterrupt", ended.stderr)
            self.assertTrue(ended.stderr.startswith("1 "), ended.stderr)
            self.assertEqual(ended.returncode, -signal.SIGINT)
            self.assertFalse((self.folder / "store").exists())
            self.assert_nothing_left()

    def test_a_call_is_interrupted_while_the_program_computes(self) -> None:
        # The program stands still, so that the call waits for it.
        code = """
            import os, signal, threading, time
            from pathlib import Path
            import pyarrow as pa
            import nigh
            import nigh._cluster as module

            send = module.send
            def sent(*arguments):
                count = send(*arguments)
                for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                    os.kill(int(child), signal.SIGSTOP)
                    threading.Timer(3, os.kill, (int(child), signal.SIGCONT)).start()
                print("sent", flush=True)
                return count
            module.send = sent
            nigh.cluster(pa.table({"text": ["some words"] * 10}))
        """
        begun = time.monotonic()
        ended = self.interrupted(code, "sent")
        self.assertIn("KeyboardInterrupt", ended.stderr)
        self.assertTrue(ended.stderr.startswith("1 "), ended.stderr)
        self.assertLess(time.monotonic() - begun, 30)
        self.assert_nothing_left()

    def test_a_stream_is_not_held_in_memory(self) -> None:
        code = """
            import random
            import pyarrow as pa
            import nigh

            BATCHES, ROWS = 100, 128
            paragraphs = [" ".join(f"w{(1000 * place + word) * 104729 % 10000019:08}" for word in range(100)) for place in range(4000)]

            def text(number):
                return " ".join(random.Random(number).choices(paragraphs, k=18))

            def batches():
                for batch in range(BATCHES):
                    # Each text is there twice.
                    rows = [(batch * ROWS + row) // 2 for row in range(ROWS)]
                    yield pa.record_batch({"id": [batch * ROWS + row for row in range(ROWS)], "text": [text(number) for number in rows]})

            reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64(), "text": pa.string()}), batches())
            def most_memory():
                # Of this process since it was started; the resource usage has that of the parent, too.
                return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

            before = most_memory()
            sent = kept = 0
            for batch in nigh.deduplicate(reader, similarity=0.8):
                kept += batch.num_rows
                sent += batch.nbytes
            print(kept, sent, (most_memory() - before) >> 10)
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        kept, of_bytes, megabytes = map(int, done.stdout.split())
        print(f"a reader of {100 * 128:,} texts, 200 MB or more: {kept:,} stay; Python took {megabytes} MB more", file=sys.stderr)
        # What stays is half.
        self.assertGreater(2 * of_bytes, 200_000_000)
        self.assertEqual(kept, 6_400)
        self.assertLess(megabytes, 150)
        self.assert_nothing_left()

    def test_a_dataset_that_changed_is_an_error(self) -> None:
        rows = table().select(["key", "text"])
        for count, says in ((ROWS - 1, "59 now"), (ROWS + 1, "more now")):
            shard = self.folder / f"{count}.csv"
            pa.csv.write_csv(rows, shard)
            # Only the rows of a file that is not local are counted.
            elsewhere = pyarrow.fs.SubTreeFileSystem(str(self.folder), pyarrow.fs.LocalFileSystem())
            kept = nigh.deduplicate(pyarrow.dataset.dataset(shard.name, format="csv", filesystem=elsewhere), id="key")
            pa.csv.write_csv(pa.concat_tables([rows, rows]).slice(0, count), shard)
            with self.assertRaisesRegex(nigh.Failed, says):
                kept.read_all()

    def test_a_local_file_that_changed_is_an_error_before_the_first_row(self) -> None:
        rows = table().select(["key", "text"])
        files = [self.folder / f"{number}.parquet" for number in range(3)]

        def dataset() -> pyarrow.dataset.Dataset:
            for file in files:
                pq.write_table(rows, file)
            first = pyarrow.dataset.dataset(files[:2])
            return pyarrow.dataset.dataset([first, pyarrow.dataset.dataset(files[2])])

        reversed_rows = rows.take(list(range(ROWS - 1, -1, -1)))
        for change in (lambda: pq.write_table(reversed_rows, files[2]), lambda: os.utime(files[2], ns=(0, 0)), files[2].unlink):
            kept = nigh.deduplicate(dataset(), id="key", same_id="row", similarity=0.8)
            change()
            with self.assertRaisesRegex(nigh.Failed, "the data changed: .*2.parquet had another size or time"):
                kept.read_next_batch()
        # And while it is read.
        kept = nigh.deduplicate(dataset(), id="key", same_id="row", similarity=0.8)
        kept.read_next_batch()
        os.utime(files[0], ns=(0, 0))
        with self.assertRaisesRegex(nigh.Failed, "0.parquet had another size or time"):
            kept.read_all()
        # As long as nothing changed:
        self.assertEqual(nigh.deduplicate(dataset(), id="key", same_id="row", similarity=0.8).read_all(), rows.slice(0, FAMILIES))

    def test_views_within_others_are_written_once(self) -> None:
        count = 40_000
        views = pa.array([f"{number:064}" for number in range(count)], pa.string_view())
        offsets = pa.array(range(count + 1), pa.int32())
        columns = {
            "struct": pa.StructArray.from_arrays([views], ["view"]),
            "list": pa.ListArray.from_arrays(offsets, views),
            "large list": pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), views),
            "fixed list": pa.FixedSizeListArray.from_arrays(views, 1),
            "lists in structs": pa.StructArray.from_arrays([pa.ListArray.from_arrays(offsets, views.cast(pa.binary_view()))], ["list"]),
            "map": pa.MapArray.from_arrays(offsets, views, views),
        }
        for name, column in columns.items():
            rows = pa.table({"text": column})
            data = nigh._data.data_of(rows, is_kept=False)
            assert data is not None
            with tempfile.TemporaryFile() as file:
                nigh._data.send(data, ["text"], nigh._program.Pipe(file, lambda: None), lambda count: None)
                file.seek(0)
                written = file.read()
            # Once each, and lengths: the program reads batches of at most 8,192 rows.
            self.assertLess(len(written), 2.6 * 64 * count if name == "map" else 1.6 * 64 * count, name)
            sent = pa.ipc.open_stream(written).read_all()
            self.assertEqual(sent["text"].to_pylist()[::1000], column.to_pylist()[::1000], name)
        # What comes back has the types that came in.
        some = pa.table({"text": texts(), **{name: column.slice(7, ROWS) for name, column in columns.items()}})
        for data in (some, some.to_reader(max_chunksize=9)):
            kept = nigh.deduplicate(data, similarity=0.8)
            kept = kept if isinstance(kept, pa.Table) else kept.read_all()
            self.assertEqual(kept.schema, some.schema)
            self.assertEqual(kept.to_pylist(), some.slice(0, FAMILIES).to_pylist())

    def test_a_frame_of_pandas_is_read_some_rows_at_a_time(self) -> None:
        count = 20_000
        numbers: list[Any] = [None] * 9_000 + [1] * 9_000 + [2.5] * 2_000
        frame = pandas.DataFrame({
            "text": pandas.Series([f"{number} words" for number in range(count)], dtype=object),
            "numbers": pandas.Series(numbers, dtype=object),
            "meta": pandas.Series([{"a": number} if number < 9_000 else {"b": [None]} for number in range(count)], dtype=object),
            "kind": pandas.Series(["a", "b"] * (count // 2), dtype="category"),
            "none": pandas.Series([None] * count, dtype=object),
            7: range(count),
        })
        schema, batches = nigh._data._Pandas(frame).batches(["kind", "numbers", "meta", "none", "7", "text"])
        lengths, tables = [], []
        for batch in batches:
            self.assertEqual(batch.schema, schema)
            lengths.append(batch.num_rows)
            tables.append(batch)
        self.assertEqual(lengths, [8192, 8192, 3616])
        renamed = frame.rename(columns=str)[["kind", "numbers", "meta", "none", "7", "text"]]
        self.assertEqual(pa.Table.from_batches(tables).to_pydict(), pa.Table.from_pandas(renamed, preserve_index=False).to_pydict())
        kept = nigh.deduplicate(frame, keep=["numbers desc", "kind"], each="7")
        self.assertTrue(kept.equals(frame))

    def test_every_row_has_its_place(self) -> None:
        rows = pa.table({"file": ["-"] * 3, "offset": pa.array([1, 2, 4], pa.uint64()), "stays": [True, False, True]})
        self.assertEqual(nigh._cluster._every_row(rows, 6).to_pydict(), {"offset": list(range(6)), "stays": [None, True, False, None, True, None]})
        self.assertEqual(nigh._cluster._every_row(rows.slice(0, 0), 0).to_pydict(), {"offset": [], "stays": []})

    def test_warnings_are_shown_while_rows_are_sent(self) -> None:
        program = self.folder / "program"
        events = [{"event": "log", "level": "warning", "message": "look here"}, {"event": "progress", "stage": "reading", "steps": 1, "of_steps": 2}]
        program.write_text("#!/bin/sh\n" + "".join(f"echo '{json.dumps(event)}' >&2\n" for event in events) + "cat > /dev/null\necho done\n")
        program.chmod(0o755)
        said = io.StringIO()
        bar = unittest.mock.Mock()

        def feed(pipe: nigh._program.Pipe) -> None:
            until = time.monotonic() + 30
            while "look here" not in said.getvalue() and time.monotonic() < until:
                pipe.write(b"a row")
                time.sleep(0.01)
            self.assertEqual(said.getvalue(), "nigh: look here\n")
            bar.show.assert_not_called()

        with unittest.mock.patch("nigh._program.program", return_value=str(program)), contextlib.redirect_stderr(said):
            self.assertEqual(nigh._program.execute((), feed=feed, bar=bar, notices=False), ("done\n", ""))
        self.assertEqual(said.getvalue(), "nigh: look here\n")

    def test_progress(self) -> None:
        for has_tqdm in (False, True):
            hide = "" if has_tqdm else "import importlib.util; importlib.util.find_spec = lambda name: None"
            code = f"{hide}\nimport sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport made_rows, nigh\n"
            code += "nigh.cluster(made_rows.table(), similarity=0.8, progress={})"
            found = {}
            for progress in ("True", "False", "None"):
                done = subprocess.run([sys.executable, "-c", code.replace("{}", progress)], capture_output=True, text=True, check=True)
                found[progress] = done.stderr
            # Standard error is no terminal.
            self.assertEqual((found["False"], found["None"]), ("", ""))
            self.assertIn("sending rows", found["True"])
            self.assertRegex(found["True"], r"60 of 60|60/60")

    def test_batches_add_up_in_a_store(self) -> None:
        rows = table()
        method: dict[str, Any] = {"id": "key", "similarity": 0.8, "verify": "estimate"}
        with self.assertRaises(FileNotFoundError):
            nigh.open(self.folder / "store")
        store = nigh.open(self.folder / "store", create=True)
        self.assertEqual((store.weeks, store.tables), ([], []))
        with self.assertRaisesRegex(ValueError, "id="):
            store.add(rows, similarity=0.8)
        with self.assertRaisesRegex(ValueError, "estimate"):
            store.add(rows, id="key", similarity=0.8, verify="exact")
        first = store.add(rows.slice(0, 25), week="2024-01-01", **method)
        self.assertEqual(first.summary["counts"]["documents"], 25)
        second = store.add(polars.DataFrame(rows.slice(25)), week="2024-01-02", **method)
        self.assertEqual((second.week, store.weeks), ("2024-01-02", ["2024-01-01", "2024-01-02"]))
        self.assertEqual(second.summary["counts"]["documents"], ROWS)
        one = nigh.cluster(rows, **method)
        clusters = store.rows("clusters", columns=["similar_size"])["similar_size"].to_pylist()
        self.assertEqual(sorted(clusters), sorted(one["size"].to_pylist()))
        with self.assertRaises(nigh.Failed):
            store.add(rows, week="2024-01-03", id="key", similarity=0.9)
        found = store.find(texts()[3])
        self.assertEqual(set(found["name"].to_pylist()), {"k3", "k23", "k43"})
        self.assertGreater(min(found["similarity"].to_pylist()), 0.9)
        self.assertEqual(store.find(url="k3", top=1).num_rows, 1)
        self.assertEqual(store.find("nothing like it").num_rows, 0)
        self.assertEqual(store.find("nothing like it").schema, found.schema)
        store.add(pa.table({"key": ["-17"], "text": [texts()[3]]}), week="2024-01-03", **method)
        self.assertIn("k3", store.find(url="-17")["name"].to_pylist())
        with self.assertRaises(ValueError):
            store.find()
        with self.assertRaises(nigh.Failed):
            store.find(url="k99")

    def test_another_choice_of_what_stays_is_a_warning(self) -> None:
        store, said = nigh.open(self.folder / "store", create=True), io.StringIO()
        with contextlib.redirect_stderr(said):
            store.add(table().slice(0, 30), id="key", similarity=0.8, week="2024-01-01", keep="longest")
            self.assertNotIn("chose", said.getvalue())
            store.add(table().slice(30), id="key", similarity=0.8, week="2024-01-02")
        self.assertIn("chose the canonical document of a cluster by", said.getvalue())

    def test_a_batch_is_compared_only_with_those_before(self) -> None:
        # Families of the first batch, and others, twice each.
        rows = table()
        batches = [rows.slice(0, 10), rows.slice(20)]
        kept = {}
        for only_older in (False, True):
            folder = self.folder / str(only_older)
            folder.mkdir()
            store = nigh.open(folder / "store", create=True)
            for number, batch in enumerate(batches):
                pq.write_table(batch, folder / f"{number}.parquet")
                flags = {"only_older": only_older and number == 1}
                store.add(folder / f"{number}.parquet", id="key", similarity=0.8, week=f"2024-01-0{number + 1}", **flags)
            kept[only_older] = store.export(folder / "out", since="2024-01-02")["written"]
            self.assertEqual(store.export(folder / "against", since="2024-01-02", only_older=True)["written"], 20)
        self.assertEqual(kept, {False: 10, True: 20})

    def test_bad_rows_of_a_batch_are_an_error_as_in_a_file(self) -> None:
        method: dict[str, Any] = {"id": "key", "similarity": 0.8, "verify": "estimate"}
        rows = table().select(["key", "text"])

        def with_nulls(count: int) -> pa.Table:
            return rows.set_column(1, "text", pa.array([None] * count + texts()[count:]))

        def file_of(batch: pa.Table) -> Path:
            pq.write_table(batch, self.folder / "rows.parquet")
            return self.folder / "rows.parquet"

        for name, kind in (("memory", lambda batch: batch), ("file", file_of)):
            store = nigh.open(self.folder / name, create=True)
            with self.assertRaisesRegex(nigh.TooManyRejects, "4 of 60 records are bad .*no text", msg=name):
                store.add(kind(with_nulls(4)), week="2024-01-01", **method)
            self.assertEqual(store.weeks, [])
            with self.assertRaisesRegex(nigh.Failed, "the input has no page", msg=name):
                store.add(kind(rows.slice(0, 0)), week="2024-01-01", **method)
            added = store.add(kind(with_nulls(3)), week="2024-01-01", **method)
            self.assertEqual((added.summary["counts"]["documents"], sum(added.summary["counts"]["rejects"].values())), (57, 3), name)
            added = store.add(kind(with_nulls(30)), week="2024-01-02", max_reject_share=0.5, **method)
            self.assertEqual(sum(added.summary["counts"]["rejects"].values()), 30, name)

    def test_batches_of_files_are_exported(self) -> None:
        store = nigh.open(self.folder / "store", create=True)
        for shard in range(2):
            pq.write_table(table().slice(30 * shard, 30), self.folder / f"{shard}.parquet")
            store.add(self.folder / f"{shard}.parquet", id="key", similarity=0.8, week=f"2024-01-0{shard + 1}")
        written = store.export(self.folder / "out", keep=["score desc", "meta.n desc"], format="jsonl")
        self.assertEqual(written["written"], FAMILIES)
        expected = nigh.deduplicate(table(), id="key", similarity=0.8, keep=["score desc", "meta.n desc"])
        lines = "".join(file.read_text() for file in sorted((self.folder / "out").glob("*.jsonl")))
        self.assertEqual([key for key in expected["key"].to_pylist() if f'"{key}"' not in lines], [])
        # In shards of one size, under other names.
        store.export(self.folder / "shards", keep=["score desc", "meta.n desc"], shards=3, rename={"key": "name", "text": "body"})
        shards = [pq.read_table(file) for file in sorted((self.folder / "shards").glob("data-*-of-*.parquet"))]
        self.assertEqual(sorted(shard.num_rows for shard in shards), [6, 7, 7])
        self.assertEqual(sorted(pa.concat_tables(shards)["name"].to_pylist()), sorted(expected["key"].to_pylist()))
        self.assertEqual({name for name in ("key", "name", "text", "body") if name in shards[0].column_names}, {"name", "body"})

    def test_a_number_of_rows_or_a_similarity_chooses_the_clusters(self) -> None:
        # Of each text copies in which the last words are others, each time some more.
        words = [[f"w{text * 7919 + place * 104729}" for place in range(100)] for text in range(12)]
        copies = [own[: 100 - changed] + [f"c{text}x{changed}x{at}" for at in range(changed)] for text, own in enumerate(words) for changed in (0, 1 + text, 16, 20 + text)]
        pq.write_table(pa.table({"key": [f"k{number}" for number in range(len(copies))], "text": [" ".join(copy) for copy in copies]}), self.folder / "rows.parquet")
        store = nigh.open(self.folder / "store", create=True)
        store.add(self.folder / "rows.parquet", id="key", similarity=0.6, verify="exact", week="2024-01-01")

        # The same by all pairs: how many stay at each similarity.
        sets = [{tuple((copy + copy)[at : at + 5]) for at in range(len(copy))} for copy in copies]
        alike = {(a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b]) for a in range(len(sets)) for b in range(a)}

        def stay(threshold: float) -> int:
            labels = list(range(len(sets)))
            for (a, b), similarity in alike.items():
                if similarity >= threshold and labels[a] != labels[b]:
                    labels = [labels[b] if label == labels[a] else label for label in labels]
            return len(set(labels))

        counts = {threshold: stay(threshold) for threshold in sorted({similarity for similarity in alike.values() if similarity >= 0.6})}
        self.assertGreater(len(set(counts.values())), 8)
        for wanted in (22, 30, 36, 47):
            written = store.export(self.folder / f"of-{wanted}", keep_rows=wanted)
            self.assertEqual(written["written"], max(count for count in [*counts.values(), len(sets)] if count <= wanted), wanted)
        for threshold in (0.6, 0.75, 0.9):
            written = store.export(self.folder / f"at-{threshold}", at_similarity=threshold)
            self.assertEqual(written["written"], stay(threshold), threshold)
        with self.assertRaisesRegex(nigh.Failed, f"at least {stay(0.6)} records stay"):
            store.export(self.folder / "too-few", keep_rows=stay(0.6) - 1)
        with self.assertRaisesRegex(nigh.Failed, "keep-rows"):
            store.export(self.folder / "both", keep_rows=30, at_similarity=0.9)


if __name__ == "__main__":
    unittest.main()
