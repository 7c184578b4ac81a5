"""What lies in a fleet's folder: taken again only where it is whole and of the same files, and written through nobody's links."""

import json
import os
import pathlib
import subprocess
import threading

import polars as pl
import pytest

import idlewise as iw
from idlewise import _native, fleet
from idlewise.fleet import _steps

GOAL = {"mean_slowdown": "2ms", "max_slowdown": "60ms"}
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
NOBODY = 65534


class Here:
    """Runs tasks in this process."""

    def run(self, task, of):
        return map(task, of)


def analyze(paths, out, **options):
    return fleet.analyze(paths, out=out, engine=Here(), **GOAL, **options)


def write(path, begin, host="host0", reads=True):
    rows, at = [], 128166372000000000 + begin * 10_000_000_000
    for k in range(2000):
        at += (k * k % 97) * 20_000 + (k % 50 == 0) * 30_000_000
        rows.append(f"{at},{host},0,{'Read' if reads or k % 2 else 'Wrte'},{k * 4096},4096,{40_000 + k % 7 * 9_000}")
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    paths = [folder / "0.csv", folder / "1.csv"]
    for number, path in enumerate(paths):
        write(path, number)
    return paths


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def parts(out):
    return sorted(path for path in out.glob("parts/*/*") if path.name != "done.json")


def harm(how, path):
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "flipped": data[:20] + bytes([data[20] ^ 1]) + data[21:]}[how])


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "flipped"])
@pytest.mark.parametrize("rows", ["rows", "no rows"])
def test_a_part_that_is_not_as_it_was_written_is_made_again(files, out, how, rows):
    expected = analyze(files, out).rows
    assert [row["requests"] for row in expected] == [4000] and len(parts(out)) == 2
    harm(how, parts(out)[0])
    if rows == "no rows":
        for path in out.glob("rows/*"):
            path.unlink()
    assert analyze(files, out).rows == expected
    whole = [path.read_bytes() for path in parts(out)]
    assert all(whole) and analyze(files, out).rows == expected and [path.read_bytes() for path in parts(out)] == whole


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"parts": 1}', "\0\0\0\0"])
@pytest.mark.parametrize("skip", [False, True])
def test_what_cannot_be_read_is_not_done(files, out, text, skip):
    expected = analyze(files, out).rows
    for path in [*out.glob("parts/*/done.json"), *out.glob("rows/*")]:
        path.write_text(text)
    found = analyze(files, out, skip_bad_files=skip)
    assert found.rows == expected and found.errors == {}
    assert all(json.loads(path.read_text()) for path in out.glob("parts/*/done.json"))


def test_a_part_that_goes_while_the_job_runs_is_an_error(files, out):
    class Loses(Here):
        def run(self, task, of):
            results = list(map(task, of))
            if out.exists() and parts(out):
                parts(out)[0].write_bytes(b"")
            return results

    with pytest.raises(iw.IdlewiseError, match="changed while the job ran; run it again"):
        fleet.analyze(files, out=out, engine=Loses(), **GOAL)
    assert [row["requests"] for row in analyze(files, out).rows] == [4000]


