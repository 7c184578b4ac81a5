"""Fleets: the same numbers by any engine, whatever happens to workers and files."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import tomllib
import types

import polars as pl
import pyarrow as pa
import pytest

import idlewise as iw
from idlewise import fleet

GOAL = {"mean_slowdown": "2ms", "max_slowdown": "60ms"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A trace of five volumes, cut by time into six files with all of them; one volume has too few requests for a plan."""
    folder = tmp_path_factory.mktemp("fleet")
    rows, at = [], 128166372000000000
    for k in range(12_000):
        at += (k * k % 97) * 20_000 + (k % 50 == 0) * 30_000_000
        host = "lonely" if k == 7000 else f"host{k * 7 % 4}"
        rows.append(f"{at},{host},0,{'Read' if k % 4 else 'Write'},{k * 4096},4096,{40_000 + k % 7 * 9_000}")
    paths = []
    for number in range(6):
        path = folder / f"{number}.csv"
        path.write_text("\n".join(rows[number * 2000 : (number + 1) * 2000]) + "\n")
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def expected(files):
    """One pass over everything."""
    idle = iw.scan(files).idle()
    plans = {row["volume"]: row for row in iw.tune_each(idle, any_moment=True, **GOAL).rows()}
    assert all(row.pop("plan") is None or not row["error"] for row in plans.values())
    return [{**row, **plans[row["volume"]]} for row in sorted(idle.by_volume().rows(), key=lambda row: row["volume"])]


def test_any_machine_gives_the_numbers_of_one_pass(files, expected, tmp_path):
    shares = []
    found = fleet.analyze([str(files[0].parent / "*.csv")], out=tmp_path, workers=2, progress=shares.append, **GOAL)
    assert found.rows == expected and found.errors == {}
    assert {row["volume"] for row in found.rows if row["error"]} == {"lonely_0"}
    assert shares[-1] == 1.0 and shares == sorted(shares)
    found.write_parquet(tmp_path / "fleet.parquet")
    assert pl.read_parquet(tmp_path / "fleet.parquet")["requests"].sum() == 12_000
    assert pl.DataFrame(found.to_dict()).height == 5

    # It goes on with what is there: nothing is read again, for another goal neither.
    told = {path: path.stat().st_mtime_ns for path in tmp_path.glob("parts/*/*")}
    assert fleet.analyze(files, out=tmp_path, workers=2, **GOAL).rows == expected
    gentler = fleet.analyze(files, out=tmp_path, workers=2, mean_slowdown="500us", max_slowdown="60ms")
    assert gentler.rows[0]["mean_slowdown_s"] <= 0.0005 < expected[0]["mean_slowdown_s"]
    alone = fleet.analyze(files, out=tmp_path, workers=2, plans=False)
    by_volume = sorted(iw.scan(files).idle().by_volume().rows(), key=lambda row: row["volume"])
    assert alone.rows == [{**row, "error": None} for row in by_volume]
    assert told == {path: path.stat().st_mtime_ns for path in tmp_path.glob("parts/*/*")}
    with pytest.raises(iw.IdlewiseError, match="a goal is for plans"):
        fleet.analyze(files, plans=False, **GOAL)
    with pytest.raises(iw.IdlewiseError, match="plans"):
        alone.report()


