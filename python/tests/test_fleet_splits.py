"""Large files in slices, and files of an object store: the same numbers as of one pass over everything."""

import gzip
import json
import os
import random

import pytest

import idlewise as iw
from idlewise import _native, fleet
from idlewise.fleet import _splits, _steps
from test_fleet_folder import Here

GOAL = {"mean_slowdown": "2ms", "max_slowdown": "60ms"}


class Tells(Here):
    """Says how many tasks it was given at a time."""

    def __init__(self):
        self.tasks = []

    def run(self, task, of):
        self.tasks.append(len(of))
        return super().run(task, of)


def rows(seed, count=6000, late=0, begin=128166372000000000):
    """Lines of MSR in the order in which requests end: each may be up to ``late`` lines behind its place."""
    pick, at = random.Random(seed), begin
    lines = []
    for k in range(count):
        at += pick.choice([0, 20_000, 500_000]) + (k % 50 == 0) * 30_000_000
        lines.append((k + pick.randint(0, late), f"{at},host{pick.randrange(4)},0,Read,{k * 4096},4096,{40_000 + k % 7 * 9_000}\n"))
    return "".join(line for _, line in sorted(lines, key=lambda line: line[0]))


@pytest.fixture
def small(monkeypatch):
    """Slices of a few hundred lines."""
    for name, size in [("SLICE", 40_000), ("MARGIN", 8_000), ("LOOK", 2_000)]:
        monkeypatch.setattr(_splits, name, size)


def expected(paths):
    idle = iw.scan(paths).idle()
    plans = {row["volume"]: row for row in iw.tune_each(idle, any_moment=True, **GOAL).rows()}
    assert all(row.pop("plan") is None or not row["error"] for row in plans.values())
    return [{**row, **plans[row["volume"]]} for row in sorted(idle.by_volume().rows(), key=lambda row: row["volume"])]


