"""The two steps of a fleet's job. Each task depends only on what it is given and on files that earlier tasks have finished, and leaves
a finished file or none: an engine may run it anywhere that sees the folder, at any time, and again.

    files ── reduce, a task a file ──► parts of idle times, by group of volumes ── tune, a task a group ──► rows, one a volume
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import _native
from .._errors import IdlewiseError
from .._scan import scan
from ._folder import folder

#: Volumes are put together in so many groups: one group's idle times must fit a worker's memory.
GROUPS = 64

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
    #: What is asked for: options of ``tune_each``.
    goal: dict[str, Any]
    #: Whether files that cannot be read are left out, and told.
    skip_bad_files: bool


@dataclass(frozen=True)
class Split:
    """A file, and what it is known by: its parts are not those of another file, nor of another model."""

    path: str
    key: str


@dataclass(frozen=True)
class Reduced:
    """What became of a file."""

    split: Split
    volumes: int = 0
    error: str | None = None


def splits(job: Job, paths: Iterable[str]) -> list[Split]:
    """A split a file. What has changed since an earlier run is read again."""
    found = []
    for path in sorted({os.path.abspath(path) for path in paths}):
        stat = os.stat(path)
        found.append(Split(path, _key([path, stat.st_size, stat.st_mtime_ns, job.disk, job.read])))
    return found


def reduce(job: Job, split: Split) -> Reduced:
    """Reduce a file to the parts of its volumes, in a file a group."""
    of_file = folder(job.out, "parts", split.key)
    told = of_file / "done.json"
    if told.exists():
        return Reduced(split, json.loads(told.read_text())["volumes"])
    try:
        part = _native.Partial(disk=_native.Disk.parse(job.disk))
        part.push(scan(split.path, **job.read))
    except (IdlewiseError, OSError) as error:
        if not job.skip_bad_files:
            raise
        return Reduced(split, error=str(error))
    volumes = part.volumes
    groups: dict[int, list[bytes]] = {}
    for volume in volumes:
        groups.setdefault(group(volume), []).append(part[volume].to_bytes())
    for number, parts in groups.items():
        _native.replace_file(of_file / str(number), b"".join(parts))
    # The last: without it the file is read again.
    _native.replace_file(told, json.dumps({"path": split.path, "volumes": len(volumes)}).encode())
    return Reduced(split, len(volumes))


def tune(job: Job, keys: list[str], number: int) -> list[Row]:
    """Put the parts of a group of volumes together, and make a row of each."""
    file = folder(job.out, "rows") / f"{_key([job.goal, keys])}-{number}.json"
    if file.exists():
        rows: list[Row] = json.loads(file.read_text())
        return rows
    disk = _native.Disk.parse(job.disk)
    by_volume: dict[str, list[_native.Partial]] = {}
    for key in keys:
        part = folder(job.out, "parts", key) / str(number)
        if part.exists():
            read = _native.Partial.from_bytes(part.read_bytes(), disk=disk)
            for volume in read.volumes:
                by_volume.setdefault(volume, []).append(read[volume])
    rows = [_row(job, volume, by_volume.pop(volume)) for volume in sorted(by_volume)]
    _native.replace_file(file, json.dumps(rows).encode())
    return rows


def group(volume: str) -> int:
    """The group of a volume."""
    return zlib.crc32(volume.encode()) % GROUPS


def _row(job: Job, volume: str, parts: list[_native.Partial]) -> Row:
    """Statistics and plan of a volume; what is wrong with one is told in its row, and ends no job."""
    try:
        idle = _native.Idleness.merge(parts)
        return {**idle.by_volume().rows()[0], **_native.tune_each(idle, **job.goal).rows()[0]}
    except IdlewiseError as error:
        return {"volume": volume, "error": str(error)}


def _key(of: Any) -> str:
    return hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()[:24]
