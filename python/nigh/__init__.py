"""Clusters of near-duplicate pages and texts.

This module runs the program ``nigh``, which the same package installs, and hands over its tables as pyarrow ones:

>>> import nigh
>>> clusters = nigh.cluster("shards/*.parquet", id="id", similarity=0.8)  # doctest: +SKIP
>>> clusters.column_names  # doctest: +SKIP
['file', 'offset', 'id', 'url', 'doc', 'cluster', 'size', 'rank', 'stays']
>>> unique = nigh.deduplicate(frame, similarity=0.8)  # doctest: +SKIP

Data in memory goes to the program through a pipe. Nothing is computed here. A run can be repeated with the program alone: see ``nigh help run``.
``nigh.connect`` is a client of ``nigh live``.
"""

from __future__ import annotations

import os

from . import live
from ._cluster import cluster, deduplicate
from ._notebook import Cluster, Figure, Figures, Run
from ._program import Failed, Killed, NoColumn, TooManyRejects, WrongUse, program, run
from ._store import Store
from .live import Answer, Client, Refused, connect

__all__ = [
    "Answer",
    "Client",
    "Cluster",
    "Failed",
    "Figure",
    "Figures",
    "Killed",
    "NoColumn",
    "Refused",
    "Run",
    "Store",
    "TooManyRejects",
    "WrongUse",
    "cluster",
    "connect",
    "deduplicate",
    "live",
    "open",
    "program",
    "run",
]


def open(path: str | os.PathLike[str], *, create: bool = False) -> Store:  # noqa: A001
    """Opens a store that ``nigh run`` made; with ``create`` also one that its method ``add`` will make.

    Raises ``FileNotFoundError`` if there is none, ``ValueError`` for the URL of one in a bucket: the program works with these.
    """
    return Store(path, create=create)
