"""What lies in a fleet's folder: written through nobody's links, and only where nobody else may write."""

import json
import os

import polars as pl
import pytest

import idlewise as iw
from idlewise import _native, fleet

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
    with pytest.raises(PermissionError, match="is a link of another user"):
        analyze(files, home / "out")
    assert not (tmp_path / "parts").exists()


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
