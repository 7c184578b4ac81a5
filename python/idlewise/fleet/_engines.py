"""What runs tasks: the cores of this machine (``_processes``), Dask, or Spark."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ._processes import TRIES, Processes, safe_path

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Anything that can run tasks: an engine of your own has this one method."""

    def run(self, task: Callable[[T], R], of: Sequence[T]) -> Iterator[R]:
        """The results of ``task`` of each, in any order."""
        ...


class Dask:
    """A Dask cluster: its client, the address of its scheduler, or nothing for one within this process."""

    def __init__(self, client: Any = None) -> None:
        try:
            import distributed
        except ImportError:
            raise ImportError("engine='dask' needs idlewise[dask]") from None
        client_of: Any = distributed.Client
        self._folder: Any = None
        if client is None:
            # Not the folder that others may have made for Dask: it writes through whatever lies there.
            self._folder = tempfile.TemporaryDirectory(prefix="idlewise-dask-")
            client = _within_this_process(self._folder.name)
        self._client = client if isinstance(client, client_of) else client_of(client)

    def close(self) -> None:
        """End what was begun here; a cluster that was there before stays."""
        if self._folder:
            self._client.cluster.close()
            self._client.close()
            self._folder.cleanup()

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


def _within_this_process(folder: str) -> Any:
    """Whoever reaches a scheduler has its workers do anything, and local users reach each that listens. This one does not."""
    from dask import config  # type: ignore[attr-defined, unused-ignore] # pyright: ignore[reportPrivateImportUsage]
    from distributed import Client, LocalCluster

    nowhere = "127.0.0.1:0"
    # Its servers of pages cannot be left out, but their pages can.
    pages: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with config.set(pages | {"temporary-directory": folder}):
        cluster: Any = LocalCluster(  # type: ignore[no-untyped-call, unused-ignore]
            processes=False,
            n_workers=1,
            threads_per_worker=os.cpu_count() or 1,
            dashboard_address=nowhere,
            worker_dashboard_address=nowhere,
            local_directory=folder,
            scheduler_kwargs={"dashboard": False},
        )
    return Client(cluster)  # type: ignore[no-untyped-call, unused-ignore]


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
        builder: Any = SparkSession.builder.appName("idlewise").config("spark.ui.enabled", "false")
        self._folder: Any = None
        if session is None and SparkSession.getActiveSession() is None and "SPARK_REMOTE" not in os.environ:
            # Nobody but this user is to reach it, nor where it writes.
            self._folder = tempfile.TemporaryDirectory(prefix="idlewise-spark-")
            builder = builder.master("local[*]").config("spark.authenticate", "true").config("spark.local.dir", self._folder.name)
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
        # What it starts begins in the present folder.
        with safe_path():
            self._session = session or builder.getOrCreate()

    def close(self) -> None:
        """End what was begun here; a session that was there before stays."""
        if self._folder:
            self._session.stop()
            self._folder.cleanup()

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
