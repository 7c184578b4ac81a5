"""Finding what is to be read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from . import _native, _patterns, _remote
from ._errors import IdlewiseError
from ._patterns import Found


#: Longer ones are no records.
_LONGEST_LINE = 64 << 10


def scan(
    source: Any,
    *,
    columns: Any = None,
    unit: str | None = None,
    volumes: str | Sequence[str] = (),
    skip_bad: bool = False,
    by_file: bool = False,
    whole: bool = False,
    memory_limit: str | int | None = None,
    storage_options: dict[str, Any] | None = None,
) -> _native.Trace:
    """Open a trace. Nothing is read before it is asked for.

    Parameters
    ----------
    source
        A path, a glob, a URL that fsspec knows such as ``s3://traces/*.csv``, an open binary file, a list of these that are one trace together, or a table:
        anything with ``__arrow_c_stream__``, such as a polars or pandas frame, a pyarrow table or a DuckDB relation.
    columns
        Of a text file the layout of its columns, as in ``idlewise --columns``. Of a table a dict of names: what ``arrival``,
        ``offset``, ``length``, ``op`` and, if there are any, ``volume``, ``completion``, ``response`` and ``issue`` are called.
    unit
        Of a table: the unit of times that are plain numbers, one of ``s``, ``ms``, ``us``, ``100ns`` (ticks of Windows' clock)
        and ``ns``.
    volumes
        Only these volumes, or those that fit a pattern such as ``hm_*``.
    skip_bad
        Leave out records that cannot be read, and count them.
    by_file
        Put the name of its file before the name of each volume.
    whole
        Read everything before anything is given, and sort it.
    memory_limit
        Most memory for requests that must be read whole.
    storage_options
        Of URLs: what fsspec's file system is told, such as credentials.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.scan(iw.synth(idle_mean="50ms", requests=1000)).requests
    1000
    """
    wanted = [volumes] if isinstance(volumes, str) else list(volumes)
    if hasattr(source, "__arrow_c_stream__"):
        if skip_bad or by_file or whole:
            raise IdlewiseError("skip_bad, by_file and whole are for files, not for tables")
        return _native.Trace._of_table(source, volumes=wanted, columns=columns, unit=unit)
    if unit is not None:
        raise IdlewiseError("unit= is for tables; a file's format says in what unit its times are")
    kept = _Kept(storage_options)
    found = [path for one in _several(source) for path in kept.paths(one)]
    if not found:
        raise IdlewiseError("there is nothing to read: the list is empty")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return _native.Trace._of_files(
        found,
        kept.names[0] + more,
        found=[(path, path.folder) for path in found if isinstance(path, Found)],
        volumes=wanted,
        columns=columns,
        skip_bad=skip_bad,
        by_file=by_file,
        whole=whole,
        memory_limit=memory_limit,
        slice=None,
        kept=kept,
    )


def scan_slice(path: str, slice: tuple[str, int, int, int, int], *, skip_bad: bool = False, storage_options: Any = None) -> _native.Trace:
    """Open a slice of a file: of this format the lines that begin in these bytes, and of what they hold the requests that arrive then."""
    name, begin, end, first_ns, until_ns = slice
    kept = None
    given = path
    if _remote.is_url(path):
        # The last line may end behind them, and of the first is known that it is one by what is before it.
        kept, first = _Kept(storage_options), max(0, begin - 1)
        last = min(end + _LONGEST_LINE, _remote.size(path, storage_options) or 0)
        given = kept.copy(path, first, last)
        begin, end = begin - first, end - first
    return _native.Trace._of_files(
        [given],
        path,
        found=[(given, given.folder)] if isinstance(given, Found) else [],
        volumes=[],
        columns=None,
        skip_bad=skip_bad,
        by_file=False,
        whole=False,
        memory_limit=None,
        slice=(name, begin, end, first_ns, until_ns),
        kept=kept,
    )


def _several(source: Any) -> Iterable[Any]:
    if isinstance(source, (str, bytes, os.PathLike)) or hasattr(source, "read"):
        return [source]
    try:
        return list(source)
    except TypeError:
        kind = type(source).__name__
        lazy = " (collect() makes a table of it)" if hasattr(source, "collect") else ""
        raise TypeError(f"a trace is paths, open files or a table with __arrow_c_stream__, not {kind}{lazy}") from None


class _Kept:
    """Paths, and the temporary files behind them."""

    def __init__(self, storage_options: Any = None) -> None:
        self.names: list[str] = []
        self._options = storage_options
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def paths(self, one: Any) -> list[str]:
        if hasattr(one, "read"):
            return [self._copy(one, str(getattr(one, "name", "trace")))]
        # It is no pattern any more, whatever is in it.
        is_found = isinstance(one, Found)
        path = one if is_found else _remote.local(os.fsdecode(os.fspath(one)))
        if _remote.is_url(path):
            urls = [path] if is_found else _remote.find(path, self._options)
            return [self.copy(url) for url in urls]
        paths: list[str] = [path]
        if _remote.has_magic(path) and not is_found:
            paths = [*_patterns.find(path)]
            if not paths:
                raise FileNotFoundError(f"no file fits {path!r}")
        self.names += paths
        return paths

    def copy(self, url: str, begin: int = 0, end: int | None = None) -> str:
        """A file's bytes, all of them or these."""
        path = self._place(url)
        _remote.copy(url, self._options, begin, end, path)
        return path

    def _copy(self, opened: Any, name: str) -> str:
        """The reader seeks, and finds the format by content: it needs a file of its own."""
        path = self._place(name)
        with open(path, "wb") as copy:
            shutil.copyfileobj(opened, copy, 1 << 20)
        return path

    def _place(self, name: str) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="idlewise-")
        self.names.append(name)
        return os.path.join(self._folder.name, f"{len(self.names)}-{os.path.basename(name)}")
