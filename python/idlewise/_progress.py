"""A bar for ``progress=``."""

from __future__ import annotations

from collections.abc import Callable


def progress_bar(title: str = "") -> Callable[[float], None]:
    """A bar by tqdm, in a terminal or a notebook: ``iw.tune(idle, progress=iw.progress_bar("tuning"), ...)``.

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="50ms", requests=1000).idle(progress=iw.progress_bar())
    """
    from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

    shape = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    bar = tqdm(total=1.0, desc=title, bar_format=shape)

    def share(done: float) -> None:
        bar.update(done - bar.n)
        if done >= 1:
            bar.close()

    return share
