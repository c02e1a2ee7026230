"""Data in the memory of this process: what is read of it, and what is given back.

All kinds are batches of Arrow: those with ``__arrow_c_stream__`` (Arrow PyCapsule interface), and datasets of pyarrow and of Hugging Face, which
have batches of their own. Nothing is written to files, except where a stream that can be read only once is to be given back.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol

from ._program import Failed, NoColumn

if TYPE_CHECKING:
    import pyarrow

#: The most rows of a batch that the program receives, and about as many bytes.
_ROWS, _BYTES = 1 << 13, 16 << 20


class Data(Protocol):
    """Rows in memory, or that come to it."""

    #: The names of the columns.
    names: list[str]
    #: How many rows there are, if that is known before they are read.
    rows: int | None

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        """The rows, with these columns."""

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        """The rows for which the mask is true, as the kind that came in."""

    def close(self) -> None:
        """Frees what was kept of the rows, which are not given back."""


def data_of(data: object, *, is_kept: bool) -> Data | None:
    """The rows of a value; ``None`` if it is not of a kind that has rows. ``is_kept`` if rows are given back.

    Raises ``TypeError`` if its rows cannot be read.
    """
    import pyarrow

    modules = {kind.__module__.split(".")[0]: kind.__name__ for kind in reversed(type(data).__mro__)}
    if isinstance(data, (pyarrow.Table, pyarrow.RecordBatch)):
        return _Rows(data)
    if "pandas" in modules and hasattr(data, "columns"):
        return _Pandas(data)
    if "polars" in modules:
        if not hasattr(data, "get_columns"):
            raise TypeError(f"{type(data).__name__} of polars is not a table: give a DataFrame, as .collect() of a LazyFrame makes it")
        return _Polars(data)
    if "datasets" in modules and hasattr(data, "with_format"):
        if isinstance(data, dict):
            raise TypeError(f"these are {len(data)} datasets: give one of them, {', '.join(map(repr, data))}")
        return _HuggingFace(data)
    if "pyarrow" in modules and hasattr(data, "scanner"):
        return _Scanned(data)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = data if isinstance(data, pyarrow.RecordBatchReader) else pyarrow.RecordBatchReader.from_stream(data)
        except pyarrow.ArrowInvalid as error:
            raise TypeError(f"{type(data).__module__}.{type(data).__name__} is not a table: its rows have no columns") from error
        return _Stream(reader, is_kept)
    if hasattr(data, "__arrow_c_array__"):
        return _Rows(pyarrow.record_batch(data))
    return None


def wanted(data: Data, named: Iterable[str | None], ordered: Iterable[str]) -> list[str]:
    """The columns to read: those that arguments name, also by a path within objects, and those that an order names.

    Raises ``NoColumn`` if one of the former is not there (of the latter the program says it), or if one of them is there twice.
    """
    found = []
    for path in filter(None, named):
        name = path if path in data.names else path.split(".")[0]
        if name not in data.names:
            raise NoColumn(f"the data has no column `{path}` (its columns: {', '.join(data.names)})")
        found.append(name)
    of_paths = [path if path in data.names else path.split(".")[0] for path in ordered]
    # A column of this name would be taken for the URLs, by which documents are known.
    found += [name for name in of_paths if name in data.names and name != "url"]
    for name in found:
        if data.names.count(name) > 1:
            raise NoColumn(f"the data has {data.names.count(name)} columns `{name}`: rename all of them except one")
    return list(dict.fromkeys(found))


def send(data: Data, names: list[str], pipe: Any, show: Callable[[int], None]) -> int:
    """Writes the rows to the program, as a stream of Arrow. Returns how many there are; ``show`` is called with the count until now."""
    import pyarrow
    import pyarrow.ipc

    schema, batches = data.batches(names)
    count = 0
    writer = pyarrow.ipc.new_stream(pyarrow.PythonFile(pipe, mode="w"), _read(schema))
    for batch in batches:
        for piece in _pieces(batch, _read):
            writer.write_batch(piece)
            count += piece.num_rows
            show(count)
    # Not after an error: that would end the stream, or fail once more.
    writer.close()
    return count


def _pieces(batch: pyarrow.RecordBatch, kinds: Callable[[pyarrow.Schema], pyarrow.Schema]) -> Iterator[pyarrow.RecordBatch]:
    """A batch in pieces that are not large, with other types: the program and this process hold one at a time."""
    for begin in range(0, batch.num_rows, _ROWS):
        piece = _cast(batch.slice(begin, _ROWS), kinds)
        # A dictionary is written once.
        size = sum(column.nbytes for column in piece.columns if not hasattr(column, "dictionary"))
        length = max(1, piece.num_rows * _BYTES // max(_BYTES, size))
        for within in range(0, piece.num_rows, length):
            yield piece.slice(within, length)


def _large(kind: pyarrow.DataType) -> pyarrow.DataType | None:
    """The type to which a type of views is written: all buffers of views are written with each slice of them."""
    import pyarrow

    if kind == pyarrow.string_view():
        return pyarrow.large_string()
    return pyarrow.large_binary() if kind == pyarrow.binary_view() else None


def _without_views(schema: pyarrow.Schema) -> pyarrow.Schema:
    for place, field in enumerate(schema):
        large = _large(field.type)
        if large is not None:
            schema = schema.set(place, field.with_type(large))
    return schema


def _read(schema: pyarrow.Schema) -> pyarrow.Schema:
    """The types that the program reads. A column without any value may have no type."""
    import pyarrow

    for place, field in enumerate(schema):
        if field.type == pyarrow.null():
            schema = schema.set(place, field.with_type(pyarrow.string()))
    return _without_views(schema)


def _cast(batch: pyarrow.RecordBatch, kinds: Callable[[pyarrow.Schema], pyarrow.Schema]) -> pyarrow.RecordBatch:
    """A batch with other types of the same values."""
    import pyarrow

    schema = kinds(batch.schema)
    if schema == batch.schema:
        return batch
    columns = [column if column.type == field.type else column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _kept(rows: Any, mask: pyarrow.BooleanArray) -> Any:
    """The rows of a table or a batch for which a mask is true. pyarrow does not choose rows of some types."""
    import pyarrow

    try:
        return rows.filter(mask)
    except pyarrow.ArrowNotImplementedError:
        return type(rows).from_arrays([_kept_values(column, mask) for column in rows.columns], schema=rows.schema)


def _kept_values(column: Any, mask: pyarrow.BooleanArray) -> Any:
    import pyarrow

    large = _large(column.type)
    if large is not None:
        return column.cast(large).filter(mask).cast(column.type)
    try:
        return column.filter(mask)
    except pyarrow.ArrowNotImplementedError:
        slices = [column.slice(begin, length) for begin, length in _runs(mask)]
        if isinstance(column, pyarrow.ChunkedArray):
            return pyarrow.chunked_array([chunk for each in slices for chunk in each.chunks], column.type)
        return pyarrow.concat_arrays(slices) if slices else column.slice(0, 0)


def _runs(mask: pyarrow.BooleanArray) -> Iterator[tuple[int, int]]:
    """Where each run of true values begins, and its length."""
    begin = None
    for place, is_true in enumerate([*mask.to_pylist(), False]):
        if is_true and begin is None:
            begin = place
        elif not is_true and begin is not None:
            yield begin, place - begin
            begin = None


class _InMemory:
    def close(self) -> None:
        pass


class _Rows(_InMemory):
    """A table or a batch of pyarrow."""

    def __init__(self, rows: Any) -> None:
        self._table = rows
        self.names: list[str] = list(rows.schema.names)
        self.rows: int | None = rows.num_rows

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        chosen = self._table.select(names)
        return chosen.schema, chosen.to_batches() if hasattr(chosen, "to_batches") else [chosen]

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        return _kept(self._table, mask)


class _Pandas(_InMemory):
    """A frame of pandas. The columns that are read become Arrow, as pandas has them already if they are texts of its type ``str``."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = [str(name) for name in frame.columns]
        self.rows: int | None = len(frame)

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        import pyarrow

        columns = self._frame.iloc[:, [self.names.index(name) for name in names]]
        table = pyarrow.Table.from_pandas(columns, preserve_index=False).rename_columns(names)
        return table.schema, table.to_batches()

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        return self._frame[mask.to_numpy(zero_copy_only=False)]


