"""Tables of pyarrow, checked: it takes what it reads of a file as it is, and only pyarrow itself knows where its buffers end. And those of
polars without columns of nothing but nulls: it hands these over in a way that Arrow does not know."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ._errors import IdlewiseError


def checked(table: Any) -> Any:
    """The same table, or an error that says what is damaged in it; batches of a reader are checked when they come."""
    polars: Any = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.DataFrame):
        return table.cast({name: polars.Int64 for name, kind in table.schema.items() if kind == polars.Null})
    pyarrow: Any = sys.modules.get("pyarrow")
    if pyarrow is None:
        return table
    pandas: Any = sys.modules.get("pandas")
    try:
        if isinstance(table, pyarrow.RecordBatchReader):
            _named(table.schema)
            return pyarrow.RecordBatchReader.from_batches(table.schema, _each(table))
        # Its texts are columns of pyarrow.
        if pandas is not None and isinstance(table, pandas.DataFrame):
            table = pyarrow.Table.from_pandas(table)
        if isinstance(table, (pyarrow.Table, pyarrow.RecordBatch)):
            _named(table.schema)
            table.validate(full=True)
        elif isinstance(table, pyarrow.ChunkedArray):
            _named(table.type)
            table.validate(full=True)
    except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
        raise IdlewiseError(f"the table is damaged: {error}") from None
    return table


def _named(columns: Any) -> None:
    """Looks at all names, as one that is no UTF-8 is an error only then."""
    fields = columns if hasattr(columns, "names") else [columns.field(at) for at in range(columns.num_fields)]
    for field in fields:
        _ = field.name
        _named(field.type)


def _each(batches: Any) -> Iterator[Any]:
    for batch in batches:
        batch.validate(full=True)
        yield batch
