"""The cores of this machine: worker processes, each with a pipe of its own. Nothing is shared, no lock either, so a worker that is killed at
whatever moment holds nobody up. (``concurrent.futures`` has one queue for all, and waits for ever for one that died with its lock.)"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: So often a task may take its worker with it.
TRIES = 4

# Threads do not survive a fork.
_spawn = multiprocessing.get_context("spawn")


class Processes:
    """The cores of this machine. A worker that dies, as for want of memory, is replaced, and what it did is done again."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1
        self._idle: list[_Worker] = []

    @property
    def workers(self) -> int:
        """How many there are at most."""
        return self._workers

    def run(self, task: Callable[[T], R], of: Sequence[T], *, lost: Callable[[T, str], R] | None = None) -> Iterator[R]:
        """The results of ``task`` of each, in any order. The workers stay for the next tasks. Of a task that takes each worker with it the
        result is what ``lost`` makes of it, or an error."""
        left = deque(range(len(of)))
        died: Counter[int] = Counter()
        busy: dict[Any, tuple[_Worker, int]] = {}
        try:
            while left or busy:
                while left and len(busy) < self._workers:
                    worker = self._idle.pop() if self._idle else _Worker()
                    at = left.popleft()
                    busy[worker.pipe] = worker, at
                    worker.give(task, of[at])
                for pipe in wait(list(busy)):
                    worker, at = busy.pop(pipe)
                    answer = worker.answer()
                    if answer is None:
                        died[at] += 1
                        why = f"a worker has died {TRIES} times of the same task: {_how(worker.exit_code)}"
                        if worker.exit_code == 1:
                            why += " (workers import the script that calls: the call belongs under `if __name__ == \"__main__\":`)"
                        if died[at] < TRIES:
                            left.append(at)
                        elif lost is None:
                            raise RuntimeError(why)
                        else:
                            yield lost(of[at], why)
                        continue
                    self._idle.append(worker)
                    error, result = answer
                    if error is not None:
                        raise error
                    yield result
        finally:
            # Who asked may want no more, as after an error.
            for worker, _ in busy.values():
                worker.end()

    def close(self) -> None:
        """End the workers."""
        while self._idle:
            self._idle.pop().end()


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """A new Python looks for modules in the present folder first, which may be anybody's, unless it is told not to."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


class _Worker:
    def __init__(self) -> None:
        self.pipe, theirs = _spawn.Pipe()
        self._process = _spawn.Process(target=_work, args=(theirs,), daemon=True)
        with safe_path():
            self._process.start()
        # The end of the pipe tells that it has died: only it may have the other one.
        theirs.close()

    def give(self, task: Callable[[T], R], one: T) -> None:
        try:
            self.pipe.send((task, one))
        except (BrokenPipeError, ConnectionResetError):
            # It has died: so its answer will say.
            pass

    def answer(self) -> tuple[Exception | None, Any] | None:
        """An error or a result; nothing of one that has died."""
        try:
            answer: tuple[Exception | None, Any] = self.pipe.recv()
            return answer
        except (EOFError, ConnectionResetError):
            self.end()
            return None

    @property
    def exit_code(self) -> int | None:
        return self._process.exitcode

    def end(self) -> None:
        self.pipe.close()
        # One that has died keeps how.
        self._process.join(0.1)
        self._process.kill()
        self._process.join()


def _how(code: int | None) -> str:
    return f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"


def _work(pipe: Connection[Any, Any]) -> None:
    """Do tasks until nobody is there who gives any."""
    # Ctrl-C is for who has started it, and that one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A worker a core: none of them has more to do at a time.
    os.environ["RAYON_NUM_THREADS"] = "1"
    try:
        while True:
            task, one = pipe.recv()
            answer: tuple[Exception | None, Any]
            try:
                answer = None, task(one)
            except Exception as error:
                answer = error, None
            try:
                pipe.send(answer)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                pipe.send((RuntimeError(f"a task's answer cannot be sent: {error}; it was {answer!r:.200}"), None))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
