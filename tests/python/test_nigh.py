"""The Python module against the program's own tables. Run by scripts/wheel.sh with the wheel installed."""

import datetime
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import nigh

CRAWL = Path(__file__).parents[1] / "data" / "week-2024-01-08"


def texts() -> list[str | None]:
    """Twelve texts: four families of three, and one that is missing."""
    families = [" ".join(f"w{(family + 1) * 7919 + place * 104729}" for place in range(120)) for family in range(4)]
    return [families[number % 4] + (f" own{number}" if number > 7 else "") for number in range(12)] + [None]


class Module(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_tables_of_studies_have_the_name_of_the_study_before(self) -> None:
        store = self.folder / "store"
        nigh.run("run", "jobs/example.toml", "--quiet", "--store", store)
        nigh.run("run", "jobs/overlap.toml", "--quiet", "--store", store)
        opened = nigh.open(store)
        self.assertIn("overlap/families", opened.tables)
        self.assertNotIn("overlap", opened.tables)
        families = opened.table("overlap/families")
        self.assertEqual(families.schema, pq.read_schema(next((store / "overlap" / "families").glob("*.parquet"))))
        for name in ("overlap", "overlap/", "overlap/families/x", "../store/clusters", "_nigh"):
            with self.assertRaises(KeyError):
                opened.table(name)
        with self.assertRaises(AttributeError):
            opened.overlap

    def test_ids_of_different_texts_are_an_error(self) -> None:
        table = pa.table({"key": [number % 6 for number in range(12)], "text": texts()[:12]})
        with self.assertRaisesRegex(nigh.Failed, "same-id"):
            nigh.cluster(table, id="key")
        self.assertEqual(nigh.cluster(table, id="key", same_id="first")["doc"].null_count, 6)
        self.assertEqual(nigh.cluster(table, id="key", same_id="row")["doc"].null_count, 0)

    def test_a_table_gives_a_row_for_each_of_its_rows(self) -> None:
        table = pa.table({"key": [f"k{number}" for number in range(13)], "body": texts(), "unread": range(13)})
        found = nigh.cluster(table, text="body", id="key", similarity=0.8, workers=1)
        self.assertEqual(found.num_rows, 13)
        self.assertEqual(found["size"].to_pylist(), [3] * 12 + [None])
        self.assertEqual(found["rank"].to_pylist(), [1] * 4 + [2] * 4 + [3] * 4 + [None])
        self.assertEqual(found["stays"].to_pylist(), [True] * 4 + [False] * 8 + [None])
        self.assertEqual(found["id"].to_pylist()[:12], table["key"].to_pylist()[:12])
        clusters = found["cluster"].to_pylist()
        self.assertEqual(len(set(clusters[:4])), 4)
        self.assertEqual(clusters[:4] * 2, clusters[4:12])

    def test_files_give_a_row_for_each_document_and_a_store(self) -> None:
        for shard in range(2):
            rows = {"text": texts()[6 * shard : 6 * shard + 6]}
            pq.write_table(pa.table(rows), self.folder / f"{shard}.parquet")
        found = nigh.cluster(self.folder / "*.parquet", keep="longest", store=self.folder / "store", similarity=0.8)
        self.assertEqual(found.num_rows, 12)
        self.assertEqual(found["stays"].to_pylist(), [False] * 8 + [True] * 4)
        store = nigh.open(self.folder / "store")
        self.assertEqual(len(store.weeks), 1)
        self.assertIn("clusters", store.tables)
        clusters = store.clusters.to_table(columns=["doc", "canonical"])
        canonical = {row["doc"] for row in clusters.to_pylist() if row["canonical"]}
        self.assertEqual(canonical, {row["doc"] for row in found.to_pylist() if row["stays"]})
        self.assertEqual(store.table("documents", store.weeks[0]).count_rows(), 12)
        self.assertEqual(store.summary()["counts"]["documents"], 12)
        rows = store.rows("clusters", where={"canonical": True}, columns=["doc"])
        self.assertEqual(set(rows["doc"].to_pylist()), canonical)
        self.assertEqual(store.rows("clusters", week="all", limit=1).column_names[0], "week")
        week = datetime.date.fromisoformat(store.weeks[0])
        self.assertEqual(set(store.clusters.to_table(columns=["week"])["week"].to_pylist()), {week})
        self.assertNotIn("week", store.table("clusters", store.weeks[0]).schema.names)
        with self.assertRaises(nigh.Failed):
            store.rows("cluster")
        written = store.export(self.folder / "out")
        self.assertEqual((written["documents"], written["written"]), (12, 4))
        self.assertEqual(pq.read_table(self.folder / "out" / "1.parquet")["text"].to_pylist(), texts()[8:12])
        with self.assertRaises(KeyError):
            store.table("cluster")
        with self.assertRaises(AttributeError):
            store.no_such_table
        with self.assertRaises(FileNotFoundError):
            nigh.open(self.folder)
        # A path would be a folder `s3:`.
        with self.assertRaisesRegex(ValueError, "a store in a bucket"):
            nigh.open("s3://bucket/store", create=True)

    def test_the_method_is_that_of_the_flags_of_the_program(self) -> None:
        shouted = [text and text.upper() for text in texts()[:4]]
        table = pa.table({"text": texts()[:4] + shouted})
        store = self.folder / "store"
        alone = nigh.cluster(table, preset="minhash-14x8", same_id="row")
        folded = nigh.cluster(table, preset="minhash-14x8", fold_case=True, same_id="row", store=store)
        self.assertEqual((set(alone["size"].to_pylist()), set(folded["size"].to_pylist())), ({1}, {2}))
        self.assertIn("features = 112, supershingles = 14, agreements = 1, fold-case = true", nigh.open(store).summary()["method"])
    def test_columns_of_the_table_say_what_stays(self) -> None:
        scores = [0.5, 1.0, None, 2.0, 1.5, 1.0, 3.0, 2.0, 0.25, 4.0, None, 1.0]
        table = pa.table({
            "text": texts()[:12],
            "meta": [{"score": score} for score in scores],
            "source": ["a", "b"] * 6,
        })

        def places(**choice: Any) -> list[int]:
            stays = nigh.cluster(table, similarity=0.8, **choice)["stays"].to_pylist()
            return [row for row, stay in enumerate(stays) if stay]

        # The families are the rows of one number modulo 4.
        self.assertEqual(places(keep=["meta.score desc", "place"]), [3, 4, 6, 9])
        by_score = lambda row: (scores[row] is None, -(scores[row] or 0), row)  # noqa: E731
        two = [row for family in range(4) for row in sorted(range(family, 12, 4), key=by_score)[:2]]
        self.assertEqual(places(keep="meta.score desc, place", most=2), sorted(two))
        self.assertEqual(places(most=0), [])
        self.assertEqual(places(each="source"), [0, 1, 2, 3])
        with self.assertRaisesRegex(nigh.Failed, "no input has a column `quality`"):
            places(keep=["quality desc"])

    def test_what_the_program_refuses_is_an_exception(self) -> None:
        table = pa.table({"body": texts()})
        with self.assertRaises(nigh.Failed) as failed:
            nigh.cluster(table, text="body", id="missing")
        self.assertTrue(failed.exception.code != 0 and "missing" in failed.exception.message, failed.exception.message)

    def test_the_module_is_the_program(self) -> None:
        version = subprocess.run([sys.executable, "-m", "nigh", "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(version.stdout, nigh.run("--version"))
        self.assertTrue(os.access(nigh.program(), os.X_OK))


if __name__ == "__main__":
    unittest.main()
