"""The folders of a job. What lies there is read as a result, so nobody but the caller or root may write to them, or put others in their
place."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Generator
from typing import NamedTuple

from .. import _native

#: As many as the kernel follows.
_MOST_LINKS = 40
#: What `getfacl` shows, where there is such a list.
_LIST = "system.posix_acl_access"


class _Seen(NamedTuple):
    """What lies on the way, as it was looked at: by now its path may lead to another thing, which never answers."""

    path: pathlib.Path
    opened: int
    is_last: bool


def folder(out: str, *names: str) -> pathlib.Path:
    """A folder in ``out``, which is made where it is not there yet. One of another user raises PermissionError."""
    path = pathlib.Path(os.path.abspath(out))
    _check(path, makes=True)
    return within(path, *names)


def within(path: str | pathlib.Path, *names: str) -> pathlib.Path:
    """The same of an ``out`` that must be there: of a job that has ended, its folder is gone."""
    path = pathlib.Path(os.path.abspath(path))
    _check(path)
    for name in names:
        path /= name
        _check(path, makes=True)
    return path


def _check(path: pathlib.Path, makes: bool = False) -> None:
    """Whoever may write to it, or rename a folder above it, may put another one there at any time."""
    with contextlib.closing(_way(path, makes)) as way:
        for thing in way:
            found = os.fstat(thing.opened)
            if stat.S_ISLNK(found.st_mode):
                # Whoever may write to /tmp may have put a link there by now; one of the caller's own or of root's stays.
                if not _is_ours(found):
                    raise _refused(thing.path, f"is a link of another user (number {found.st_uid})")
            elif not stat.S_ISDIR(found.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(thing.path))
            elif not _is_ours(found):
                raise _refused(thing.path, f"belongs to another user (number {found.st_uid})")
            elif thing.is_last or not found.st_mode & stat.S_ISVTX:
                _check_writers(thing, found)


def _way(path: pathlib.Path, makes: bool) -> Generator[_Seen, None, None]:
    """What lies on the way, from the top, also on that of each link; what is not there is made if it ``makes`` it. Whoever asks looks at each
    before the next, so that nothing is made where a link of another user leads."""
    flags, links = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0
    with contextlib.ExitStack() as ends:

        def opened(name: str, above: int | None) -> int:
            descriptor = os.open(name, flags, dir_fd=above)
            ends.callback(os.close, descriptor)
            return descriptor

        names = list(reversed(path.parts[1:]))
        way = [_Seen(pathlib.Path("/"), opened("/", None), not names)]
        yield way[0]
        while names:
            name = names.pop()
            if name == "..":
                way = way[: max(1, len(way) - 1)]
                continue
            above, here = way[-1], way[-1].path / name
            try:
                thing = opened(name, above.opened)
            except FileNotFoundError:
                if not makes:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(here)) from None
                with contextlib.suppress(FileExistsError):
                    # Those above it for whom the umask says.
                    os.mkdir(name, 0o777 if names else 0o755, dir_fd=above.opened)
                thing = opened(name, above.opened)
            if _native.is_mount_of_another(thing, above.opened):
                raise _refused(here, "another user has mounted it")
            is_link = stat.S_ISLNK(os.fstat(thing).st_mode)
            yield (seen := _Seen(here, thing, not names and not is_link))
            if not is_link:
                way.append(seen)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            leads = pathlib.Path(os.readlink("", dir_fd=thing))
            if leads.is_absolute():
                way = way[:1]
            names += [name for name in reversed(leads.parts) if name != "/"]


def _check_writers(thing: _Seen, found: os.stat_result) -> None:
    # A group of the caller's own is no other; of root's, only root's.
    own = os.getegid() if os.geteuid() else 0
    itself = f"/proc/self/fd/{thing.opened}"
    if found.st_mode & 0o002 or found.st_mode & 0o020 and (found.st_gid != own or _LIST in os.listxattr(itself)):
        raise _refused(thing.path, "others may write to this folder")


def _is_ours(stat: os.stat_result) -> bool:
    return stat.st_uid in (0, os.geteuid())


def _refused(path: pathlib.Path, why: str) -> PermissionError:
    right = "a fleet's results lie in a folder of your own to which nobody else may write (chmod go-w)"
    return PermissionError(errno.EACCES, f"{why}: {right}", str(path))
