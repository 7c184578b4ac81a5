"""What a task reads: a file, or a slice of one that is large.

A text file is cut at places in it, and in time at the first arrival behind each of them. A slice has the requests of its time: those
that are a little out of order lie in the margin that it reads beyond its bytes. Whether each request of a file is in one of its
slices is counted:

    requests seen in all slices  -  requests around each cut, which two slices see  =  requests kept in all slices

Where that does not hold, the file is read as a whole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
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

#: So many places behind each other where a file cannot be cut, and the rest of it is not.
UNCUT = 32

#: Of a trace, a larger part than one in so many was written.
MOST_TIMES = 16

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
    for path in (_remote.local(str(os.fspath(one))) for one in several):
        if _remote.is_url(path):
            files += _remote.find(path, options)
            continue
        if _remote.has_magic(path):
            fit = (Found(_whole(one), _whole(one.folder)) for one in _patterns.find(path))
            found: list[str] = [one for one in fit if _may_be_trace(one)]
        else:
            found = [_whole(path)] if os.path.exists(path) else []
        if not found:
            raise FileNotFoundError(f"no file fits {path!r}")
        files += found
    return sorted(set(files))


def _whole(path: str) -> str:
    """The same from the root on: workers may be in another folder. What ``..`` leads to behind a link only the kernel knows."""
    return os.path.join(os.getcwd(), path)


def _may_be_trace(found: Found) -> bool:
    """Not a pipe: only who names it itself wants to wait for it. What cannot be looked at is told when it is read."""
    try:
        state = _native.state_of_found(found, found.folder)
    except OSError:
        return True
    return state is None or stat.S_ISREG(state[0]) or stat.S_ISDIR(state[0])


def state(path: str, options: _remote.Options) -> Any:
    """What is another after each change of a file, or of any file in a folder."""
    if _remote.is_url(path):
        return _remote.state(path, options)
    # What the caller has named itself may be a link to wherever it likes.
    named = path.folder if isinstance(path, Found) else path
    found = _native.state_of_found(path, named)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    mode, *rest = found
    if not stat.S_ISDIR(mode):
        return rest
    names = sorted(name for name, _ in _native.names_of_found(path, named) or [])
    states = ((name, _native.state_of_found(os.path.join(path, name), named)) for name in names)
    return [[name, *one[1:]] for name, one in states if one is not None and stat.S_ISREG(one[0])]


def cut(path: str, read: dict[str, Any]) -> list[Slice]:
    """The slices of a file; none where it is read as a whole."""
    options = read.get("storage_options")
    # Other options than these need all of it, or say how what is no known format is read.
    if any(value for name, value in read.items() if name not in ("storage_options", "skip_bad", "memory_limit")):
        return []
    if _remote.is_url(path):
        size = _remote.size(path, options) or 0
        return _cut(size, lambda begin, end: _remote.read(path, options, begin, end), lambda begin: begin)
    of = _open(path)
    if of is None:
        return []
    try:
        found = os.fstat(of)
        size = found.st_size if stat.S_ISREG(found.st_mode) else 0
        # Each slice of a file of holes would read as much of them as a whole file may have.
        if 0 < found.st_blocks * 512 < size / MOST_TIMES:
            return []
        return _cut(size, lambda begin, end: os.pread(of, end - begin, begin), lambda begin: _data_from(of, begin))
    finally:
        os.close(of)


def _cut(size: int, bytes_of: Callable[[int, int], bytes], data_from: Callable[[int], int | None]) -> list[Slice]:
    if size <= SLICE:
        return []
    head = _native.first_arrival(bytes_of(0, LOOK))
    if head is None:
        return []
    # Each slice has at least the request at its beginning, and about as much as any other.
    cuts, latest, missed = [(0, 0)], head[1], 0
    each = -(-size // -(-size // SLICE))
    begin = each
    # A file may be as long as somebody says: where nothing was ever written, it takes no space.
    while begin < size - 2 * MARGIN and missed < UNCUT:
        data = data_from(begin)
        if data is None:
            break
        if data >= begin + each:
            begin = data // each * each
        _, _, lines = bytes_of(begin, begin + LOOK).partition(b"\n")
        found = _native.first_arrival(lines)
        missed += 1
        if found is not None and found[0] == head[0] and found[1] > latest:
            latest, missed = found[1], 0
            cuts.append((begin, latest))
        begin += each
    if len(cuts) == 1:
        return []
    ends = [*cuts[1:], (size, NEVER)]
    return [Slice(head[0], begin, end, first, until, MARGIN) for (begin, first), (end, until) in zip(cuts, ends, strict=True)]


def _open(path: str) -> int | None:
    """By now it may be a pipe, which would be waited for, or lie behind a link of another user, which is passed over."""
    if isinstance(path, Found):
        return _native.open_found(path, path.folder)
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def _data_from(file: int, begin: int) -> int | None:
    """Where there is data again, from here on; None where the rest is a hole."""
    try:
        return os.lseek(file, begin, os.SEEK_DATA)
    except OSError as error:
        # A file system may not know.
        return None if error.errno == errno.ENXIO else begin


def reduce_split(split: Split, read: dict[str, Any], disk: _native.Disk, memory: int | None) -> tuple[_native.Partial, Counts | None]:
    """The idle times of a split, and of a slice how many requests it has. They take no more memory than so much."""
    part = _native.Partial(disk=disk)
    if split.slice is None:
        part.push(scan(split.path, **read), memory_limit=memory)
        return part, None
    one = split.slice
    trace = _scan(split, read, one.begin - one.margin, one.end + one.margin, one.first_ns, one.until_ns)
    part.push(trace, memory_limit=memory)
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
