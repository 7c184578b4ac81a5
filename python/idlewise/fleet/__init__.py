"""Idle times and plans of a fleet: a row a volume, from as many files as there are, on one machine or a cluster.

Examples
--------
>>> from idlewise import fleet
>>> fleet.Fleet([{"volume": "hm_0", "error": None}], errors={})
<idlewise.fleet.Fleet: 1 volumes>
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import inspect
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from .. import _native
from .._errors import IdlewiseError
from .._scan import scan
from .._types import DiskLike, Progress, Size, Time
from ._engines import Dask, Engine, Spark, engine as _engine
from ._folder import folder as _folder
from ._processes import Processes
from ._splits import Split, are_whole, find
from ._steps import GROUPS, Job, Reduced, Row, reduce, splits, tune

__all__ = ["Dask", "Engine", "Fleet", "Processes", "Spark", "analyze"]


class Fleet:
    """The table of a fleet, and the files that could not be read."""

    def __init__(self, rows: list[Row], errors: dict[str, str]) -> None:
        #: A row a volume: the names of ``idle --by-volume --json`` and of ``tune --by-volume --json``, ``warnings`` and ``error``. What is not known
        #: of a volume is None.
        self.rows = rows
        #: Files that were left out, and why.
        self.errors = errors

    @functools.cached_property
    def _table(self) -> _native.Table:
        return _native.Table._of_rows(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """By column, as plain Python."""
        return self._table.to_dict()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __getitem__(self, name: str) -> list[Any]:
        return self._table[name]

    def __len__(self) -> int:
        return len(self.rows)

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet. It needs pyarrow."""
        try:
            import pyarrow  # type: ignore[import-untyped, unused-ignore]
            import pyarrow.parquet  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise ImportError("write_parquet needs the package pyarrow") from None
        whole = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(pyarrow.table(self), whole)
        _native.replace_file(path, whole.getvalue().to_pybytes())

    def report(self, path: str | os.PathLike[str] | None = None, *, within: Time = "14d") -> str:
        """An HTML page of the fleet: which volumes a pass takes at most ``within``, which not and why, and a table to sort and search.

        Parameters
        ----------
        path
            Where it is written to as well.
        within
            The time that a pass may take.

        Returns
        -------
        str
        """
        if not self._is_of_plans():
            raise IdlewiseError("the page is about plans, and this table has none: analyze makes them without plans=False")
        page = _native.fleet_page(json.dumps({"rows": self.rows, "errors": self.errors}), within)
        if path is not None:
            _native.replace_file(path, page.encode())
        return page

    def _is_of_plans(self) -> bool:
        return not self.rows or any("full_pass_s" in row or row.get("error") for row in self.rows)

    def _repr_html_(self) -> str | None:
        if not self._is_of_plans():
            return None
        return f'<iframe srcdoc="{html.escape(self.report())}" width="100%" height="600"></iframe>'

    def __repr__(self) -> str:
        left_out = f", {len(self.errors)} files left out" if self.errors else ""
        return f"<idlewise.fleet.Fleet: {len(self.rows)} volumes{left_out}>"


