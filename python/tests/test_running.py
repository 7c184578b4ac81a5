"""Files, errors, threads, Ctrl-C, and what stays behind."""

import io
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import fsspec
import polars as pl
import pytest

import idlewise as iw


def test_files_in_every_shape(made, idle, tmp_path):
    (tmp_path / "a.csv").write_bytes(made.read_bytes())
    shapes = [str(made), made, os.fsencode(made), [made], str(tmp_path / "*.csv"), tmp_path, io.BytesIO(made.read_bytes())]
    for shape in shapes:
        assert iw.scan(shape).idle() == idle, shape
    with open(made, "rb") as opened:
        trace = iw.scan(opened)
    assert trace.idle() == idle and trace.name == str(made)
    assert iw.scan(f"file://{made}").idle() == idle
    with fsspec.open("memory://two.csv", "wb") as file:
        file.write(made.read_bytes())
    assert iw.scan("memory://two.csv").idle() == idle


def test_several_files_are_one_trace(made, tmp_path):
    lines = made.read_text().splitlines(keepends=True)
    (tmp_path / "1.csv").write_text("".join(lines[:1000]))
    (tmp_path / "2.csv").write_text("".join(lines[1000:]))
    trace = iw.scan([tmp_path / "1.csv", tmp_path / "2.csv"])
    assert trace.idle() == iw.scan(made).idle()
    assert trace.name.endswith("1.csv and 1 more")
    assert set(iw.scan(tmp_path, by_file=True).volumes) == {"1:host_0", "1:host_1", "2:host_0", "2:host_1"}


def test_errors_are_of_the_kind_that_is_expected(made, tmp_path):
    for missing in ["no-such", "no-such-*", pathlib.Path("no-such")]:
        with pytest.raises(FileNotFoundError, match="no-such"):
            iw.scan(missing).idle()
    try:
        iw.scan("no-such").idle()
    except FileNotFoundError as error:
        assert error.filename == "no-such"
    lines = made.read_text().splitlines()
    lines[41] = lines[41].replace("host", "host,x")
    damaged = tmp_path / "damaged.csv"
    damaged.write_text("\n".join(lines))
    with pytest.raises(iw.IdlewiseError) as caught:
        iw.scan(damaged).idle()
    assert (caught.value.file, caught.value.line) == (str(damaged), 42) and caught.value.column > 0
    assert "skip_bad=True" in str(caught.value) and isinstance(caught.value, ValueError)
    assert iw.scan(damaged, skip_bad=True).provenance["bad_records"] == 1
    (tmp_path / "text").write_text("nothing of the kind\n")
    for what, why in [(tmp_path / "text", "not a trace"), ([], "nothing to read")]:
        with pytest.raises(iw.IdlewiseError, match=why):
            iw.scan(what).idle()
    with pytest.raises(iw.IdlewiseError, match="no volume 'x'"):
        iw.scan(made, volumes=["x"]).idle()
    with pytest.raises(TypeError, match="not int"):
        iw.scan(7)
    with pytest.raises(KeyError):
        iw.scan(made).idle()["x"]


def test_times_and_sizes(idle):
    def mean(given):
        return iw.simulate(idle, "waiting", idle_wait=given, request_size=262_144).to_dict()

    assert mean("30ms") == mean(30_000_000) == mean(timedelta(milliseconds=30))
    for wrong, error in [(True, TypeError), (0.5, TypeError), (-1, ValueError), (timedelta(-1), ValueError), ("x", ValueError)]:
        with pytest.raises(error):
            mean(wrong)


def test_what_is_kept_can_be_sent(idle):
    plan = iw.tune(idle, mean_slowdown="500us", max_slowdown="20ms")
    assert pickle.loads(pickle.dumps(plan)) == plan
    disk = iw.Disk.preset("nvme")
    assert pickle.loads(pickle.dumps(disk)) == disk == iw.Disk.parse(disk.to_toml())
    assert [name for name, _ in iw.Disk.presets()].count("nvme") == 1


