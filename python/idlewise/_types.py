"""What functions take, for annotations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

if TYPE_CHECKING:
    from ._native import Disk, Idleness, Issue, Plan, Wait

Time: TypeAlias = Union[str, int, timedelta]
"""Text such as ``"1ms"``, whole nanoseconds, or a timedelta."""
Size: TypeAlias = Union[str, int]
"""Text such as ``"512KiB"``, or whole bytes."""
Path: TypeAlias = Union[str, "PathLike[str]"]
Progress: TypeAlias = Callable[[float], object]
"""Called with the share done, from 0 to 1, some times a second."""


class HasArrowStream(Protocol):
    """Anything that gives record batches by Arrow's C interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> object: ...


class Decides(Protocol):
    """An object that says what to do in the gaps."""

    def decide(self, elapsed_ns: int, /) -> Wait | Issue | None: ...


PolicyLike: TypeAlias = Union[str, "Plan", "Callable[[Idleness], Decides]"]
"""The name of a policy, a plan, or a class with ``decide``."""
DiskLike: TypeAlias = Union["Disk", str, "PathLike[str]"]
"""A disk, the name of a preset, or a file."""
