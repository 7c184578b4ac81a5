"""The two steps of a fleet's job. Each task depends only on what it is given and on files that earlier tasks have finished, and leaves
a finished file or none: an engine may run it anywhere that sees the folder, at any time, and again.

    files ── reduce, a task a split ──► parts of idle times, by group of volumes ── tune, a task a group ──► rows, one a volume

What was done is taken again only where it is whole, and was made of the same files, in the same way, by the same version.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import time
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .. import _native
from .._errors import IdlewiseError
from .._remote import is_url
from ._folder import within
from ._splits import Counts, Split, cut, reduce_split, state

#: Volumes are put together in so many groups: one group's idle times must fit a worker's memory.
GROUPS = 64

#: The parts of a split, one group of volumes after the other.
PARTS = "parts"

#: Tells where each group's parts are, once they are all there.
DONE = "done.json"

#: A volume's idle times take so many times as much memory while something is computed from them.
COMPUTING = 4

#: Ends of messages that name options of ``scan``.
HINTS = re.compile("; skip_bad=|; memory_limit=|, and other tables with columns=")

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What is the same for all tasks."""

    #: The folder that all workers see.
    out: str
    #: The model of the disk, as TOML.
    disk: str
    #: How files are read: options of ``scan``.
    read: dict[str, Any]
    #: What is asked for: options of ``tune_each``; None where no plans are.
    goal: dict[str, Any] | None
    #: Whether files that cannot be read are left out, and told.
    skip_bad_files: bool
    #: So many workers share the memory of this machine; None for one a core.
    workers: int | None


@dataclass(frozen=True)
class Reduced:
    """What became of a split."""

    split: Split
    #: Of what tells its parts, with their checksums.
    checksum: str = ""
    #: Of a slice.
    counts: Counts | None = None
    error: str | None = None


def splits(job: Job, paths: Iterable[str], whole: bool = False) -> list[Split]:
    """A split a file, or a slice of a large one unless they are to be read as a whole. What has changed since an earlier run is read
    again."""
    read = {name: value for name, value in job.read.items() if name != "storage_options"}
    found = []
    for path in paths:
        made: list[Any] = [path, _native.__version__, job.disk, read]
        slices = []
        try:
            made.append(state(path, job.read.get("storage_options")))
            slices = [] if whole else cut(path, job.read)
        except OSError:
            # It is gone meanwhile, or cannot be read: whoever reads it says so.
            made.append(time.time_ns())
        found += [Split(path, _key([*made, asdict(one)]), one) for one in slices] or [Split(path, _key(made))]
    return found


def reduce(job: Job, split: Split) -> Reduced:
    """Reduce a split to the parts of its volumes, by group."""
    of_split = within(job.out, "parts", split.key)
    told = _told(of_split)
    if told is None:
        try:
            part, counts = reduce_split(split, job.read, _native.Disk.parse(job.disk), _memory(job))
        except (IdlewiseError, OSError) as error:
            if job.skip_bad_files:
                return Reduced(split, error=_why(split.path, error))
            why = _why(split.path, error)
            if is_url(split.path) or why == str(error):
                raise IdlewiseError(f"{_native.one_line(split.path)}: {why}") from error
            raise
        told = _write_parts(of_split, split, part, counts)
    counts = json.loads(told).get("counts")
    return Reduced(split, _checksum(told), Counts(**counts) if counts else None)


def _memory(job: Job) -> int | None:
    """Bytes that a task may take, where as many as there may be are at work."""
    half = _native.half_of_free_memory()
    return half // _at_once(job) if half else None


def _at_once(job: Job) -> int:
    return job.workers or os.cpu_count() or 1


