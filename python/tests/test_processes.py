"""The worker processes of a fleet: whatever happens to one, the others go on."""

import contextlib
import os
import random
import signal
import threading
import time

import pytest
from idlewise.fleet import Processes
from idlewise.fleet._processes import TRIES


def double(number):
    return 2 * number


def dies(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fails(number):
    if number == 0:
        raise FileNotFoundError(2, "nowhere")
    time.sleep(60)


def odd(number):
    return lambda: number


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_each_task_is_done_once_and_the_workers_stay():
    processes = Processes(2)
    for _ in range(2):
        assert sorted(processes.run(double, range(50))) == [2 * number for number in range(50)]
        workers = {worker._process.pid for worker in processes._idle}
        assert len(workers) == 2
    processes.close()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


def test_a_task_that_ends_each_worker_is_lost_alone():
    processes = Processes(2)
    found = sorted(processes.run(dies, range(6), lost=lambda number, why: -number if "4 times" in why and "SIGKILL" in why else 99))
    processes.close()
    assert found == [-3, 0, 1, 2, 4, 5]


def test_one_that_is_killed_at_any_moment_holds_nobody_up(monkeypatch):
    import idlewise.fleet._processes as module

    pick = random.Random(0)
    started = []

    class Worker(module._Worker):
        def __init__(self):
            super().__init__()
            started.append(self._process.pid)
            if len(started) == 2:
                killer = threading.Timer(pick.uniform(0, 0.2), kill, (self._process.pid,))
                killer.daemon = True
                killer.start()

    monkeypatch.setattr(module, "_Worker", Worker)
    for turn in range(20):
        started.clear()
        processes = Processes(2)
        assert sorted(processes.run(double, [1, 2])) == [2, 4], f"seed 0, turn {turn}"
        processes.close()


def test_a_task_that_always_ends_its_worker_is_told():
    with pytest.raises(RuntimeError, match=f"{TRIES} times of the same task: killed by SIGKILL"):
        list(Processes(2).run(dies, range(6)))


def test_an_error_is_its_own_and_ends_the_others():
    begun = time.monotonic()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(Processes(3).run(fails, range(3)))
    assert time.monotonic() - begun < 30


def test_what_cannot_be_sent_is_told():
    with pytest.raises(RuntimeError, match="cannot be sent"):
        list(Processes(1).run(odd, [1]))
