"""What type checkers say of the module. Checked by scripts/wheel.sh with mypy and pyright, with the wheel installed; nothing runs it."""

import datasets
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from typing_extensions import assert_type

import nigh


def rows(frame: pl.DataFrame, other: pd.DataFrame, table: pa.Table, shards: ds.Dataset, hub: datasets.Dataset) -> None:
    assert_type(nigh.deduplicate(frame, similarity=0.8, keep=["score desc"]), pl.DataFrame)
    assert_type(nigh.deduplicate(other, id="id", words="code", progress=False), pd.DataFrame)
    assert_type(nigh.deduplicate(hub, words=3), datasets.Dataset)
    nigh.deduplicate(table).filter([True])
    nigh.deduplicate(shards).read_all()
    nigh.cluster(["a.parquet", "b.parquet"], verify="exact", same_id="row").column("stays")
    assert_type(nigh.deduplicate(frame, text=["question", "answer"]), pl.DataFrame)
    nigh.cluster(frame, text=("question", "answer"))
    nigh.cluster(frame, text=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nigh.cluster(frame, level="sideways")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nigh.deduplicate(frame, similarty=0.8)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


def store(frame: pl.DataFrame) -> None:
    corpus = nigh.open("corpus", create=True)
    assert_type(corpus, nigh.Store)
    assert_type(corpus.add(frame, id="id", week="2024-01-01"), nigh.Run)
    assert_type(sorted(corpus.export("out", "--card", keep="longest", level="paragraph")), list[str])
    corpus.find("a text", top=3).to_pylist()
    assert_type(corpus.weeks, list[str])
    try:
        nigh.cluster(frame)
    except nigh.Killed as killed:
        assert_type(killed.signal, int)
    except nigh.NoColumn as missing:
        assert_type(missing.message, str)
