"""Data in the memory of this process: how its rows are read and returned.

All kinds are batches of Arrow: those with ``__arrow_c_stream__`` (Arrow PyCapsule interface), and datasets of pyarrow and of Hugging Face, which
have batches of their own. Nothing is written to files, except where a stream that can be read only once is to be given back.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol

from ._program import Failed, NoColumn, WrongUse

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
        return _HuggingFace(data) if hasattr(data, "select") else _Streamed(data)
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


def wanted(data: Data, named: Iterable[str], ordered: Iterable[str]) -> list[str]:
    """The columns to read: those that arguments name, also by a path within objects, and those that an order names.

    Raises ``NoColumn`` if one of the former is not there (of the latter the program says it), or if one of them is there twice.
    """
    found = []
    for path in named:
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


def _large(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type to which a type of views is written, also within others: all buffers of views are written with each slice of them."""
    import pyarrow

    if kind == pyarrow.string_view():
        return pyarrow.large_string()
    if kind == pyarrow.binary_view():
        return pyarrow.large_binary()
    # Views of lists stay: pyarrow has no cast back to them.
    return _nested(kind, _large)


def _nested(kind: pyarrow.DataType, replaced: Callable[[pyarrow.DataType], pyarrow.DataType]) -> pyarrow.DataType:
    """A type with other types within it."""
    import pyarrow

    types = pyarrow.types
    if types.is_struct(kind):
        return pyarrow.struct([_within(kind.field(place), replaced) for place in range(kind.num_fields)])
    if types.is_list(kind):
        return pyarrow.list_(_within(kind.value_field, replaced))
    if types.is_large_list(kind):
        return pyarrow.large_list(_within(kind.value_field, replaced))
    if types.is_fixed_size_list(kind):
        return pyarrow.list_(_within(kind.value_field, replaced), kind.list_size)
    if types.is_map(kind):
        return pyarrow.map_(_within(kind.key_field, replaced), _within(kind.item_field, replaced), keys_sorted=kind.keys_sorted)
    return kind


def _within(field: pyarrow.Field, replaced: Callable[[pyarrow.DataType], pyarrow.DataType]) -> pyarrow.Field:
    return field.with_type(replaced(field.type))


def _without_views(schema: pyarrow.Schema) -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([_within(field, _large) for field in schema], schema.metadata)


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

    if column.type in (pyarrow.string_view(), pyarrow.binary_view()):
        return column.cast(_large(column.type)).filter(mask).cast(column.type)
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
    """A frame of pandas. The columns that are read become Arrow, some rows at a time."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = [str(name) for name in frame.columns]
        self.rows: int | None = len(frame)

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        import pyarrow

        places = [self.names.index(name) for name in names]

        def tables(**options: Any) -> Iterator[pyarrow.Table]:
            for begin in range(0, max(1, len(self._frame)), _ROWS):
                rows = self._frame.iloc[begin : begin + _ROWS, places].set_axis(names, axis="columns")
                yield pyarrow.Table.from_pandas(rows, preserve_index=False, **options).replace_schema_metadata()

        schema = next(tables()).schema
        if any(self._frame.dtypes.iloc[place] == object for place in places):
            # Only the values say of which type they are.
            schema = pyarrow.unify_schemas([table.schema for table in tables()], promote_options="permissive")
        return schema, (batch for table in tables(schema=schema) for batch in table.to_batches())

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
    """A dataset of pyarrow, which is read twice: what stays is a reader.

    Its files must be the same then. Of local ones the size and the time of the last change are compared before the first row is returned, and
    after the last one; of others only the number of their rows, when all of them are read.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._files = _local_files(dataset)
        self.names: list[str] = list(dataset.schema.names)
        self.rows: int | None = None

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        # Few batches are read ahead: they wait for the program.
        reader = self._dataset.scanner(columns=names, batch_readahead=2, fragment_readahead=1).to_reader()
        return reader.schema, reader

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        def batches() -> Iterator[pyarrow.RecordBatch]:
            self._check_files()
            yield from self._dataset.scanner(batch_readahead=2, fragment_readahead=1).to_reader()
            self._check_files()

        return _reader_of(self._dataset.schema, batches(), mask)

    def _check_files(self) -> None:
        now = _local_files(self._dataset)
        changed = [file for file, state in self._files.items() if now.get(file) != state]
        if changed:
            more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
            raise Failed(1, f"the data changed: {changed[0]}{more} had another size or time when it was clustered")


