"""Datasets of Hugging Face, whole and streamed. Ends with 4 if `datasets` is not there. Run as test_memory.py."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
from datetime import datetime
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp()
try:
    import datasets
    import datasets.distributed
except ImportError as error:
    print(f"{error}: python3 -m pip install datasets", file=sys.stderr)
    sys.exit(4)

import nigh
from made_rows import FAMILIES, ROWS, same, texts


class HuggingFace(unittest.TestCase):
    def setUp(self) -> None:
        rows = {"text": texts(), "label": [number % 2 for number in range(ROWS)], "key": list(range(ROWS))}
        features = datasets.Features({
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["neg", "pos"]),
            "key": datasets.Value("int64"),
        })
        self.dataset = datasets.Dataset.from_dict(rows, features=features)

    def test_a_dataset_keeps_its_features(self) -> None:
        kept = nigh.deduplicate(self.dataset, id="key", similarity=0.8)
        self.assertIs(type(kept), datasets.Dataset)
        self.assertEqual(kept.features, self.dataset.features)
        self.assertEqual(kept["key"][:], list(range(FAMILIES)))
        self.assertEqual(nigh.cluster(self.dataset, id="key", similarity=0.8)["stays"].to_pylist(), [row < FAMILIES for row in range(ROWS)])

    def test_rows_are_those_that_the_dataset_shows(self) -> None:
        chosen = self.dataset.select(range(50, 10, -1)).with_format("numpy")
        kept = nigh.deduplicate(chosen, id="key", similarity=0.8)
        self.assertEqual([int(key) for key in kept["key"][:]], list(range(50, 30, -1)))
        self.assertEqual(kept.format["type"], "numpy")
        self.assertEqual(len(nigh.deduplicate(self.dataset.select([]))), 0)

    def test_a_streamed_dataset_is_read_once_more(self) -> None:
        for streamed in (self.dataset.to_iterable_dataset(num_shards=3), self.dataset.to_iterable_dataset().map(lambda row: row)):
            kept = nigh.deduplicate(streamed, id="key", similarity=0.8)
            self.assertIsInstance(kept, datasets.IterableDataset)
            self.assertEqual([row["key"] for row in kept], list(range(FAMILIES)))

    def test_the_rows_that_stay_are_the_same_in_any_order_and_in_shards(self) -> None:
        expected = list(range(ROWS - FAMILIES, ROWS))
        shards = self.dataset.to_iterable_dataset(num_shards=6)
        for source in (shards, shards.map(same)):
            kept = nigh.deduplicate(source, id="key", similarity=0.8, keep=["key desc"])
            self.assertEqual([row["key"] for row in kept], expected)
            self.assertEqual([row["key"] for row in kept], expected)
            for seed in range(3):
                mixed = kept.shuffle(seed=seed, buffer_size=10)
                self.assertEqual(sorted(row["key"] for row in mixed), expected)
                mixed.set_epoch(seed + 1)
                self.assertEqual(sorted(row["key"] for row in mixed), expected)
            nodes = [datasets.distributed.split_dataset_by_node(kept, rank, 2) for rank in range(2)]
            self.assertEqual(sorted(row["key"] for node in nodes for row in node), expected)
            self.assertEqual([row["key"] for row in kept.skip(3).take(2)], expected[3:5])

    def test_workers_of_a_loader_read_the_rows_that_stay(self) -> None:
        # A worker of torch's DataLoader is another process, which reads its part of the shards, as `torch` says. Here that is a stand-in.
        worker = """
            import pickle, sys, types
            import datasets
            with open(sys.argv[1], "rb") as file:
                kept = pickle.load(file)
            for name in ("torch", "torch.utils", "torch.utils.data"):
                sys.modules[name] = types.ModuleType(name)
            sys.modules["torch"].utils = sys.modules["torch.utils"]
            data = sys.modules["torch.utils"].data = sys.modules["torch.utils.data"]
            data.IterableDataset = datasets.IterableDataset
            data.get_worker_info = lambda: types.SimpleNamespace(id=int(sys.argv[2]), num_workers=2)
            print(*(row["key"] for row in kept))
        """
        shards = self.dataset.to_iterable_dataset(num_shards=6)
        for source in (shards, shards.map(same), shards.shuffle(seed=1, buffer_size=7)):
            kept = nigh.deduplicate(source, id="key", similarity=0.8, keep=["key desc"])
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "kept"
                file.write_bytes(pickle.dumps(kept))
                found: list[int] = []
                for number in range(2):
                    command = [sys.executable, "-c", textwrap.dedent(worker), str(file), str(number)]
                    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
                    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found += map(int, done.stdout.split())
            self.assertEqual(sorted(found), list(range(ROWS - FAMILIES, ROWS)))

    def test_a_source_that_is_shuffled_keeps_its_order(self) -> None:
        source = self.dataset.to_iterable_dataset(num_shards=6).shuffle(seed=1, buffer_size=7)
        source.set_epoch(2)
        order = [row["key"] for row in source]
        self.assertNotEqual(order, sorted(order))
        kept = nigh.deduplicate(source, id="key", similarity=0.8, keep=["key desc"])
        source.set_epoch(3)
        self.assertEqual([row["key"] for row in kept], [key for key in order if key >= ROWS - FAMILIES])

    def test_a_streamed_dataset_keeps_features_and_format(self) -> None:
        features = datasets.Features({
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["neg", "pos"]),
            "when": datasets.Value("timestamp[us]"),
            "tags": datasets.Sequence(datasets.Value("int8")),
            "page": {"url": datasets.Value("large_string")},
        })
        rows = [
            {"text": text, "label": "pos", "when": datetime(2024, 1, 1, number % 24), "tags": [number], "page": {"url": None}}
            for number, text in enumerate(texts())
        ]
        source = datasets.Dataset.from_list(rows, features=features).to_iterable_dataset()
        kept = nigh.deduplicate(source, similarity=0.8)
        self.assertEqual(kept.features, features)
        self.assertEqual(list(kept), list(source)[:FAMILIES])
        arrays = nigh.deduplicate(source.with_format("numpy"), similarity=0.8)
        self.assertEqual(type(next(iter(arrays))["tags"]).__name__, "ndarray")

    def test_a_source_that_changed_is_an_error(self) -> None:
        for has_features in (True, False):
            for change, says in ((lambda rows: rows.pop(), "59 now"), (lambda rows: rows.append(rows[0]), "more now")):
                rows = [{"text": text, "key": number} for number, text in enumerate(texts())]
                features = datasets.Features({"text": datasets.Value("string"), "key": datasets.Value("int64")}) if has_features else None
                source = datasets.IterableDataset.from_generator(lambda rows=rows: iter(rows), features=features)
                kept = nigh.deduplicate(source, id="key", similarity=0.8)
                self.assertEqual(len(list(kept)), FAMILIES)
                change(rows)
                with self.assertRaisesRegex(nigh.Failed, says):
                    list(kept)

    def test_a_streamed_dataset_without_types(self) -> None:
        def streamed(rows: list[dict[str, Any]]) -> datasets.IterableDataset:
            dataset = datasets.IterableDataset.from_generator(lambda: iter(rows))
            self.assertIsNone(dataset.features)
            return dataset

        first = {"text": None, "score": 1, "meta": {"source": None}}
        others = [{"text": text, "score": number / 2, "meta": {"source": "ab"[number % 2]}, "late": number} for number, text in enumerate(texts())]
        with self.assertWarnsRegex(UserWarning, "1 of 61 rows"):
            kept = nigh.deduplicate(streamed([first, *others]), similarity=0.8, keep=["score desc", "meta.source"], each="late")
        self.assertEqual(list(kept), others)
        with self.assertWarnsRegex(UserWarning, "1 of 61 rows"):
            kept = nigh.deduplicate(streamed([first, *others]), similarity=0.8, keep=["score desc", "meta.source"])
        self.assertEqual(list(kept), others[ROWS - FAMILIES :])
        # Values only after the rows of which the types are taken; and other ones.
        many = [{"text": f"{number} words", "late": None, "whole": 1} for number in range(1000)]
        late = [*many, {"text": "more words", "late": 2.5, "whole": 2.0}, {"text": "the last words", "late": None}]
        self.assertEqual(list(nigh.deduplicate(streamed(late), keep=["late desc", "whole"])), late)
        objects = [{"text": row["text"], "meta": {"whole": 1, "some": [1]}} for row in many]
        for fewer in ({"whole": 2}, {"whole": 2.0, "some": []}, {"late": 1}, None):
            rows = [*objects, {"text": "more words", "meta": fewer}]
            self.assertEqual(len(list(nigh.deduplicate(streamed(rows), keep=["meta.whole desc"]))), len(rows))
        for other in ({"whole": 2.5}, {"some": [0.5]}, {"whole": "two"}):
            with self.assertRaisesRegex(nigh.WrongUse, "the column `meta` .* several types"):
                nigh.deduplicate(streamed([*objects, {"text": "more words", "meta": other}]), keep=["meta.whole desc"])
        for other in (2.5, "two", "12", True, 1 << 70):
            with self.assertRaisesRegex(nigh.WrongUse, "the column `whole` .* int64 among the first 1,000 rows.*cast"):
                nigh.deduplicate(streamed([*many, {"text": "more words", "whole": other}]), keep=["whole desc"])
        # A text is one of any value.
        ids = [*({"text": row["text"], "id": f"{number:04}"} for number, row in enumerate(many)), {"text": "more words", "id": 12}]
        self.assertEqual(list(nigh.deduplicate(streamed(ids), id="id")), ids)
        with self.assertRaisesRegex(nigh.WrongUse, "the column `id` .* several types"):
            nigh.deduplicate(streamed([{**row, "id": number} for number, row in enumerate([*many, many[0]])][:-1] + [{"text": "x", "id": "0012"}]), id="id")
        with self.assertRaisesRegex(nigh.WrongUse, "the column `text` .* several types"):
            nigh.deduplicate(streamed([{"text": "a"}, {"text": 1}]))
        with self.assertRaises(nigh.NoColumn):
            nigh.deduplicate(streamed([]))

    def test_one_of_several_datasets_must_be_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "'train', 'test'"):
            nigh.deduplicate(datasets.DatasetDict({"train": self.dataset, "test": self.dataset}))
        with self.assertRaises(nigh.NoColumn):
            nigh.cluster(self.dataset, text="body")


if __name__ == "__main__":
    unittest.main()
