"""What a pattern such as ``*/*.csv`` finds. Other users may have put files and links where it looks. So nothing is found through their
links, and a file that is named like the pattern hides no other file."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterator


class Found(str):
    """A path that a pattern has found. Whoever may write to its folder may have put anything there: a pipe is not waited for, and a link of
    another user is not followed."""


def find(pattern: str) -> list[Found]:
    """In order. A file that has the pattern for its name is found where nothing fits that."""
    names = pattern.split("/")
    first = next(at for at, name in enumerate(names) if glob.has_magic(name))
    # Links on the way to the first name that is a pattern are those of who has asked.
    found = sorted(set(_fit("/".join(names[:first]) + "/" if first else "", names[first:])))
    if not found and os.path.lexists(pattern):
        found = [pattern]
    return [Found(path) for path in found]


def _fit(folder: str, names: list[str]) -> Iterator[str]:
    """What in a folder fits these names, one below the other."""
    name, rest = names[0], names[1:]
    if name == "**":
        yield from _fit(folder, rest or ["*"])
        for entry in _entries(folder):
            # No link at all: it may lead back.
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                yield from _fit(folder + entry.name + "/", names)
    elif not name and rest:
        yield from _fit(folder, rest)
    elif not name:
        yield folder
    elif glob.has_magic(name):
        for entry in _entries(folder):
            if fnmatch.fnmatchcase(entry.name, name) and (not entry.name.startswith(".") or name.startswith(".")):
                yield from _below(folder + entry.name, rest)
    elif os.path.lexists(folder + name):
        yield from _below(folder + name, rest)


def _below(path: str, rest: list[str]) -> Iterator[str]:
    if not os.path.isdir(path):
        yield from [] if rest else [path]
    elif _is_passed(path):
        yield from _fit(path + "/", rest) if rest else [path]


def _is_passed(path: str) -> bool:
    """Whether it is no link, or one that the caller or root has made; to a user also where only the folder's owner could have made it. So
    ``trace/folder.rs`` has it for files."""
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
