"""What a task reads: a file, or a slice of one that is large.

A text file is cut at places in it, and in time at the first arrival behind each of them. A slice has the requests of its time: those
that are a little out of order lie in the margin that it reads beyond its bytes. Whether each request of a file is in one of its
slices is counted:

    requests seen in all slices  -  requests around each cut, which two slices see  =  requests kept in all slices

Where that does not hold, the file is read as a whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import _native, _patterns, _remote
from .._patterns import Found
from .._scan import scan, scan_slice

#: Larger text files are cut into slices of at most so many bytes.
SLICE = 256 << 20

#: Read beyond either end of a slice; at most half of it.
MARGIN = 4 << 20

#: What is looked at where a file may be cut.
LOOK = 128 << 10

#: Greater than any arrival.
NEVER = (1 << 64) - 1


@dataclass(frozen=True)
class Slice:
    """A part of a file: what is between two cuts."""

    format: str
    begin: int
    end: int
    #: Arrivals of its requests, on the source's clock.
    first_ns: int
    until_ns: int
    margin: int


@dataclass(frozen=True)
class Split:
    """A file or a slice of it, and what it is known by: its parts are not those of another file, model or version."""

    path: str
    key: str
    slice: Slice | None = None


@dataclass(frozen=True)
class Counts:
    """The requests of a slice: those that it keeps, all that were read, and those around its beginning."""

    kept: int
    seen: int
    around: int


def find(paths: Any, options: _remote.Options) -> list[str]:
    """The files that paths, globs and URLs name."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[str] = []
    for path in (str(os.fspath(one)) for one in several):
        if _remote.is_url(path):
            files += _remote.find(path, options)
            continue
        if _remote.has_magic(path):
            # A pipe is no trace: only who names it itself wants to wait for it.
            fit = (one for one in _patterns.find(path) if os.path.isfile(one) or os.path.isdir(one))
            found: list[str] = [Found(os.path.abspath(one)) for one in fit]
        else:
            found = [os.path.abspath(path)] if os.path.exists(path) else []
        if not found:
            raise FileNotFoundError(f"no file fits {path!r}")
        files += found
    return sorted(set(files))


def state(path: str, options: _remote.Options) -> Any:
    """What is another after each change of a file, or of any file in a folder."""
    if _remote.is_url(path):
        return _remote.state(path, options)
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        with os.scandir(path) as entries:
            return [[name, state(os.path.join(path, name), None)] for name in sorted(one.name for one in entries if one.is_file())]
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def cut(path: str, read: dict[str, Any]) -> list[Slice]:
    """The slices of a file; none where it is read as a whole."""
    options = read.get("storage_options")
    # Other options than these need all of it, or say how what is no known format is read.
    if any(value for name, value in read.items() if name not in ("storage_options", "skip_bad", "memory_limit")):
        return []
    size = _size(path, options)
    if size is None or size <= SLICE:
        return []
    head = _native.first_arrival(_bytes(path, options, 0, LOOK))
    if head is None:
        return []
    # Each slice has at least the request at its beginning, and about as much as any other.
    cuts, latest = [(0, 0)], head[1]
    each = -(-size // -(-size // SLICE))
    for begin in range(each, size - 2 * MARGIN, each):
        _, _, lines = _bytes(path, options, begin, begin + LOOK).partition(b"\n")
        found = _native.first_arrival(lines)
        if found is not None and found[0] == head[0] and found[1] > latest:
            latest = found[1]
            cuts.append((begin, latest))
    if len(cuts) == 1:
        return []
    ends = [*cuts[1:], (size, NEVER)]
    return [Slice(head[0], begin, end, first, until, MARGIN) for (begin, first), (end, until) in zip(cuts, ends, strict=True)]


def _size(path: str, options: _remote.Options) -> int | None:
    if _remote.is_url(path):
        return _remote.size(path, options)
    found = os.stat(path)
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _bytes(path: str, options: _remote.Options, begin: int, end: int) -> bytes:
    if _remote.is_url(path):
        return _remote.read(path, options, begin, end)
    # By now it may be a pipe, which would be waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
        file.seek(begin)
        return file.read(end - begin)


def reduce_split(split: Split, read: dict[str, Any], disk: _native.Disk) -> tuple[_native.Partial, Counts | None]:
    """The idle times of a split, and of a slice how many requests it has."""
    part = _native.Partial(disk=disk)
    if split.slice is None:
        part.push(scan(split.path, **read))
        return part, None
    one = split.slice
    trace = _scan(split, read, one.begin - one.margin, one.end + one.margin, one.first_ns, one.until_ns)
    part.push(trace)
    kept, outside = trace.requests, trace.provenance["outside"]
    around = 0
    if one.begin > 0:
        around = _scan(split, read, one.begin - one.margin, one.begin + one.margin, 0, NEVER).requests
    return part, Counts(kept, kept + outside, around)


def _scan(split: Split, read: dict[str, Any], begin: int, end: int, first: int, until: int) -> _native.Trace:
    assert split.slice is not None
    options = {name: read[name] for name in ("skip_bad", "storage_options") if name in read}
    return scan_slice(split.path, (split.slice.format, max(0, begin), end, first, until), **options)


def are_whole(counts: Iterable[Counts]) -> bool:
    """Whether slices have each request of their file."""
    several = list(counts)
    kept, seen, around = (sum(getattr(one, name) for one in several) for name in ("kept", "seen", "around"))
    return bool(seen - around == kept)
