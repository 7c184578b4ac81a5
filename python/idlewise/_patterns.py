"""What a pattern such as ``*/*.csv`` finds. Other users may have put files and links where it looks. So nothing is found through their
links, and a file that is named like the pattern hides no other file."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterator

from . import _native


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
    found = sorted(set(_fit(folder, names[first:], folder or ".")))
    if not found and _state(pattern, folder or ".") is not None:
        found = [pattern]
    return [Found(path, folder) for path in found]


def _fit(folder: str, names: list[str], named: str) -> Iterator[str]:
    """What in a folder fits these names, one below the other. Folders may be deeper below each other than functions may. Who calls has
    ``named`` the first one."""
    todo = [(folder, names)]
    while todo:
        folder, (name, *rest) = todo.pop()
        if name == "**":
            todo.append((folder, rest or ["*"]))
            # No link at all: it may lead back.
            below = (one for one, is_folder in _entries(folder, named) if is_folder and not one.startswith("."))
            todo += [(f"{folder}{one}/", ["**", *rest]) for one in below]
        elif not name and rest:
            todo.append((folder, rest))
        elif not name:
            yield folder
        else:
            for path in _named(folder, name, named):
                if not rest:
                    yield path
                elif _is_folder(path, named):
                    todo.append((path + "/", rest))


def _named(folder: str, name: str, named: str) -> list[str]:
    """What in a folder has this name, which may be a pattern."""
    if not glob.has_magic(name):
        # A link of another user, which is told as one where it is read, is in the folder as well.
        is_there = _state(folder + name, named) or any(one == name for one, _ in _entries(folder, named))
        return [folder + name] if is_there else []
    fits = (one for one, _ in _entries(folder, named) if fnmatch.fnmatchcase(one, name))
    return [folder + one for one in fits if not one.startswith(".") or name.startswith(".")]


def _is_folder(path: str, named: str) -> bool:
    """Whether it is one, and not behind a link of another user: what is there may never answer."""
    state = _state(path, named)
    return state is not None and stat.S_ISDIR(state[0])


def _state(path: str, named: str) -> tuple[int, int, int, int, int] | None:
    """What is known of a path, if anything, and nothing behind a link of another user."""
    try:
        return _native.state_of_found(path, named)
    except OSError:
        return None


def _entries(folder: str, named: str) -> list[tuple[str, bool]]:
    """The names in a folder, and which of them are folders themselves."""
    try:
        return _native.names_of_found(folder or ".", named) or []
    except OSError:
        return []