def _why(path: str, error: Exception) -> str:
    """What was wrong with a file, without its name. Of a URL a copy was read, which has another one."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error)
    _, named, why = text.partition(_native.one_line(f"-{os.path.basename(path)}" if is_url(path) else path))
    # How one file would be read is no help where there are many.
    return re.split(HINTS, why.lstrip(": "))[0] if named else text


def _told(of_split: pathlib.Path) -> bytes | None:
    """What tells the parts of a split, if each of them is as it was written."""
    try:
        told = (of_split / DONE).read_bytes()
        parts = json.loads(told)["parts"]
        whole = all(_part(of_split, name, parts) is not None for name in parts)
        return told if whole else None
    except (FileNotFoundError, LookupError, TypeError, ValueError):
        return None


def _write_parts(of_split: pathlib.Path, split: Split, part: _native.Partial, counts: Counts | None) -> bytes:
    groups: dict[int, list[str]] = {}
    for volume in part.volumes:
        groups.setdefault(group(volume), []).append(volume)
    whole = bytearray()
    parts = {}
    for number, volumes in groups.items():
        data = b"".join(part[volume].to_bytes() for volume in volumes)
        parts[str(number)] = {"begin": len(whole), "bytes": len(data), "sha256": _checksum(data)}
        whole += data
    _write(of_split / PARTS, whole)
    told = json.dumps({"path": split.path, "parts": parts, "counts": asdict(counts) if counts else None}).encode()
    # The last: without it the split is read again.
    _write(of_split / DONE, told)
    return told


def _write(path: pathlib.Path, data: bytes | bytearray) -> None:
    """Put a file in its place. Nobody waits until the disk has it: what is lost with the machine's power is found by its checksum."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    # Of a run that was killed, and had this number.
    new.unlink(missing_ok=True)
    opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(opened, "wb") as file:
            file.write(data)
        os.replace(new, path)
    except OSError as error:
        # Such as for want of space.
        new.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def _part(of_split: pathlib.Path, name: str, parts: dict[str, Any]) -> bytes | None:
    """One of these parts, if it is as it was written."""
    begin, length, checksum = (parts[name][key] for key in ("begin", "bytes", "sha256"))
    with open(of_split / PARTS, "rb") as file:
        file.seek(begin)
        data = file.read(length)
    return data if _checksum(data) == checksum else None


def tune(job: Job, reduced: list[tuple[str, str]], number: int) -> list[Row]:
    """Put the parts of a group of volumes together, and make a row of each. Of each split there is its key and its checksum."""
    file = within(job.out, "rows") / f"{_key([_native.__version__, job.goal, reduced])}-{number}.json"
    rows = _rows(file)
    if rows is not None:
        return rows
    disk = _native.Disk.parse(job.disk)
    by_volume: dict[str, list[_native.Partial]] = {}
    memory: dict[str, int] = {}
    too_large: dict[str, Row] = {}
    most = _memory(job)
    for key, checksum in reduced:
        data = _part_of_group(within(job.out, "parts", key), checksum, str(number))
        read = _native.Partial.from_bytes(data, disk=disk)
        for volume in (one for one in read.volumes if one not in too_large):
            by_volume.setdefault(volume, []).append(read[volume])
            memory[volume] = memory.get(volume, 0) + read[volume].memory
        # Something is computed from one volume at a time, and hardly ever from the largest ones of all workers at once.
        while most and (max(memory.values(), default=0) > _at_once(job) * most or sum(memory.values()) > COMPUTING * most):
            largest = max(memory, key=lambda volume: memory[volume])
            too_large[largest] = {"volume": largest, "error": "its idle times take more memory than is free; fewer workers leave more to each"}
            del by_volume[largest], memory[largest]
    rows = [_row(job, volume, by_volume.pop(volume)) for volume in sorted(by_volume)]
    if too_large:
        # Another time there may be more memory.
        return [*rows, *too_large.values()]
    _native.replace_file(file, json.dumps({"rows": rows, "sha256": _checksum(json.dumps(rows).encode())}).encode())
    return rows


def _rows(file: pathlib.Path) -> list[Row] | None:
    """Rows of an earlier run, if they are as they were written."""
    try:
        told = json.loads(file.read_bytes())
        rows: list[Row] = told["rows"]
        return rows if told["sha256"] == _checksum(json.dumps(rows).encode()) else None
    except (FileNotFoundError, LookupError, TypeError, ValueError):
        return None


def _part_of_group(of_split: pathlib.Path, checksum: str, number: str) -> bytes:
    """The parts of a split for a group, which may be none."""
    try:
        told = (of_split / DONE).read_bytes()
        if _checksum(told) == checksum:
            parts = json.loads(told)["parts"]
            data = _part(of_split, number, parts) if number in parts else b""
            if data is not None:
                return data
    except FileNotFoundError:
        pass
    # They were whole when the other step ended.
    raise IdlewiseError(f"{of_split}: changed while the job ran; run it again")


def group(volume: str) -> int:
    """The group of a volume."""
    return zlib.crc32(volume.encode()) % GROUPS


def _row(job: Job, volume: str, parts: list[_native.Partial]) -> Row:
    """Statistics and plan of a volume; what is wrong with one is told in its row, and ends no job."""
    try:
        idle = _native.Idleness.merge(parts)
        row = idle.by_volume().rows()[0]
        if job.goal is None:
            return {**row, "error": None}
        row |= _native.tune_each(idle, **job.goal).rows()[0]
        # The row says it all: these plans are of one wait and one size.
        del row["plan"]
        return row
    except IdlewiseError as error:
        return {"volume": volume, "error": str(error)}


def _key(of: Any) -> str:
    return hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