def test_a_file_of_holes_is_told(tmp_path):
    path, size, slice_ = tmp_path / "t.csv", 1 << 40, 256 << 20
    with path.open("wb") as file:
        file.truncate(size)
        for at in [0, -(-size // -(-size // slice_))]:
            file.seek(at)
            file.write(b"".join(b"%d,a,0,Read,0,4096,20\n" % (at + 1000 * k) for k in range(4000)))
    assert fleet._splits.cut(str(path), {}) == []
    found = fleet.analyze(path, plans=False, workers=1, skip_bad_files=True)
    assert found.rows == [] and len(found.errors[str(path)]) < 300


@pytest.mark.parametrize("seed", range(8))
def test_slices_give_the_numbers_of_one_pass(tmp_path, small, seed):
    path = tmp_path / "t.csv"
    path.write_text(rows(seed, late=seed * 10))
    engine = Tells()
    assert fleet.analyze(path, engine=engine, **GOAL).rows == expected(path), f"seed {seed}"
    assert engine.tasks == [len(range(40_000, path.stat().st_size - 16_000, 40_000)) + 1, 64]


def test_requests_without_a_response_wait_for_those_in_the_slice_before(tmp_path, small):
    path = tmp_path / "t.csv"
    pick, at, lines = random.Random(5), 1_000_000, []
    for k in range(6000):
        at += pick.choice([0, 200, 5_000]) + (k % 50 == 0) * 300_000
        lines.append(f"{pick.randrange(3)},R,{k * 4096},{1 << pick.randrange(12, 20)},{at}\n")
    path.write_text("".join(lines))
    assert iw.scan(path).provenance["format"] == "alibaba"
    engine = Tells()
    assert fleet.analyze(path, engine=engine, **GOAL).rows == expected(path)
    assert engine.tasks[0] > 2


def test_requests_of_one_time_are_not_cut(tmp_path, small):
    path = tmp_path / "t.csv"
    path.write_text("".join(f"128166372000000000,host{k % 2},0,Read,{k * 4096},4096,40000\n" for k in range(3000)) + rows(1, begin=128166373000000000))
    engine = Tells()
    assert fleet.analyze(path, engine=engine, **GOAL).rows == expected(path)
    assert engine.tasks[0] > 2 and len(engine.tasks) == 2


def test_what_is_far_out_of_order_is_read_as_a_whole(tmp_path, small):
    path = tmp_path / "t.csv"
    lines = rows(3).splitlines(keepends=True)
    lines.append(lines.pop(100))
    path.write_text("".join(lines))
    engine = Tells()
    assert fleet.analyze(path, engine=engine, **GOAL).rows == expected(path)
    # One more, of all of it.
    assert engine.tasks[0] > 2 and engine.tasks[1:] == [1, 64]


def test_a_slice_that_was_done_is_not_read_again(tmp_path, small):
    path, out = tmp_path / "t.csv", tmp_path / "out"
    path.write_text(rows(4))
    first = fleet.analyze(path, out=out, engine=Here(), **GOAL).rows
    done = sorted(out.glob("parts/*/done.json"))
    times = {one: one.stat().st_mtime_ns for one in done}
    done[1].unlink()
    assert fleet.analyze(path, out=out, engine=Here(), **GOAL).rows == first
    assert [one for one in done if one.stat().st_mtime_ns != times[one]] == [done[1]]


def test_a_bad_record_is_told_with_its_place(tmp_path, small):
    path, good = tmp_path / "t.csv", tmp_path / "good.csv"
    lines = rows(5).splitlines(keepends=True)
    lines[4000] = "nonsense\n"
    path.write_text("".join(lines))
    good.write_text(rows(6, begin=128266372000000000))
    with pytest.raises(iw.IdlewiseError, match=r"t.csv from byte \d+ on: line \d+, column 1"):
        fleet.analyze([path, good], engine=Here(), **GOAL)
    found = fleet.analyze([path, good], engine=Here(), skip_bad_files=True, **GOAL)
    assert found.rows == expected(good) and list(found.errors) == [str(path)]
    without = fleet.analyze([path, good], engine=Here(), skip_bad=True, **GOAL)
    assert sum(row["requests"] for row in without.rows) == 11_999


def test_compressed_files_and_other_layouts_are_read_as_a_whole(tmp_path, small):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(rows(6).encode(), compresslevel=0))
    engine = Tells()
    assert fleet.analyze(path, engine=engine, **GOAL).rows == expected(path)
    plain = tmp_path / "t.csv"
    plain.write_text("".join(f"{k * 1000},{k * 4096},4096,R\n" for k in range(9000)))
    layout = "time=1:us,offset=2:bytes,length=3:bytes,op=4:R/W"
    assert fleet.analyze(plain, engine=engine, columns=layout, **GOAL).rows[0]["requests"] == 9000
    assert engine.tasks == [1, 64, 1, 64]


def test_an_object_store_gives_the_same(store, tmp_path, small):
    files, options = store
    local = [tmp_path / "0.csv", tmp_path / "1.csv.gz"]
    local[0].write_text(rows(7, late=20))
    local[1].write_bytes(gzip.compress(rows(8, begin=128266372000000000).encode()))
    for path in local:
        files.put(str(path), f"traces/fleet/{path.name}")
    out = tmp_path / "out"
    ask = {"out": out, "workers": 2, "storage_options": options, **GOAL}
    whole = expected(local)
    for urls in ["s3://traces/fleet/*", "s3://traces/fleet/", ["s3://traces/fleet/0.csv", "s3://traces/fleet/1.csv.gz"]]:
        assert fleet.analyze(urls, **ask).rows == whole
    assert iw.scan("s3://traces/fleet/*.csv", storage_options=options).requests == 6000
    done = {path: path.stat().st_mtime_ns for path in out.glob("parts/*/done.json")}
    assert len(done) > 3 and {json.loads(path.read_text())["path"] for path in done} == {
        "s3://traces/fleet/0.csv",
        "s3://traces/fleet/1.csv.gz",
    }
    # What was done is not read again, and what has changed is. No secret lies there.
    local[1].write_bytes(gzip.compress(rows(9, begin=128266372000000000).encode()))
    files.put(str(local[1]), "traces/fleet/1.csv.gz")
    assert fleet.analyze("s3://traces/fleet/*", **ask).rows == expected(local) != whole
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert not any(b"knows" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_what_is_wrong_in_a_store_is_told_by_its_url(store, tmp_path, small):
    files, options = store
    with pytest.raises(FileNotFoundError, match=r"no file fits 's3://traces/none/\*'"):
        fleet.analyze("s3://traces/none/*", storage_options=options, **GOAL)
    with files.open("traces/bad/bad.csv", "wb") as file:
        file.write(b"no trace\n")
    with pytest.raises(iw.IdlewiseError, match="^s3://traces/bad/bad.csv: "):
        fleet.analyze("s3://traces/bad/bad.csv", engine=Here(), storage_options=options, **GOAL)


def test_a_file_that_says_it_is_long_is_no_work(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(rows(7) * 20)
    # Some file systems end at 16 TiB.
    os.truncate(path, 1 << 43)
    looks = []
    first_arrival = _native.first_arrival
    monkeypatch.setattr(_native, "first_arrival", lambda lines: looks.append(1) or first_arrival(lines))
    assert fleet._splits.cut(str(path), {}) == [] and len(looks) < 3
    # So it is where the file system does not know what was never written.
    monkeypatch.setattr(fleet._splits, "_data_from", lambda file, begin: begin)
    assert fleet._splits.cut(str(path), {}) == [] and len(looks) < 40
    found = fleet.analyze(path, plans=False, engine=Here(), skip_bad_files=True)
    assert found.rows == [] and list(found.errors) == [str(path)]
    with pytest.raises(OSError, match="nothing but zeros"):
        _ = iw.scan(path, skip_bad=True).requests


def test_idle_times_that_take_too_much_memory_are_told(tmp_path, monkeypatch):
    large, good = tmp_path / "large.csv", tmp_path / "good.csv"
    large.write_text(rows(8))
    good.write_text("128166372000000000,one,0,Read,0,4096,40000\n")
    with pytest.raises(iw.IdlewiseError, match="its idle times take more than 4 KiB of memory"):
        iw.Partial().push(iw.scan(large), memory_limit="4KiB")
    whole = iw.Partial()
    whole.push(iw.scan(large))
    assert whole.memory > 4 * 4096
    monkeypatch.setattr(_steps, "_memory", lambda job: 4096)
    found = fleet.analyze([large, good], plans=False, engine=Here(), skip_bad_files=True)
    assert [row["volume"] for row in found.rows] == ["one_0"] and "more than 4 KiB" in found.errors[str(large)]
    # It was reduced while there was more memory.
    out = tmp_path / "out"
    monkeypatch.setattr(_steps, "_memory", lambda job: None)
    rows_of_all = fleet.analyze([large, good], plans=False, engine=Here(), out=out).rows
    monkeypatch.setattr(_steps, "_memory", lambda job: 4096)
    for done in (out / "rows").iterdir():
        done.unlink()
    told = {row["volume"]: row.get("error") for row in fleet.analyze([large, good], plans=False, engine=Here(), out=out).rows}
    assert told.keys() == {row["volume"] for row in rows_of_all}
    assert told["one_0"] is None and "take more memory than is free" in told["host0_0"]
    monkeypatch.setattr(_steps, "_memory", lambda job: None)
    assert fleet.analyze([large, good], plans=False, engine=Here(), out=out).rows == rows_of_all