class _Polars(_InMemory):
    """A frame of Polars."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = list(frame.columns)
        self.rows: int | None = frame.height

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_stream(self._frame.select(names))
        return reader.schema, reader

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        return self._frame.filter(sys.modules["polars"].from_arrow(mask))


class _Scanned(_InMemory):
    """A dataset of pyarrow, which is read twice: what stays is a reader."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.names: list[str] = list(dataset.schema.names)
        self.rows: int | None = None

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        # Few batches are read ahead: they wait for the program.
        reader = self._dataset.scanner(columns=names, batch_readahead=2, fragment_readahead=1).to_reader()
        return reader.schema, reader

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        def batches() -> Iterator[pyarrow.RecordBatch]:
            yield from self._dataset.scanner(batch_readahead=2, fragment_readahead=1).to_reader()

        return _reader_of(self._dataset.schema, batches(), mask)


class _HuggingFace(_InMemory):
    """A dataset of Hugging Face, or one that is streamed. The latter is read twice."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        if dataset.features is None:
            first = next(iter(dataset.with_format("arrow").iter(1)), None)
            self._schema: Any = sys.modules["pyarrow"].schema([]) if first is None else first.schema
        else:
            self._schema = dataset.features.arrow_schema
        self.names: list[str] = list(self._schema.names)
        self.rows: int | None = len(dataset) if hasattr(dataset, "__len__") else None

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        import pyarrow

        tables = self._dataset.select_columns(names).with_format("arrow").iter(1000)
        schema = pyarrow.schema([self._schema.field(name) for name in names])
        return schema, (batch for table in tables for batch in table.select(names).cast(schema).to_batches())

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        import pyarrow.compute

        if hasattr(self._dataset, "select"):
            return self._dataset.select(pyarrow.compute.indices_nonzero(mask).to_pylist())
        stays = mask.to_pylist()
        return self._dataset.filter(lambda _, place: stays[place], with_indices=True)


class _Stream:
    """A stream that can be read only once. If its rows are given back, they wait in a temporary file, which has no name."""

    def __init__(self, reader: pyarrow.RecordBatchReader, is_kept: bool) -> None:
        self._reader = reader
        self.names: list[str] = list(reader.schema.names)
        self.rows: int | None = None
        self._file: IO[bytes] | None = tempfile.TemporaryFile(prefix="nigh-") if is_kept else None

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        import pyarrow

        return pyarrow.schema([self._reader.schema.field(name) for name in names]), self._copied(names)

    def _copied(self, names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        import pyarrow.ipc

        if self._file is None:
            yield from (batch.select(names) for batch in self._reader)
            return
        codec = "lz4" if pyarrow.Codec.is_available("lz4") else None
        options = pyarrow.ipc.IpcWriteOptions(compression=codec)
        with pyarrow.ipc.new_stream(self._file, _without_views(self._reader.schema), options=options) as writer:
            for batch in self._reader:
                for piece in _pieces(batch, _without_views):
                    writer.write_batch(piece)
                yield batch.select(names)

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        import pyarrow.ipc

        assert self._file is not None
        self._file.seek(0)
        schema = self._reader.schema
        copied = pyarrow.ipc.open_stream(self._file)

        def batches() -> Iterator[pyarrow.RecordBatch]:
            try:
                for batch in copied:
                    yield _cast(batch, lambda _: schema)
            finally:
                self.close()

        return _reader_of(schema, batches(), mask)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _reader_of(schema: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch], mask: pyarrow.BooleanArray) -> pyarrow.RecordBatchReader:
    """A reader of the rows for which the mask is true."""
    import pyarrow

    def rows() -> Iterator[pyarrow.RecordBatch]:
        place = 0
        for batch in batches:
            kept = _kept(batch, mask.slice(place, batch.num_rows)) if place + batch.num_rows <= len(mask) else None
            place += batch.num_rows
            if kept is None:
                break
            if kept.num_rows > 0:
                yield kept
        if place != len(mask):
            raise Failed(1, f"the data changed: it had {len(mask):,} rows when it was clustered, and has {'more' if place > len(mask) else f'{place:,}'} now")

    return pyarrow.RecordBatchReader.from_batches(schema, rows())