def _local_files(dataset: Any) -> dict[str, tuple[int | None, int | None]]:
    """The local files of a dataset of pyarrow: of each its size, and the time of its last change."""
    import pyarrow.fs

    found = {}
    for part in getattr(dataset, "children", []):
        found.update(_local_files(part))
    filesystem = getattr(dataset, "filesystem", None)
    if isinstance(filesystem, pyarrow.fs.LocalFileSystem):
        found.update((file.path, (file.size, file.mtime_ns)) for file in filesystem.get_file_info(dataset.files))
    return found


class _HuggingFace(_InMemory):
    """A dataset of Hugging Face, which has its rows."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.names: list[str] = list(dataset.features)
        self.rows: int | None = len(dataset)

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        return _typed_batches(self._dataset, names, self._dataset.select_columns(names).with_format("arrow"))

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        import pyarrow.compute

        return self._dataset.select(pyarrow.compute.indices_nonzero(mask).cast("int64").to_numpy())


class _Streamed(_InMemory):
    """A streamed dataset of Hugging Face, which is read twice. Without features, its first rows say which columns it has, and of which types."""

    def __init__(self, dataset: Any) -> None:
        self._twice = _Twice(dataset)
        self._dataset = dataset
        self._rows: Iterator[dict[str, list[Any]]] = iter(())
        self._first: dict[str, list[Any]] = {}
        if dataset.features is None:
            self._rows = self._twice.read(dataset, None).iter(_ROWS_OF_TYPES)
            self._first = next(self._rows, {})
        self.names: list[str] = list(self._first if dataset.features is None else dataset.features)
        self.rows: int | None = None

    def batches(self, names: list[str]) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
        import pyarrow

        if self._dataset.features is not None:
            return _typed_batches(self._dataset, names, self._twice.read(self._dataset.select_columns(names), "arrow"))
        schema = pyarrow.schema([(name, _type_of(name, self._first[name])) for name in names])

        def batches() -> Iterator[pyarrow.RecordBatch]:
            for rows in itertools.chain([self._first], self._rows):
                count = max(map(len, rows.values()), default=0)
                columns = [_column_of(field, rows.get(field.name, [None] * count)) for field in schema]
                yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)

        return schema, batches()

    def keep(self, mask: pyarrow.BooleanArray) -> Any:
        return self._twice.staying(mask)


#: The first rows of a streamed dataset without features, of which the types of its columns are taken.
_ROWS_OF_TYPES = 1000


def _typed_batches(dataset: Any, names: list[str], formatted: Any) -> tuple[pyarrow.Schema, Iterable[pyarrow.RecordBatch]]:
    """The rows of a dataset with features, of which ``formatted`` has these columns as tables."""
    import pyarrow

    schema = pyarrow.schema([dataset.features.arrow_schema.field(name) for name in names])
    return schema, (batch for table in formatted.iter(1000) for batch in table.select(names).cast(schema).to_batches())


def _type_of(name: str, values: list[Any]) -> pyarrow.DataType:
    """The type of the values of a column without a type. Where there are none it is text."""
    import pyarrow

    def with_texts(kind: pyarrow.DataType) -> pyarrow.DataType:
        return pyarrow.string() if kind == pyarrow.null() else _nested(kind, with_texts)

    try:
        return with_texts(pyarrow.array(values).type)
    except (pyarrow.ArrowException, OverflowError) as error:
        raise _of_several_types(name) from error


def _column_of(field: pyarrow.Field, values: list[Any]) -> pyarrow.Array:
    import pyarrow

    kind = field.type
    try:
        column = pyarrow.array(values)
        # Any value has a text. Others must be the same: a cast makes 12 of "0012".
        if column.type == kind or pyarrow.types.is_string(kind):
            return column.cast(kind)
        # `array` with a type makes a whole number of 2.5.
        typed = pyarrow.array(values, kind)
        if all(map(_is, typed.to_pylist(), values)):
            return typed
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise _of_several_types(field.name, f": {kind} among the first {_ROWS_OF_TYPES:,} rows, and others later")


def _is(stored: Any, value: Any) -> bool:
    """Whether what is stored is a value. An object may have other fields than its type: an order by one of these finds no column."""
    if hasattr(value, "tolist"):
        # Of numpy.
        value = value.tolist()
    if isinstance(value, dict):
        return isinstance(stored, dict) and all(_is(stored[name], inner) for name, inner in value.items() if name in stored)
    if isinstance(value, (list, tuple)):
        return isinstance(stored, list) and len(stored) == len(value) and all(map(_is, stored, value))
    def kind(of: Any) -> tuple[bool, bool]:
        return isinstance(of, bool), getattr(of, "tzinfo", None) is None

    # True is 1 in Python, and a time without a zone is none in UTC.
    return kind(stored) == kind(value) and bool(stored == value or (stored != stored and value != value))


def _of_several_types(name: str, which: str = "") -> WrongUse:
    return WrongUse(2, f"the column `{name}` of the streamed dataset has values of several types{which}. Give it a type: dataset.cast(datasets.Features(...))")


class _Twice:
    """A streamed dataset of Hugging Face that is read a second time, in the same order, from the first row to the last. It can be pickled if the
    dataset can be, and so goes to the processes of a ``DataLoader``.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        # The caller may set another one, which gives another order.
        self._epoch: int = getattr(dataset, "epoch", 0)
        self._mask: Any = None

    def read(self, dataset: Any, kind: str | None) -> Any:
        """The dataset, or one with some of its columns, in a format. ``iter`` of it reads all of its shards, also within a ``DataLoader``."""
        formatted = dataset.with_format(kind)
        if self._epoch:
            formatted.set_epoch(self._epoch)
        return formatted

    def staying(self, mask: pyarrow.BooleanArray) -> Any:
        """The dataset of the rows for which the mask is true. It has one shard: no part of the rows could be read for itself.

        ``IterableDataset.from_generator`` would pickle the source for a hash, with all that its functions hold, and encode each value once more.
        """
        module = sys.modules["datasets"]
        self._mask = mask
        if self._dataset.features is None:
            rows = module.iterable_dataset.ExamplesIterable(self._examples, {})
        else:
            rows = module.iterable_dataset.ArrowExamplesIterable(self._tables, {})
        return module.IterableDataset(
            rows,
            info=self._dataset.info,
            split=self._dataset.split,
            formatting=self._dataset._formatting,
            token_per_repo_id=self._dataset._token_per_repo_id,
        )

    def _tables(self) -> Iterator[tuple[int, pyarrow.Table]]:
        tables = self.read(self._dataset, "arrow").iter(1000)
        for place, (table, stays) in enumerate(_parts(tables, len, self._mask)):
            kept = _kept(table, stays)
            if kept.num_rows > 0:
                yield place, kept

    def _examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        rows = self.read(self._dataset, None).iter(1)
        for place, (row, stays) in enumerate(_parts(rows, lambda _: 1, self._mask)):
            if stays[0].as_py():
                yield place, {name: values[0] for name, values in row.items()}


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
        for batch, stays in _parts(batches, len, mask):
            kept = _kept(batch, stays)
            if kept.num_rows > 0:
                yield kept

    return pyarrow.RecordBatchReader.from_batches(schema, rows())


def _parts(pieces: Iterable[Any], length: Callable[[Any], int], mask: pyarrow.BooleanArray) -> Iterator[tuple[Any, pyarrow.BooleanArray]]:
    """Each piece of the rows that were clustered, which are read once more, with its part of the mask.

    Raises ``Failed`` if they are more or fewer than before.
    """
    end = 0
    for piece in pieces:
        begin, end = end, end + length(piece)
        if end > len(mask):
            break
        yield piece, mask.slice(begin, end - begin)
    if end != len(mask):
        raise Failed(1, f"the data changed: it had {len(mask):,} rows when it was clustered, and has {'more' if end > len(mask) else f'{end:,}'} now")
