"""What patterns find: as ``glob`` does, but nothing through what other users have laid there."""

import glob
import os
import subprocess
import sys
import pathlib

import pytest

import idlewise as iw
from idlewise import _patterns, fleet

LINE = "128166372000000000,{},0,Read,0,4096,40000\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Files in folders, and a link of one's own."""
    for name in ("a.csv", "b.csv", ".hidden.csv", "x[1].csv", "host1/a.csv", "host1/deep/c.csv", "host2/a.csv", ".h/a.csv"):
        path = tmp_path / "traces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE.format(name.replace("/", "-").replace(".", "-")))
    (tmp_path / "traces" / "host3").symlink_to(tmp_path / "traces" / "host1")
    monkeypatch.chdir(tmp_path / "traces")
    return tmp_path / "traces"


@pytest.mark.parametrize(
    "pattern", ["*.csv", "host*/*.csv", "host[12]/a.csv", "*/deep/c.csv", "ho*", "*/a.csv", "./*.csv", ".*.csv", "host1/./*.csv", "none*"]
)
def test_what_nobody_has_laid_there_is_found_as_ever(tree, pattern):
    for of in (pattern, f"{tree}/{pattern}"):
        assert [os.path.normpath(one) for one in _patterns.find(of)] == sorted(map(os.path.normpath, glob.glob(of)))


@pytest.mark.skipif(os.geteuid() != 0, reason="links of another user need root")
def test_a_link_that_is_called_like_the_pattern_is_not_followed(tree, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    (secret / "x.csv").write_text(LINE.format("secret"))
    for pattern, link in (("q*/x.csv", "q*"), ("[q]/x.csv", "[q]"), ("host1/q*/x.csv", "host1/q*")):
        os.symlink(secret, tree / link)
        os.lchown(tree / link, 65534, 65534)
        assert _patterns.find(str(tree / pattern)) == []
        with pytest.raises(FileNotFoundError):
            iw.scan(str(tree / pattern))
        os.unlink(tree / link)
        # One's own leads where it leads.
        os.symlink(secret, tree / link)
        assert _patterns.find(str(tree / pattern)) == [str(tree / link / "x.csv")]
        os.unlink(tree / link)


def test_folders_below_each_other_are_walked_without_links(tree):
    (tree / "host1" / "back").symlink_to(".")
    (tree / "host1" / "again").symlink_to(".")
    all_of_them = ["a.csv", "b.csv", "host1/a.csv", "host1/deep/c.csv", "host2/a.csv", "x[1].csv"]
    assert _patterns.find("**/*.csv") == all_of_them
    assert iw.scan(str(tree / "**/*.csv")).requests == len(all_of_them)


def test_who_is_named_like_the_pattern_hides_nobody(tree):
    os.mkfifo(tree / "*.csv")
    assert iw.scan("*.csv").requests == 3
    assert len(fleet.analyze(str(tree / "*.csv"), plans=False, workers=1).rows) == 3
    # Where nothing else fits, it is meant.
    assert _patterns.find("x[1].csv") == ["x[1].csv"] and iw.scan("x[1].csv").requests == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="links of somebody else need root")
def test_nothing_is_found_through_links_of_others(tree, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "s.csv").write_text(LINE.format("secret"))
    (tree / "host4").symlink_to(secret)
    os.chown(tree / "host4", 1234, 1234, follow_symlinks=False)
    for pattern in ("*/*.csv", "**/*.csv", "*/s.csv"):
        assert not [one for one in _patterns.find(str(tree / pattern)) if "host4" in one]
    for pattern in ("*/*.csv", "host*"):
        assert "secret_0" not in iw.scan(str(tree / pattern)).volumes
        assert "secret_0" not in [row["volume"] for row in fleet.analyze(str(tree / pattern), plans=False, workers=1, skip_bad_files=True).rows]
    # It is told.
    assert "host4" in iw.scan(str(tree / "host*")).provenance["passed_over"]


def test_workers_take_no_module_of_the_present_folder(tree, tmp_path):
    planted = tree / "multiprocessing.py"
    planted.write_text(f"open({str(tmp_path / 'taken')!r}, 'w').close()\nraise ImportError\n")
    script = tmp_path / "script.py"
    script.write_text("from idlewise import fleet\nif __name__ == '__main__':\n    print(len(fleet.analyze('a.csv', plans=False, workers=1).rows))\n")
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(iw.__file__).parents[1])}
    done = subprocess.run([sys.executable, script], cwd=tree, env=environment, capture_output=True, text=True)
    assert done.stdout == "1\n" and not (tmp_path / "taken").exists(), done.stderr


def test_what_was_found_is_no_pattern(tree):
    (tree / "host2" / "x1.csv").write_text(LINE.format("other"))
    (tree / "host2" / "x[1].csv").write_text(LINE.format("meant"))
    (tree / "host2" / "*.csv").write_text(LINE.format("star"))
    names = ["host2-a-csv_0", "meant_0", "other_0", "star_0"]
    assert sorted(iw.scan("host2/*.csv").volumes) == names
    for pattern in ("host2/*.csv", f"file://{tree}/host2/*.csv", f"local://{tree}/host2/*.csv"):
        assert [row["volume"] for row in fleet.analyze(pattern, plans=False, workers=1).rows] == names


def test_as_many_folders_below_each_other_as_there_may_be(tree):
    deep = os.open(tree, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    try:
        with pytest.warns(UserWarning, match="more than 64 deep below it were left out"):
            assert len(_patterns.find(str(tree / "**/*.csv"))) == 6
    finally:
        # Python's own way to remove folders is as deep as they are.
        subprocess.run(["rm", "-rf", tree / "d"], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="links of somebody else need root")
def test_what_lies_behind_a_link_by_the_time_it_is_read_is_not_read(tree, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "a.csv").write_text(LINE.format("secret"))
    plain, url = _patterns.find(str(tree / "host*/a.csv")), fleet._splits.find(f"file://{tree}/host*/a.csv", None)
    assert [*plain] == url and iw.scan(plain).requests == 3
    (tree / "host1").rename(tree / "before")
    (tree / "host1").symlink_to(secret)
    os.chown(tree / "host1", 1234, 1234, follow_symlinks=False)
    for paths in (plain, url):
        told = iw.scan(paths)
        assert told.volumes == ["host2-a-csv_0"] and "another user's link" in told.provenance["passed_over"]
    # Root's own link is gone through, before and after.
    os.chown(tree / "host1", 0, 0, follow_symlinks=False)
    assert "secret_0" in iw.scan(plain).volumes
    (tree / "root.csv").symlink_to("host1/../secret/a.csv")
    assert iw.scan(_patterns.find(str(tree / "roo*.csv"))).volumes == ["secret_0"]


def test_what_is_above_a_link_is_what_the_kernel_says(tree):
    (tree / "real" / "sub").mkdir(parents=True)
    (tree / "real" / "x.csv").write_text(LINE.format("real"))
    (tree / "link").symlink_to("real/sub")
    for pattern in ("link/../*.csv", "link/../x.csv"):
        assert [row["volume"] for row in fleet.analyze(pattern, plans=False, workers=1).rows] == ["real_0"]


def test_no_message_has_what_a_terminal_obeys(tree):
    name = "e\x1b]0;PWN\x07.csv"
    (tree / name).write_text("nonsense\n" * 9)
    with pytest.raises(iw.IdlewiseError) as told:
        _ = iw.scan("e*.csv").requests
    assert "\x1b" not in str(told.value) + repr(iw.scan("e*.csv")) and told.value.file == name
