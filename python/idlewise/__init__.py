"""When a disk is idle, and what background work may do then.

Read a trace, reduce it to idle times, and ask: statistics, plans, simulations. Times are given as text such as ``"1ms"``, as
``timedelta``, or as whole nanoseconds; they come back as whole nanoseconds (``_ns``), and as ``duration[ns]`` in Arrow. Sizes are
bytes. Dicts have the names of the command's ``--json``, where times are seconds (``_s``).

Examples
--------
>>> import idlewise as iw
>>> trace = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=20_000, seed=4)
>>> idle = trace.idle(disk="15k")
>>> plan = iw.tune(idle, mean_slowdown="1ms", max_slowdown="50ms")
>>> iw.simulate(idle, plan).mean_slowdown_ns <= 1_000_000
True
"""

from ._errors import IdlewiseError, NoPlan
from ._native import (
    Disk,
    Idleness,
    Issue,
    Outcome,
    Partial,
    Plan,
    SamplingPlan,
    Table,
    Trace,
    Wait,
    __version__,
    array,
    baselines,
    compare,
    explore,
    formats,
    frontier,
    grid,
    policies,
    reliability,
    sample,
    simulate,
    synth,
    tune,
    tune_each,
)
from ._policy import Policy
from ._progress import progress_bar
from ._scan import scan

__all__ = [
    "Disk",
    "Idleness",
    "IdlewiseError",
    "Issue",
    "NoPlan",
    "Outcome",
    "Partial",
    "Plan",
    "Policy",
    "SamplingPlan",
    "Table",
    "Trace",
    "Wait",
    "__version__",
    "array",
    "baselines",
    "compare",
    "explore",
    "formats",
    "frontier",
    "grid",
    "policies",
    "progress_bar",
    "reliability",
    "sample",
    "scan",
    "simulate",
    "synth",
    "tune",
    "tune_each",
]