def test_dask_gives_the_same(files, expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            assert fleet.analyze(files, out=tmp_path, engine=fleet.Dask(client), **GOAL).rows == expected


ON_THIS_MACHINE = """
import os, sys, urllib.request
from idlewise import fleet
if __name__ == "__main__":
    engine = getattr(fleet, sys.argv[1])()
    assert list(engine.run(len, ["abc"])) == [3]
    if sys.argv[1] == "Spark":
        # Of a process of its own, which asks who it is that speaks to it.
        assert engine._session.conf.get("spark.authenticate") == "true"
        sys.exit(engine.close())
    ours = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/self/net/{table}").read().splitlines()[1:]:
            _, local, _, state, *_, = line.split()
            if state == "0A" and f"socket:[{line.split()[9]}]" in ours:
                print(local)
                port = int(local.split(":")[1], 16)
                for path in ("/", "/status", "/health", "/metrics", "/json/counts.json", "/info/main/workers.html"):
                    try:
                        print("page", urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).url)
                    except urllib.error.HTTPError as error:
                        assert error.code == 404, error
    engine.close()
"""


@pytest.mark.parametrize("engine, needs", [("Dask", "distributed"), ("Spark", "py4j")])
def test_an_engine_of_this_machine_serves_nobody_and_writes_nowhere_else(engine, needs, tmp_path):
    pytest.importorskip(needs)
    # What others have laid where Dask would work.
    precious, scratch = tmp_path / "precious", tmp_path / "dask-scratch-space"
    precious.write_text("kept")
    scratch.mkdir()
    for name in ("global.lock", "purge.lock"):
        (scratch / name).symlink_to(precious)
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(pathlib.Path(iw.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", ON_THIS_MACHINE, engine], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Its page servers, without a page but the list of them.
    assert {local.split(":")[0] for local in done.stdout.split()} <= {"0100007F"}, done.stdout
    assert precious.read_text() == "kept" and sorted(path.name for path in tmp_path.iterdir()) == ["dask-scratch-space", "precious"]
    assert sorted(path.name for path in scratch.iterdir()) == ["global.lock", "purge.lock"]


def processes():
    """All there are: their numbers, those of their parents, and their command lines."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.read_text().split(" ", 1)
            text = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        yield int(number), int(rest.rsplit(")", 1)[1].split()[1]), text


def children():
    """Workers of this process."""
    return [number for number, parent, text in processes() if parent == os.getpid() and b"spawn_main" in text]


@pytest.mark.parametrize("seed", range(int(os.environ.get("IDLEWISE_KILLS", "2"))))
def test_workers_that_are_killed_change_nothing(files, expected, tmp_path, seed):
    pick = random.Random(seed)
    # A fast machine is done before the first is killed: then the next is killed sooner.
    for latest in (0.4, 0.1, 0.02, 0):
        killed = []
        over = threading.Event()
        killer = threading.Thread(target=kill, args=(pick, latest, over, killed))
        killer.start()
        try:
            assert fleet.analyze(files, out=tmp_path / str(latest), workers=2, **GOAL).rows == expected, f"seed {seed}"
        finally:
            over.set()
            killer.join()
        if killed:
            return
    pytest.fail(f"no worker was killed: seed {seed}")


def kill(pick, latest, over, killed):
    wait = pick.uniform(0, latest)
    while not over.is_set() and len(killed) < 2:
        workers = list(children())
        if workers and wait > 0:
            over.wait(wait)
            wait = 0
            continue
        for worker in pick.sample(workers, min(1, len(workers))):
            try:
                os.kill(worker, signal.SIGKILL)
            except ProcessLookupError:
                # It has ended meanwhile.
                continue
            killed.append(worker)
            wait = pick.uniform(0.1, 0.5)
        time.sleep(0.005)


def test_a_bad_file_is_told(files, expected, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("128166372000000000,host9,0,Read,0,4096,40000\nnonsense\n")
    with pytest.raises(iw.IdlewiseError, match="bad.csv"):
        fleet.analyze([*files, bad], workers=1, **GOAL)
    found = fleet.analyze([*files, bad], workers=1, skip_bad_files=True, **GOAL)
    assert found.rows == expected and list(found.errors) == [str(bad)]


def test_files_of_the_same_time_are_told_for_the_volume(files, tmp_path):
    again = tmp_path / "again.csv"
    again.write_text("".join(line for line in files[2].open() if ",host1," in line))
    found = fleet.analyze([*files, again], workers=1, **GOAL)
    wrong = {row["volume"]: row["error"] for row in found.rows if row["error"]}
    assert "overlap" in wrong["host1_0"] and set(wrong) == {"host1_0", "lonely_0"}


def test_what_cannot_be_asked_is_an_error():
    with pytest.raises(FileNotFoundError, match="no file fits"):
        fleet.analyze("/nowhere/*.csv", **GOAL)
    with pytest.raises(ValueError, match="no engine is called 'ray'"):
        fleet.analyze(__file__, engine="ray", **GOAL)


def test_no_name_of_a_file_reaches_the_terminal_raw(tmp_path):
    (tmp_path / "a\x1b[2J\u202e.csv").write_text("no trace\n")
    with pytest.raises(iw.IdlewiseError) as told:
        fleet.analyze(str(tmp_path / "*"), plans=False)
    assert "\\u{1b}[2J\\u{202e}.csv" in str(told.value) and "\x1b" not in str(told.value) and "\u202e" not in str(told.value)


def test_a_goal_that_makes_no_sense_is_one_error(files):
    with pytest.raises(iw.IdlewiseError, match="mean_slowdown or finish_within says what to tune for"):
        fleet.analyze(files, workers=1)
    with pytest.raises(TypeError, match="no keyword 'mean_slowdwn'"):
        fleet.analyze(files, workers=1, mean_slowdwn="1ms")


def test_a_fleet_is_a_table(files):
    found = fleet.analyze(files, workers=1, **GOAL)
    frame = pl.DataFrame(found)
    assert frame.rows(named=True) == found.rows and len(found) == len(found.rows)
    assert found["volume"] == frame["volume"].to_list() and pa.table(found).to_pylist() == found.rows
    alone = pl.DataFrame(fleet.analyze(files, workers=1, plans=False))
    assert alone["error"].to_list() == [None] * len(alone)
    # One table below the other, whatever they are of.
    none = pl.DataFrame(fleet.analyze(files, workers=1, mean_slowdown="500us", max_slowdown="1us"))
    assert none.schema == frame.schema and len(pl.concat([frame, none])) == 2 * len(frame)


def test_files_whose_names_are_no_text_are_read(files, tmp_path):
    folder = os.fsencode(tmp_path)
    for number, path in enumerate(files):
        os.symlink(path, os.path.join(folder, b"a\xff%d.csv" % number))
    assert iw.scan(os.path.join(folder, b"a\xff0.csv")).requests == 2_000
    given = [os.path.join(folder, b"a\xff%d.csv" % number) for number in range(len(files))]
    found = fleet.analyze([os.fsdecode(path) for path in given], out=tmp_path / "out", workers=2, **GOAL)
    assert sum(row["requests"] for row in found.rows) == 12_000
    found.write_parquet(tmp_path / "fleet.parquet")
    (tmp_path / "damaged.csv").write_text("no trace\n")
    os.rename(tmp_path / "damaged.csv", os.path.join(folder, b"a\xff9.csv"))
    more = fleet.analyze([os.fsdecode(folder) + "/a*.csv"], out=tmp_path / "more", workers=2, skip_bad_files=True, **GOAL)
    assert len(more.errors) == 1 and sum(row["requests"] for row in more.rows) == 12_000
    # They are text for whoever reads the table.
    assert json.loads((tmp_path / "more" / "fleet.json").read_bytes().decode())["errors"] == more.errors
    assert [path.isprintable() and path.isascii() for path in more.errors] == [False] and "\udcff" not in str(more.errors)


def test_what_spark_starts_takes_no_module_of_the_present_folder(monkeypatch):
    """Its session is a stand-in: the one of a Java machine is for those who have one."""
    told = {}

    class Builder:
        def config(self, name, value):
            told[name] = value
            return self

        appName = master = lambda self, name: self

        def getOrCreate(self):
            told["beside"] = os.environ.get("PYTHONSAFEPATH")
            return self

    session = types.SimpleNamespace(builder=Builder(), getActiveSession=lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", types.SimpleNamespace(SparkSession=session))
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(sql=sys.modules["pyspark.sql"]))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    fleet.Spark()._folder.cleanup()
    assert told["beside"] == told["spark.executorEnv.PYTHONSAFEPATH"] == "1" and "PYTHONSAFEPATH" not in os.environ


@pytest.fixture(params=["spark", "sail"])
def session(request, monkeypatch):
    """A session of Spark on this machine, which needs Java, or of Sail by Spark's protocol."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    if request.param == "spark":
        # The client alone has no Spark.
        pytest.importorskip("py4j")
        yield None
        return
    server = pytest.importorskip("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    host, port = server.listening_address
    builder = pytest.importorskip("pyspark.sql").SparkSession.builder
    session = builder.remote(f"sc://{host}:{port}").getOrCreate()
    yield session
    # Else it asks for the server at the end of the process, again and again for minutes.
    session.stop()
    server.stop()


def test_spark_gives_the_same(files, expected, tmp_path, session):
    engine = fleet.Spark(session)
    assert fleet.analyze(files, out=tmp_path, engine=engine, **GOAL).rows == expected
    bad = tmp_path / "bad.csv"
    bad.write_text("128166372000000000,host9,0,Read,0,4096,40000\nnonsense\n")
    with pytest.raises(iw.IdlewiseError, match="bad.csv"):
        fleet.analyze([*files, bad], engine=engine, **GOAL)


def test_the_page_says_what_is_in_time(files, tmp_path):
    found = fleet.analyze(files, workers=1, capacity="1GB", **GOAL)
    page = found.report(tmp_path / "fleet.html", within="1d")
    assert (tmp_path / "fleet.html").read_text() == page and "4 (80.0 %) of 5 can be verified within 24.0 h" in page
    assert "lonely_0" in page and "<iframe" in found._repr_html_()


def test_the_command_makes_the_same_table(files, expected, command, tmp_path):
    goal = ["--mean-slowdown", GOAL["mean_slowdown"], "--max-slowdown", GOAL["max_slowdown"]]
    out = tmp_path / "out"
    found = command("fleet", files[0].parent / "*.csv", "--out", out, "--workers", 2, *goal)
    pairs = zip(found["rows"], expected, strict=True)
    differ = [(name, row.get(name), other[name]) for row, other in pairs for name in other if row.get(name) != other[name]]
    assert differ == [] and found["errors"] == {}
    assert [row["volume"] for row in found["rows"]] == [row["volume"] for row in expected]
    assert pl.read_parquet(out / "fleet.parquet")["volume"].to_list() == [row["volume"] for row in expected]
    assert "of 5 can be verified within 14" in (out / "fleet.html").read_text()


def test_who_ends_the_command_ends_its_work(files, command, tmp_path):
    def until(what, holds):
        end = time.monotonic() + 60
        while not (found := holds()):
            assert time.monotonic() < end, what
            time.sleep(0.01)
        return found

    def work(of):
        parents = {number: parent for number, parent, _ in processes()}
        workers = {number: parents[number] for number, _, text in processes() if b"spawn_main" in text and number in parents}
        return {number: python for number, python in workers.items() if parents.get(python) == of}

    goal = ["--mean-slowdown", GOAL["mean_slowdown"], "--max-slowdown", GOAL["max_slowdown"]]
    with command.begin("fleet", *files, "--out", tmp_path / "out", "--workers", 1, *goal) as running:
        begun = until("begun", lambda: work(running.pid))
        for worker in begun:
            # So it is not over before.
            os.kill(worker, signal.SIGSTOP)
        running.terminate()
        assert running.wait() == -signal.SIGTERM
    until("ended", lambda: not {number for number, _, _ in processes()}.intersection({*begun, *begun.values()}))


def test_plans_go_back_to_the_machine(files, command, tmp_path):
    goal = ["--mean-slowdown", "2ms", "--max-slowdown", "60ms"]
    out, config = tmp_path / "out", tmp_path / "idlewise.toml"
    command("fleet", *files, "--out", out, "--capacity", "100GB", *goal)
    path = ["--host", "host", "--path", "/dev/disk/by-id/virtio-{volume}"]
    text = command.text("fleet", "plans", out, *path, *goal)
    sections = tomllib.loads(text)["disk"]
    assert [one["match"] for one in sections] == [f"/dev/disk/by-id/virtio-host{k}_0" for k in range(4)]
    slowest = max(row["full_pass_s"] for row in json.loads((out / "fleet.json").read_text())["rows"] if row["full_pass_s"])
    assert all(int(one["verify_every"].removesuffix("d")) >= 14 for one in sections) and slowest > 0
    # The service takes it; of these disks it says that they are not here.
    config.write_text(text)
    assert "line" not in command.text("check-config", "--config", config, exit=(0, 1, 2))
    assert "no plan" in command.text("fleet", "plans", out, "--path", "/dev/{volume}", *goal)


def test_what_a_pattern_finds_may_be_anybodys(files, tmp_path):
    """A pipe is not waited for, and of a link of somebody else nothing is read."""
    for number in (0, 1):
        (tmp_path / f"{number}.csv").write_bytes(files[number].read_bytes())
    os.mkfifo(tmp_path / "pipe.csv")
    both = iw.scan([tmp_path / "0.csv", tmp_path / "1.csv"]).requests
    told = iw.scan(f"{tmp_path}/*.csv")
    assert told.requests == both and "pipe.csv" in told.provenance["passed_over"]
    found = fleet.analyze(f"{tmp_path}/*.csv", plans=False, workers=1)
    assert sum(row["requests"] for row in found.rows) == both

    # What was a file when it was found, and is a pipe by now.
    later = fleet._splits.Found(str(tmp_path / "pipe.csv"), str(tmp_path))
    with pytest.raises(iw.IdlewiseError):
        fleet._splits.reduce_split(fleet._splits.Split(later, "key"), {}, iw.Partial().idle().disk, None)
    if os.geteuid() != 0:
        pytest.skip("a link of somebody else needs root")
    (tmp_path / "pipe.csv").unlink()
    (tmp_path / "link.csv").symlink_to(files[2])
    os.chown(tmp_path / "link.csv", 1234, 1234, follow_symlinks=False)
    assert iw.scan(f"{tmp_path}/*.csv").requests == both
    assert iw.scan([tmp_path / "link.csv"]).requests > 0
