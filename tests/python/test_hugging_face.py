"""Datasets of Hugging Face, whole and streamed. Ends with 4 if `datasets` is not there. Run as test_memory.py."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp()
try:
    import datasets
except ImportError as error:
    print(f"{error}: python3 -m pip install datasets", file=sys.stderr)
    sys.exit(4)

import nigh
from test_memory import FAMILIES, ROWS, texts


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

    def test_one_of_several_datasets_must_be_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "'train', 'test'"):
            nigh.deduplicate(datasets.DatasetDict({"train": self.dataset, "test": self.dataset}))
        with self.assertRaises(nigh.NoColumn):
            nigh.cluster(self.dataset, text="body")


if __name__ == "__main__":
    unittest.main()
