"""What runs tasks: the cores of this machine (``_processes``), Dask, or Spark."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ._processes import TRIES, Processes

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Anything that can run tasks: an engine of your own has this one method."""

    def run(self, task: Callable[[T], R], of: Sequence[T]) -> Iterator[R]:
        """The results of ``task`` of each, in any order."""
        ...


class Dask:
    """A Dask cluster: its client, the address of its scheduler, or nothing for workers on this machine."""

    def __init__(self, client: Any = None) -> None:
        try:
            import distributed
        except ImportError:
            raise ImportError("engine='dask' needs idlewise[dask]") from None
        client_of: Any = distributed.Client
        self._client = client if isinstance(client, client_of) else client_of(client)

    def run(self, task: Callable[[T], R], of: Sequence[T]) -> Iterator[R]:
        """The results of ``task`` of each, in any order."""
        import distributed

        as_they_end: Any = distributed.as_completed
        futures = self._client.map(task, of, pure=False, retries=TRIES)
        try:
            for _, result in as_they_end(futures, with_results=True):
                yield result
        finally:
            # Who asked may want no more, as after an error.
            self._client.cancel([future for future in futures if not future.done()])


class Spark:
    """Spark: its session, or one on the cores of this machine. It needs no more of it than ``mapInArrow``, so that of Spark Connect, or of
    an engine that speaks it such as Sail, will do."""

    def __init__(self, session: Any = None) -> None:
        try:
            from pyspark.sql import SparkSession  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise ImportError("engine='spark' needs idlewise[spark]") from None
        # Workers on this machine have what this process has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder: Any = SparkSession.builder
        self._session = session or builder.appName("idlewise").config("spark.ui.enabled", "false").getOrCreate()

    def run(self, task: Callable[[T], R], of: Sequence[T]) -> Iterator[R]:
        """The results of ``task`` of each, in any order."""

        def each(batches: Iterable[Any]) -> Iterator[Any]:
            import pyarrow  # type: ignore[import-untyped, unused-ignore]

            for one in (one for batch in batches for one in batch.column(0).to_pylist()):
                # An error that the caller would know is told as what it is.
                try:
                    result: Any = task(pickle.loads(one))
                except (OSError, ValueError) as error:
                    result = _Failed(error)
                yield pyarrow.RecordBatch.from_pydict({"result": [pickle.dumps(result)]})

        tasks = [(bytearray(pickle.dumps(one)),) for one in of]
        frame = self._session.createDataFrame(tasks, "task binary").repartition(max(1, len(tasks)))
        for row in frame.mapInArrow(each, "result binary").toLocalIterator():
            result = pickle.loads(bytes(row.result))
            if isinstance(result, _Failed):
                raise result.error
            yield result


@dataclass
class _Failed:
    error: Exception


def engine(of: Any, workers: int | None) -> Engine:
    """By its name, or one that was given."""
    if of is None:
        return Processes(workers)
    if of == "dask":
        return Dask()
    if of == "spark":
        return Spark()
    if hasattr(of, "run"):
        found: Engine = of
        return found
    raise ValueError(f"no engine is called {of!r}: None for the cores of this machine, 'dask', 'spark', or an object with run")