def test_progress_is_told_and_what_it_raises_stops(idle):
    told = []
    iw.compare(idle, progress=told.append)
    assert told[-1] == 1.0 and told == sorted(told)
    trace = iw.synth("sigmetrics2009-t3").idle()

    def no(_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        iw.tune(trace, mean_slowdown="1ms", max_slowdown="50ms", any_moment=True, progress=no)


def test_a_bar(idle, capsys):
    iw.compare(idle, ["waiting"], progress=iw.progress_bar("comparing"))
    assert "comparing" in (shown := capsys.readouterr().err) and "100%" in shown


def test_eight_at_once(made, idle):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: iw.scan(made).idle().profile(), range(32)))
    assert all(one == idle.profile() for one in found)


def test_others_run_meanwhile():
    trace = iw.synth("sigmetrics2009-t2")
    ticks, done = 0, threading.Event()

    def work():
        trace.idle().profile()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.005):
        ticks += 1
    thread.join()
    assert ticks > 5


@pytest.mark.parametrize("what", ["tune", "own"])
def test_ctrl_c_stops(what):
    script = """
import idlewise as iw, sys, time
idle = iw.synth("sigmetrics2009-t2", requests=400_000).idle()
class Slow(iw.Policy):
    def decide(self, elapsed_ns):
        time.sleep(0.001)
        return iw.Issue("64KiB")
print("ready", flush=True)
try:
    # However fast it is.
    while sys.argv[1] == "tune":
        iw.tune(idle, mean_slowdown="1ms", max_slowdown="50ms", any_moment=True)
    iw.simulate(idle, Slow)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", script, what], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert child.communicate(timeout=30)[0] == "stopped\n"
    assert child.returncode == 0 and time.monotonic() - began < 5


@pytest.mark.parametrize("pause", [0.0, 3.0])
def test_no_policy_outlives_the_interpreter(pause):
    script = """
import idlewise as iw, sys, threading, time
idle = iw.synth(idle_mean="50ms", requests=100_000).idle()
class Slow(iw.Policy):
    def decide(self, elapsed_ns):
        time.sleep(float(sys.argv[1]))
        return iw.Issue("64KiB")
def again():
    while True:
        iw.simulate(idle, Slow)
threading.Thread(target=again, daemon=True).start()
time.sleep(0.3)
print("done", flush=True)
"""
    for _ in range(1 if pause else 6):
        done = subprocess.run([sys.executable, "-c", script, str(pause)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_fork_is_told_what_to_do(idle):
    script = """
import idlewise as iw, os
idle = iw.synth(idle_mean="50ms", requests=1000).idle()
if os.fork() == 0:
    try:
        iw.compare(idle)
    except RuntimeError as error:
        print("spawn" in str(error), flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stdout == "True\n", done.stderr


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_nothing_stays_behind(made):
    def rounds(count):
        for _ in range(count):
            trace = iw.scan(made)
            idle = trace.idle()
            pl.DataFrame(trace)
            pl.DataFrame(idle.by_volume())
            part = iw.Partial()
            part.push(trace)
            part.idle()

    rounds(100)
    before = resident()
    rounds(400)
    assert resident() - before < 24 << 20


def test_the_command_is_there(made, idle):
    module = [sys.executable, "-m", "idlewise"]
    done = subprocess.run([*module, "idle", made, "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and f'"idle_intervals": {idle.intervals}' in done.stdout
    assert '"idlewise",\n      "idle"' in done.stdout
    assert subprocess.run([*module, "idle"], capture_output=True).returncode == 64
    assert subprocess.run([*module, "idle", "no-such"], capture_output=True).returncode == 1


def test_pages(idle, tmp_path):
    page = idle.report(tmp_path / "idle.html")
    assert (tmp_path / "idle.html").read_text() == page and "Idle times of two" in page
    shown = idle._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "<svg" not in shown and "&lt;svg" in shown
