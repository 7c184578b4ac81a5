"""The folders of a job. What lies there is read as a result, so nobody but the caller or root may write to them."""

from __future__ import annotations

import errno
import os
import pathlib

#: What `getfacl` shows, where there is such a list.
_LIST = "system.posix_acl_access"


def folder(out: str, *names: str) -> pathlib.Path:
    """A folder in ``out``, which is made where it is not there yet. One of another user raises PermissionError."""
    path = pathlib.Path(out)
    # Above it folders are made for whom the umask says.
    path.parent.mkdir(parents=True, exist_ok=True)
    return within(_made(path), *names)


def within(path: str | pathlib.Path, *names: str) -> pathlib.Path:
    """The same of an ``out`` that must be there: of a job that has ended, its folder is gone."""
    path = pathlib.Path(path)
    for above in path.parents:
        _check_link(above)
    _own(path)
    for name in names:
        path /= name
        _made(path)
        _own(path)
    return path


def _made(path: pathlib.Path) -> pathlib.Path:
    path.mkdir(mode=0o755, exist_ok=True)
    return path


def _own(path: pathlib.Path) -> None:
    _check_link(path)
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        if not _is_ours(found):
            raise _refused(path, f"belongs to another user (number {found.st_uid})")
        # A group of the caller's own is no other; of root's, only root's.
        own = os.getegid() if os.geteuid() else 0
        group = found.st_mode & 0o020 and (found.st_gid != own or _LIST in os.listxattr(opened))
        if found.st_mode & 0o002 or group:
            raise _refused(path, "others may write to this folder")
    finally:
        os.close(opened)


def _check_link(path: pathlib.Path) -> None:
    """A link of another user may lead anywhere."""
    if path.is_symlink() and not _is_ours(path.lstat()):
        raise _refused(path, f"is a link of another user (number {path.lstat().st_uid})")


def _is_ours(stat: os.stat_result) -> bool:
    return stat.st_uid in (0, os.geteuid())


def _refused(path: pathlib.Path, why: str) -> PermissionError:
    right = "a fleet's results lie in a folder of your own to which nobody else may write (chmod go-w)"
    return PermissionError(errno.EACCES, f"{why}: {right}", str(path))
