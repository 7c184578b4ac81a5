"""What a policy of one's own looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import Idleness, Issue, Wait


class Policy:
    """A policy written in Python; any class with ``__init__(self, past)`` and ``decide`` will do.

    One object is made for each volume. ``past`` are the idle times of that volume that are simulated, so that a policy which learns from them
    knows its future. For a fair trial, ``split`` them, and give the first part to ``compare`` as ``train``: then ``past`` is of that. A call takes less than a microsecond besides what it does itself.

    Examples
    --------
    >>> import idlewise as iw
    >>> class Half(iw.Policy):
    ...     "Half of what the last interval lasted, and then no more."
    ...     last = 0
    ...     def decide(self, elapsed_ns):
    ...         return iw.Issue("256KiB") if elapsed_ns < self.last // 2 else None
    ...     def foreground_arrived(self, idle_ns, collision_ns):
    ...         self.last = idle_ns
    >>> idle = iw.synth(idle_mean="200ms", requests=1000).idle()
    >>> iw.simulate(idle, Half).scrubbed_bytes > 0
    True
    """

    def __init__(self, past: Idleness) -> None:
        self.past = past

    def decide(self, elapsed_ns: int) -> Wait | Issue | None:
        """What to do when the disk has been idle for so long: wait, issue requests, or (``None``) no more in this interval."""
        raise NotImplementedError

    def idle_began(self, busy_ns: int, at_ns: int) -> None:
        """The disk became idle at a time, after it had been busy for so long."""

    def foreground_arrived(self, idle_ns: int, collision_ns: int) -> None:
        """Foreground work came after so long, with so much left of a request of ours: 0 if none was in service."""
