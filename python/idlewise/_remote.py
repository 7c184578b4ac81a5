"""Files that are no paths of this machine: URLs of whatever fsspec knows, such as ``s3://``."""

from __future__ import annotations

from typing import Any

from ._errors import IdlewiseError
from ._patterns import Found

#: Read at a time.
PIECE = 32 << 20

_MAGIC = frozenset("*?[")

#: What fsspec's file system is told, such as credentials.
Options = dict[str, Any] | None


def is_url(path: str) -> bool:
    """Whether it is for fsspec."""
    return "://" in path


def local(path: str) -> str:
    """The path of a URL of this machine's files: they are found and opened as all others are."""
    for scheme in ("file://", "local://"):
        if path.startswith(scheme):
            return path[len(scheme) :]
    return path


def has_magic(path: str) -> bool:
    """Whether it may be a glob."""
    return bool(_MAGIC & set(path))


def find(url: str, options: Options) -> list[str]:
    """The files of a URL, which may be a glob, or a folder where it ends with a slash."""
    fs, path = _open(url, options)
    if url.endswith("/"):
        paths = sorted(one["name"] for one in fs.ls(path, detail=True) if one["type"] == "file")
    elif has_magic(url):
        paths = sorted(fs.glob(path))
    else:
        return [url]
    if not paths:
        raise FileNotFoundError(f"no file fits {url!r}")
    return [Found(str(fs.unstrip_protocol(one)), url) for one in paths]


def state(url: str, options: Options) -> str:
    """What is another after each change of the file."""
    fs, path = _open(url, options)
    return str(fs.ukey(path))


def size(url: str, options: Options) -> int | None:
    """Bytes, where the server tells."""
    fs, path = _open(url, options)
    found: int | None = fs.info(path).get("size")
    return found


def read(url: str, options: Options, begin: int, end: int) -> bytes:
    """These bytes of it."""
    fs, path = _open(url, options)
    data: bytes = fs.cat_file(path, start=begin, end=end)
    if len(data) != end - begin:
        raise IdlewiseError(f"{url}: {len(data)} bytes were given where {end - begin} were asked for")
    return data


def copy(url: str, options: Options, begin: int, end: int | None, to: str) -> None:
    """Copy these bytes of it into a file; without an end all."""
    if end is None:
        fs, path = _open(url, options)
        fs.get_file(path, to)
        return
    with open(to, "wb") as file:
        for at in range(begin, end, PIECE):
            file.write(read(url, options, at, min(end, at + PIECE)))


def _open(url: str, options: Options) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(f"reading {url!r} needs the package fsspec") from None
    fs, path = url_to_fs(url, **(options or {}))
    return fs, str(path)
