"""What a pattern such as ``*/*.csv`` finds. Other users may have put files and links where it looks. So nothing is found through their
links, and a file that is named like the pattern hides no other file."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import stat
import warnings
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


# No folders of traces are deeper below each other, and no path of the system is longer (PATH_MAX).
_MOST_DEEP = 64
_LONGEST = 4096
# Of all paths that a pattern finds.
_MOST_LETTERS = 256 << 20


def find(pattern: str) -> list[Found]:
    """In order. A file that has the pattern for its name is found where nothing fits that. Whoever may write where it looks may have put
    folders there without end: those that are too deep are left out, with a warning.

    Raises:
        ValueError: More fits it than memory should hold.
    """
    names = pattern.split("/")
    first = next(at for at, name in enumerate(names) if glob.has_magic(name))
    # Links on the way to the first name that is a pattern are those of who has asked.
    folder = "/".join(names[:first]) + "/" if first else ""
    letters, found = 0, set()
    for path in _fit(folder, names[first:], folder or "."):
        letters += 0 if path in found else len(path)
        if letters > _MOST_LETTERS:
            raise ValueError(f"{_native.one_line(pattern)}: finds more than {_MOST_LETTERS >> 20} MiB of paths: let it find fewer")
        found.add(path)
    if not found and _state(pattern, folder or ".") is not None:
        found = {pattern}
    return [Found(path, folder) for path in sorted(found)]


def _fit(folder: str, names: list[str], named: str) -> Iterator[str]:
    """What in a folder fits these names, one below the other. Folders may be deeper below each other than functions may. Who calls has
    ``named`` the first one."""
    too_deep, begins = False, folder.count("/")
    # What is still to be looked at, of each folder on the way to where we are: never all paths at once.
    todo = [iter([(folder, names)])]
    while todo:
        if (step := next(todo[-1], None)) is None:
            todo.pop()
            continue
        folder, (name, *rest) = step
        if folder.count("/") > begins + _MOST_DEEP or len(folder) > _LONGEST:
            too_deep = True
        elif name == "**":
            todo.append(itertools.chain([(folder, rest or ["*"])], _below(folder, ["**", *rest], named)))
        elif not name and rest:
            todo.append(iter([(folder, rest)]))
        elif not name:
            yield folder
        elif not rest:
            yield from _named(folder, name, named)
        else:
            todo.append(_folders(folder, name, rest, named))
    if too_deep:
        where = _native.one_line(named)
        warnings.warn(f"{where}: folders more than {_MOST_DEEP} deep below it were left out", stacklevel=2)


def _below(folder: str, names: list[str], named: str) -> Iterator[tuple[str, list[str]]]:
    """The folders in a folder, and what is to fit in them. No link at all: it may lead back."""
    for one, is_folder in _entries(folder, named):
        if is_folder and not one.startswith("."):
            yield f"{folder}{one}/", names


def _folders(folder: str, name: str, names: list[str], named: str) -> Iterator[tuple[str, list[str]]]:
    """The folders in a folder that have this name, which may be a pattern, and what is to fit in them."""
    for path in _named(folder, name, named):
        if _is_folder(path, named):
            yield path + "/", names


def _named(folder: str, name: str, named: str) -> Iterator[str]:
    """What in a folder has this name, which may be a pattern."""
    if not glob.has_magic(name):
        # A link of another user, which is told as one where it is read, is in the folder as well.
        if _state(folder + name, named) or any(one == name for one, _ in _entries(folder, named)):
            yield folder + name
        return
    for one, _ in _entries(folder, named):
        if fnmatch.fnmatchcase(one, name) and (not one.startswith(".") or name.startswith(".")):
            yield folder + one


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