def analyze(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    mean_slowdown: Time | None = None,
    max_slowdown: Time | None = None,
    finish_within: Time | None = None,
    capacity: Size = "10TB",
    any_moment: bool = True,
    plans: bool = True,
    disk: DiskLike | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: Any = None,
    workers: int | None = None,
    skip_bad_files: bool = False,
    progress: Progress | None = None,
    **read: Any,
) -> Fleet:
    """Reduce each file where it lies, put the parts of each volume together, and make its plan.

    The numbers are those of ``tune_each(scan(paths).idle(), any_moment=True)``, whatever the engine. Files may be of any time and hold
    any volumes, but two files must not hold the same time of one volume.

    Parameters
    ----------
    paths
        Files, globs, and URLs that fsspec knows such as ``s3://traces/*.csv``. Large text files are cut into slices that are read side by
        side.
    mean_slowdown, max_slowdown, finish_within, capacity, any_moment
        As in ``tune``. The plans are meant to be run, so they keep their goal at any moment unless told otherwise.
    plans
        Without them there are the idle statistics alone, in a small part of the time.
    disk
        The model that serves requests without a response, and that simulations take.
    out
        A folder that all workers see. What was done lies there, so a job that was stopped goes on, and another goal is tuned without
        reading again. Nobody but you or root may write to it, or it raises PermissionError. Without it a temporary folder is used.
    engine
        None for the cores of this machine, ``"dask"`` for Dask within this process, ``Dask(client)`` for a cluster of it, ``"spark"``
        or ``Spark(session)`` for Spark, or an object with ``run``.
    workers
        How many processes, of this machine.
    skip_bad_files
        Leave out files that cannot be read, and tell them, instead of raising the first error.
    progress
        Called with the share done.
    read
        How files are read: other options of ``scan``, such as ``columns``, or ``storage_options`` of URLs.

    Returns
    -------
    Fleet
    """
    files = find(paths, read.get("storage_options"))
    if not files:
        raise IdlewiseError("there is nothing to read: no file was given")
    goal: dict[str, Any] = {"mean_slowdown": mean_slowdown, "max_slowdown": max_slowdown, "finish_within": finish_within}
    goal |= {"capacity": capacity, "any_moment": any_moment}
    if not plans and (goal["mean_slowdown"] or goal["max_slowdown"] or goal["finish_within"]):
        raise IdlewiseError("a goal is for plans, and plans=False wants none")
    unknown = read.keys() - inspect.signature(scan).parameters.keys()
    if unknown:
        raise TypeError(f"analyze has no keyword {min(unknown)!r}, and neither has scan")
    nothing = _native.Partial(disk=disk).idle()
    if plans:
        # A goal that makes no sense is one mistake, and not one of each volume.
        _native.tune_each(nothing, **goal)
    model = nothing.disk
    run = _engine(engine, workers)
    with contextlib.ExitStack() as ends:
        # After an error, tasks of an engine may still write there.
        temporary = ends.enter_context(tempfile.TemporaryDirectory(prefix="idlewise-fleet-", ignore_cleanup_errors=True))
        if isinstance(run, (Processes, Dask, Spark)) and run is not engine:
            ends.callback(run.close)
        job = Job(os.path.abspath(out or temporary), model.to_toml(), read, goal if plans else None, skip_bad_files, run.workers if isinstance(run, Processes) else None)
        for name in ("parts", "rows"):
            _folder(job.out, name)
        todo = splits(job, files)
        if job.workers is not None:
            # A few files have all the memory.
            job = dataclasses.replace(job, workers=max(1, min(job.workers, len(todo))))
        reduced: dict[str, list[Reduced]] = {}
        for at, done in enumerate(_reduced(run, job, todo)):
            reduced.setdefault(done.split.path, []).append(done)
            _tell(progress, 0.5 * (at + 1) / len(todo))
        # So far out of order that slices miss some of their requests.
        missed = [path for path, several in reduced.items() if not _is_whole(several)]
        if missed:
            for done in _reduced(run, job, splits(job, missed, whole=True)):
                reduced[done.split.path] = [done]
        errors = {_shown(path): one.error for path, several in reduced.items() for one in several if one.error is not None}
        parts = sorted((one.split.key, one.checksum) for several in reduced.values() if not any(one.error is not None for one in several) for one in several)
        rows: list[Row] = []
        for at, some in enumerate(run.run(functools.partial(tune, job, parts), range(GROUPS))):
            rows += some
            _tell(progress, 0.5 + 0.5 * (at + 1) / GROUPS)
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = sorted(({name: row.get(name) for name in names} for row in rows), key=lambda row: str(row["volume"]))
        if out is not None:
            _save(_folder(job.out), rows, errors)
    return Fleet(rows, errors)


def _reduced(run: Engine, job: Job, todo: list[Split]) -> Iterator[Reduced]:
    """What becomes of these. A file that ends each worker that reads it is one that cannot be read."""
    task = functools.partial(reduce, job)
    if isinstance(run, Processes) and job.skip_bad_files:
        return run.run(task, todo, lost=lambda split, why: Reduced(split, error=why))
    return run.run(task, todo)


def _shown(path: str) -> str:
    """As text, where its name is none."""
    return os.fsencode(path).decode("utf-8", "replace")


def _is_whole(reduced: list[Reduced]) -> bool:
    """Whether a file's splits have all of it, as far as they could be read."""
    counts = [one.counts for one in reduced if one.counts is not None]
    return any(one.error is not None for one in reduced) or are_whole(counts)


def _tell(progress: Progress | None, share: float) -> None:
    if progress is not None:
        progress(share)


def _save(out: pathlib.Path, rows: list[Row], errors: dict[str, str]) -> None:
    """The table and what is missing in it, beside the parts."""
    _native.replace_file(out / "fleet.json", json.dumps({"rows": rows, "errors": errors}).encode())
