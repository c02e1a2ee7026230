"""Rows in memory for test_memory.py and test_hugging_face.py, and for the programs that they start: a module that takes little time to import."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa

ROWS = 60
#: The families of texts, of which rows `n`, `n + FAMILIES`, ... are near-duplicates.
FAMILIES = 20


def texts() -> list[str]:
    """Texts of some families; the last third differs in a word from the ones before."""
    families = [" ".join(f"w{(family + 1) * 7919 + place * 104729}" for place in range(120)) for family in range(FAMILIES)]
    return [families[number % FAMILIES] + (f" own{number}" if number >= 2 * FAMILIES else "") for number in range(ROWS)]


def table() -> pa.Table:
    """Rows with ids, texts and columns that are not read."""
    return pa.table({
        "key": pa.array([f"k{number}" for number in range(ROWS)]),
        "text": pa.array(texts()),
        "score": pa.array([number % 7 / 2 for number in range(ROWS)]),
        "meta": pa.array([{"source": "ab"[number % 2], "n": number} for number in range(ROWS)]),
        "tags": pa.array([["x"] * (number % 3) for number in range(ROWS)]),
        "day": pa.array(range(ROWS), pa.int32()).cast(pa.date32()),
    })


def same(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is. (In a module with a name, so that another process finds it.)"""
    return row


def children() -> list[int]:
    """The programs that this process has started and that are there still."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        # A thread may end meanwhile, and so may a program.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text().split():
                if "nigh" in Path(f"/proc/{child}/comm").read_text():
                    found.append(int(child))
    return found
