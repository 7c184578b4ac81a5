"""What a pattern such as ``*/*.csv`` finds. Other users may have put files and links where it looks. So nothing is found through their
links, and a file that is named like the pattern hides no other file."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterator


class Found(str):
    """A path or URL that a pattern has found: it is meant as it is, and is no pattern. Below ``folder``, which the caller has named, whoever
    may write there may have put anything: a pipe is not waited for, and a link of another user is not followed."""

    folder: str

    def __new__(cls, path: str, folder: str) -> Found:
        found = super().__new__(cls, path)
        found.folder = folder
        return found

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.folder


def find(pattern: str) -> list[Found]:
    """In order. A file that has the pattern for its name is found where nothing fits that."""
    names = pattern.split("/")
    first = next(at for at, name in enumerate(names) if glob.has_magic(name))
    # Links on the way to the first name that is a pattern are those of who has asked.
    folder = "/".join(names[:first]) + "/" if first else ""
    found = sorted(set(_fit(folder, names[first:])))
    if not found and os.path.lexists(pattern):
        found, folder = [pattern], os.path.dirname(pattern)
    return [Found(path, folder) for path in found]


def _fit(folder: str, names: list[str]) -> Iterator[str]:
    """What in a folder fits these names, one below the other. Folders may be deeper below each other than functions may."""
    todo = [(folder, names)]
    while todo:
        folder, (name, *rest) = todo.pop()
        if name == "**":
            todo.append((folder, rest or ["*"]))
            # No link at all: it may lead back.
            below = (one.name for one in _entries(folder) if not one.name.startswith(".") and one.is_dir(follow_symlinks=False))
            todo += [(f"{folder}{one}/", ["**", *rest]) for one in below]
        elif not name and rest:
            todo.append((folder, rest))
        elif not name:
            yield folder
        else:
            for path in _named(folder, name):
                if not os.path.isdir(path):
                    yield from [] if rest else [path]
                elif _is_passed(path):
                    yield from [] if rest else [path]
                    todo += [(path + "/", rest)] if rest else []


def _named(folder: str, name: str) -> list[str]:
    """What in a folder has this name, which may be a pattern."""
    if not glob.has_magic(name):
        return [folder + name] if os.path.lexists(folder + name) else []
    fits = (one.name for one in _entries(folder) if fnmatch.fnmatchcase(one.name, name))
    return [folder + one for one in fits if not one.startswith(".") or name.startswith(".")]


def _is_passed(path: str) -> bool:
    """Whether it is no link, or one that the caller or root has made; to a user also where only the folder's owner could have made it. So
    ``trace/folder.rs`` has it, which looks once more when a file is opened."""
    try:
        link, folder = os.lstat(path), os.stat(os.path.dirname(path) or ".")
    except OSError:
        return False
    if not stat.S_ISLNK(link.st_mode) or link.st_uid in (0, os.geteuid()):
        return True
    return os.geteuid() != 0 and link.st_uid == folder.st_uid and not folder.st_mode & 0o022


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            return list(entries)
    except OSError:
        return []
