"""The exceptions of the package."""

from __future__ import annotations


class IdlewiseError(ValueError):
    """Something that was given makes no sense, or a file cannot be read.

    Attributes
    ----------
    file : str or None
        The file that is damaged.
    line, column : int or None
        The place in it, counted from 1, where it is text.
    """

    def __init__(
        self, message: str, file: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column


class NoPlan(IdlewiseError):
    """No plan keeps the goal; the message says why."""