def test_a_file_that_changed_is_read_again_even_at_the_same_size_and_time(files, out):
    analyze(files, out)
    before = os.stat(files[1])
    write(files[1], 1, host="host9")
    os.utime(files[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(files[1]).st_size == before.st_size and os.stat(files[1]).st_mtime_ns == before.st_mtime_ns
    assert {row["volume"]: row["requests"] for row in analyze(files, out).rows} == {"host0_0": 2000, "host9_0": 2000}


def test_a_folder_is_read_again_where_one_of_its_files_changed(files, out):
    folder = files[0].parent
    assert [row["requests"] for row in analyze(folder, out).rows] == [4000]
    once = parts(out)
    assert [row["requests"] for row in analyze(folder, out).rows] == [4000] and parts(out) == once
    write(folder / "2.csv", 2)
    assert [row["requests"] for row in analyze(folder, out).rows] == [6000]
    with files[1].open("a") as file:
        file.write(f"{128166372000000000 + 100_000_000_000},host7,0,Read,0,4096,40000\n")
    assert sum(row["requests"] for row in analyze(folder, out).rows) == 6001


def test_another_version_reads_again(files, out, monkeypatch):
    rows = analyze(files, out).rows
    monkeypatch.setattr(_native, "__version__", "99.0")
    assert analyze(files, out).rows == rows and len(parts(out)) == 4
    assert len(list(out.glob("rows/*"))) == 2 * fleet._steps.GROUPS


@pytest.mark.parametrize("name", [".", "parts", "rows"])
def test_a_folder_that_others_may_write_to_is_refused(files, out, name):
    analyze(files, out)
    (out / name).chmod(0o777)
    with pytest.raises(PermissionError, match="others may write to this folder: .*chmod go-w"):
        analyze(files, out)
    (out / name).chmod(0o755)
    for one in out.glob("parts/*"):
        one.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        analyze(files, out)


@root
@pytest.mark.parametrize("name", [".", "parts", "rows"])
def test_a_folder_of_another_user_is_refused(files, out, name):
    analyze(files, out)
    os.chown(out / name, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="belongs to another user .number 65534.: .*a folder of your own"):
        analyze(files, out)


@root
def test_no_link_of_another_user_is_written_through(files, out, tmp_path):
    home, mine = tmp_path / "home", tmp_path / "mine"
    home.mkdir()
    mine.write_text("mine")
    os.chown(home, NOBODY, NOBODY)
    link = home / "result"
    link.symlink_to(mine)
    os.lchown(link, NOBODY, NOBODY)
    found = analyze(files, out)
    idle = iw.scan(files).idle()
    plan = iw.tune(idle, **GOAL)
    for save in [plan.save, idle.report, iw.Disk.preset("15k").save, iw.sample(iw.scan(files)).save, found.write_parquet]:
        with pytest.raises(PermissionError, match="is a link of another user"):
            save(link)
        assert mine.read_text() == "mine"
    (home / "out").symlink_to(tmp_path)
    os.lchown(home / "out", NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="another user"):
        analyze(files, home / "out")
    # Nothing is made behind it first.
    with pytest.raises(PermissionError, match="another user"):
        analyze(files, home / "out" / "deep" / "er")
    # Nor where a link of one's own leads through theirs.
    for leads in [home / "out", pathlib.Path("home/out"), pathlib.Path("home/../home/out/deep")]:
        own = tmp_path / "own"
        own.symlink_to(leads)
        with pytest.raises(PermissionError, match="another user"):
            analyze(files, own)
        own.unlink()
    assert not (tmp_path / "parts").exists() and not (tmp_path / "deep").exists()


@root
def test_a_link_that_another_user_puts_there_meanwhile_is_not_followed(files, out, tmp_path, monkeypatch):
    made, really = tmp_path / "made", os.mkdir

    def plant(path, *more, **named):
        if path == out.name:
            out.symlink_to(made)
            os.lchown(out, NOBODY, NOBODY)
        return really(path, *more, **named)

    monkeypatch.setattr(os, "mkdir", plant)
    with pytest.raises(PermissionError, match="is a link of another user"):
        analyze(files, out)
    assert out.is_symlink() and not made.exists()


def test_links_of_ones_own_lead_to_the_folder(files, out, tmp_path):
    rows = analyze(files, out).rows
    (tmp_path / "one").symlink_to(out.name if out.parent == tmp_path else out)
    (tmp_path / "two").symlink_to("../" + tmp_path.name + "/one")
    assert analyze(files, tmp_path / "two").rows == rows
    (tmp_path / "new").symlink_to("not/there/yet")
    assert analyze(files, tmp_path / "new").rows == rows and (tmp_path / "not/there/yet/parts").is_dir()
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        analyze(files, tmp_path / "round")


@root
def test_a_folder_below_one_of_another_user_is_refused(files, tmp_path):
    """They may put another one in its place while a trace is read, and links of theirs in that."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="belongs to another user .number 65534.: .*home'"):
        analyze(files, home / "mine" / "out")
    assert not list(home.iterdir())
    (home / "out").mkdir()
    mine = tmp_path / "mine"
    mine.symlink_to(home / "out")
    with pytest.raises(PermissionError, match="belongs to another user"):
        analyze(files, mine)
    # Where nobody may rename what is another's, as in /tmp, all may have folders.
    os.chown(home, 0, 0)
    home.chmod(0o1777)
    assert len(analyze(files, home / "out").rows) == 1
    home.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        analyze(files, home / "out")


@root
def test_a_link_that_is_put_in_the_place_of_a_folder_is_not_followed(files, out, tmp_path, monkeypatch):
    private = tmp_path / "private"
    private.mkdir()
    really = os.open

    def exchanged(path, flags, *more, **named):
        opened = really(path, flags, *more, **named)
        if path == out.name and not out.is_symlink():
            out.rename(tmp_path / "before")
            out.symlink_to(private)
            os.lchown(out, NOBODY, NOBODY)
        return opened

    monkeypatch.setattr(os, "open", exchanged)
    with pytest.raises(PermissionError, match="is a link of another user"):
        analyze(files, out)
    assert out.is_symlink() and not list(private.iterdir())


def test_a_pipe_among_files_is_not_waited_for(files, out, tmp_path):
    os.mkfifo(tmp_path / "traces" / "2.csv")
    assert len(analyze(str(tmp_path / "traces" / "*.csv"), out).rows) == 1


def test_what_is_written_takes_the_place_of_a_file_and_follows_ones_own_links(files, out, tmp_path):
    planted, mine = tmp_path / "planted", tmp_path / "mine"
    out.mkdir(mode=0o755)
    (out / f".fleet.json.{os.getpid()}").symlink_to(planted)
    found = analyze(files, out)
    assert not planted.exists() and json.loads((out / "fleet.json").read_text())["rows"] == found.rows
    plan = iw.tune(iw.scan(files).idle(), **GOAL)
    (tmp_path / "link").symlink_to(mine)
    plan.save(tmp_path / "link")
    assert iw.Plan.load(mine).request_size == plan.request_size
    found.write_parquet(tmp_path / "link")
    assert pl.read_parquet(mine)["requests"].to_list() == [4000]
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        plan.save(tmp_path / "nowhere/plan.toml")
    with pytest.raises(IsADirectoryError):
        plan.save(tmp_path)


@pytest.mark.parametrize("skip", [True, False])
def test_a_file_that_vanishes_ends_no_job_that_skips_bad_ones(files, out, skip):
    analyze(files, out)
    vanished = out.parent / "vanished.csv"
    job = _steps.Job(str(out), iw.Partial().idle().disk.to_toml(), {}, None, skip, 1)
    [split] = _steps.splits(job, [str(vanished)])
    if skip:
        assert _steps.reduce(job, split).error == "No such file or directory"
    else:
        with pytest.raises(FileNotFoundError, match="vanished.csv"):
            _steps.reduce(job, split)


@root
@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="it needs FUSE")
@pytest.mark.parametrize("at", ["out", "above"])
def test_what_another_user_has_mounted_keeps_nobody_waiting(files, tmp_path, at):
    place = tmp_path / at
    place.mkdir()
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other"
    subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "none", place], pass_fds=[fuse], check=True)
    # Whatever waits gets an error then.
    end = threading.Timer(20, os.close, [fuse])
    end.start()
    try:
        with pytest.raises(PermissionError, match="another user has mounted it"):
            analyze(files, str(place if at == "out" else place / "out"))
        assert end.is_alive()
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        if end.is_alive():
            end.cancel()
            os.close(fuse)
