"""The folders of a job. What lies there is read as a result, so nobody but the caller or root may write to them, or put others in their
place."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Iterator

#: As many as the kernel follows.
_MOST_LINKS = 40
#: What `getfacl` shows, where there is such a list.
_LIST = "system.posix_acl_access"


def folder(out: str, *names: str) -> pathlib.Path:
    """A folder in ``out``, which is made where it is not there yet. One of another user raises PermissionError."""
    path = pathlib.Path(os.path.abspath(out))
    # What was looked at stays, so that nothing is made where a link of another user leads.
    for thing, is_last in _way(path):
        if not os.path.lexists(thing):
            with contextlib.suppress(FileExistsError):
                # Those above it for whom the umask says.
                thing.mkdir(0o755 if is_last else 0o777)
        if not is_last:
            _check_above(thing)
    return within(path, *names)


def within(path: str | pathlib.Path, *names: str) -> pathlib.Path:
    """The same of an ``out`` that must be there: of a job that has ended, its folder is gone."""
    path = pathlib.Path(path)
    _check_way(path)
    _own(path)
    for name in names:
        path /= name
        _made(path)
        _own(path)
    return path


def _made(path: pathlib.Path) -> pathlib.Path:
    path.mkdir(mode=0o755, exist_ok=True)
    return path


def _check_way(path: pathlib.Path) -> None:
    """Whoever may rename a folder above it may put another one there at any time."""
    for thing, is_last in _way(pathlib.Path(os.path.abspath(path))):
        if not is_last:
            _check_above(thing)


def _way(path: pathlib.Path) -> Iterator[tuple[pathlib.Path, bool]]:
    """What lies on the way, from the top, also on that of each link; and whether it is what the way leads to. Whoever asks looks at each
    before the next, as a link of another user may be exchanged."""
    at, names = pathlib.Path("/"), list(reversed(path.parts[1:]))
    yield at, not names
    for _ in range(_MOST_LINKS):
        while names:
            name = names.pop()
            if name == "..":
                at = at.parent
                continue
            thing = at / name
            yield thing, not names and not thing.is_symlink()
            # Whoever may write to /tmp may have put a link there by now; one of the caller's own or of root's stays.
            with contextlib.suppress(FileNotFoundError):
                found = thing.lstat()
                if stat.S_ISLNK(found.st_mode):
                    _check_link(thing, found)
                    break
            at = thing
        else:
            return
        leads = pathlib.Path(os.readlink(thing))
        if leads.is_absolute():
            at = pathlib.Path("/")
        names += [name for name in reversed(leads.parts) if name != "/"]
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _check_above(above: pathlib.Path) -> None:
    found = above.lstat()
    if stat.S_ISLNK(found.st_mode):
        _check_link(above, found)
    elif not _is_ours(found):
        raise _refused(above, f"belongs to another user (number {found.st_uid})")
    elif not found.st_mode & stat.S_ISVTX:
        _check_writers(above, found)


def _own(path: pathlib.Path) -> None:
    found = path.lstat()
    is_link = stat.S_ISLNK(found.st_mode)
    if is_link:
        _check_link(path, found)
    # A link of the caller's own stays; one that is put in the place of a folder meanwhile is not followed.
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if is_link else os.O_NOFOLLOW))
    try:
        found = os.fstat(opened)
        if not _is_ours(found):
            raise _refused(path, f"belongs to another user (number {found.st_uid})")
        _check_writers(path, found, opened)
    finally:
        os.close(opened)


def _check_writers(path: pathlib.Path, found: os.stat_result, opened: int | None = None) -> None:
    # A group of the caller's own is no other; of root's, only root's.
    own = os.getegid() if os.geteuid() else 0
    group = found.st_mode & 0o020 and (found.st_gid != own or _LIST in os.listxattr(path if opened is None else opened))
    if found.st_mode & 0o002 or group:
        raise _refused(path, "others may write to this folder")


def _check_link(path: pathlib.Path, found: os.stat_result) -> None:
    """A link of another user may lead anywhere."""
    if not _is_ours(found):
        raise _refused(path, f"is a link of another user (number {found.st_uid})")


def _is_ours(stat: os.stat_result) -> bool:
    return stat.st_uid in (0, os.geteuid())


def _refused(path: pathlib.Path, why: str) -> PermissionError:
    right = "a fleet's results lie in a folder of your own to which nobody else may write (chmod go-w)"
    return PermissionError(errno.EACCES, f"{why}: {right}", str(path))
