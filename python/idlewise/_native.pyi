"""The compiled part: what it gives, and what each thing means."""

from collections.abc import Iterator, Sequence
from typing import Any, final

from ._types import DiskLike, HasArrowStream, Path, PolicyLike, Progress, Size, Time

__version__: str

__all__ = [
    "Disk",
    "Idleness",
    "Issue",
    "Outcome",
    "Partial",
    "Plan",
    "SamplingPlan",
    "Table",
    "Trace",
    "Wait",
    "__version__",
    "array",
    "baselines",
    "compare",
    "explore",
    "first_arrival",
    "formats",
    "frontier",
    "grid",
    "policies",
    "reliability",
    "fleet_page",
    "half_of_free_memory",
    "is_mount_of_another",
    "names_of_found",
    "one_line",
    "open_found",
    "replace_file",
    "run_command",
    "sample",
    "simulate",
    "state_of_found",
    "synth",
    "tune",
    "tune_each",
]

@final
class Table:
    """Rows with named columns: ``pl.DataFrame(table)`` and ``pa.table(table)`` take it as it is.

    Examples
    --------
    >>> import idlewise as iw
    >>> table = iw.synth(idle_mean="50ms", requests=1000).idle().by_volume()
    >>> table["requests"]
    [1000]
    >>> len(table), table.column_names[:2]
    (1, ['volume', 'requests'])
    """

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]:
        """The values of each column, by its name."""
    def rows(self) -> list[dict[str, Any]]:
        """Each row as a dict of all columns; what a row lacks is ``None``."""
    @staticmethod
    def _of_rows(rows: list[dict[str, Any]]) -> Table: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Trace:
    """Requests, from ``scan`` or ``synth``.

    As Arrow it streams them, a row a request: ``arrival``, ``issue`` and ``completion`` as durations in nanoseconds from the first arrival, ``offset`` and ``length``
    in bytes, ``op``, ``volume``. Times that were not recorded are null.

    Examples
    --------
    >>> import idlewise as iw
    >>> trace = iw.synth(idle_mean="50ms", requests=1000)
    >>> trace.requests, trace.volumes
    (1000, ['synthetic_0'])
    """

    @staticmethod
    def _of_files(
        paths: Sequence[Path],
        name: str,
        *,
        found: Sequence[tuple[str, str]],
        volumes: Sequence[str],
        columns: str | None,
        skip_bad: bool,
        by_file: bool,
        whole: bool,
        memory_limit: Size | None,
        slice: tuple[str, int, int, int, int] | None,
        kept: object,
    ) -> Trace: ...
    @staticmethod
    def _of_table(
        table: HasArrowStream, *, volumes: Sequence[str], columns: dict[str, str] | None, unit: str | None
    ) -> Trace: ...
    @property
    def name(self) -> str:
        """Its file, or what it was made like."""
    @property
    def volumes(self) -> list[str]:
        """Names of the volumes. The first question reads the trace once."""
    @property
    def requests(self) -> int:
        """Number of requests. The first question reads the trace once."""
    @property
    def provenance(self) -> dict[str, Any]:
        """Where the trace comes from: format, compression, clock, and what was left out."""
    def idle(self, *, disk: DiskLike | None = None, progress: Progress | None = None) -> Idleness:
        """Reduce the requests to idle times, in one pass and in flat memory.

        Parameters
        ----------
        disk
            What serves requests without a recorded response: an ``iw.Disk``, the name of a preset, or a file; ``15k``, unless given.
            Simulations take the same, unless told otherwise.
        progress
            Called with the share that is done, from 0 to 1.

        Raises
        ------
        IdlewiseError
            If a file is damaged; ``file``, ``line`` and ``column`` say where.

        Examples
        --------
        >>> import idlewise as iw
        >>> iw.synth(idle_mean="50ms", requests=1000).idle(disk="nearline").volumes
        ['synthetic_0']
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...

@final
class Idleness:
    """The idle times of disks, by volume: a mapping from the name of a volume to its idle times.

    As Arrow it is a row an interval: ``volume``, ``begin``, ``length`` and ``busy_before`` as durations in nanoseconds, and ``followers``, which is the number of
    requests in the busy period that follows.

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="50ms", requests=1000).idle()
    >>> for volume, own in idle.items():
    ...     print(volume, own.intervals)
    synthetic_0 999
    """

    @staticmethod
    def merge(parts: Sequence[Partial]) -> Idleness:
        """Put parts of a trace together, exactly, in any order.

        Examples
        --------
        >>> import idlewise as iw
        >>> part = iw.Partial()
        >>> part.push(iw.synth(idle_mean="50ms", requests=1000))
        >>> iw.Idleness.merge([part]).intervals
        999
        """
    @property
    def volumes(self) -> list[str]:
        """Names of the volumes, sorted as people count."""
    @property
    def disk(self) -> Disk:
        """The model that served what was not recorded, and that simulations take."""
    @property
    def source(self) -> dict[str, Any]:
        """Where the numbers come from: the trace, its format, and how many response times are those of the model."""
    @property
    def requests(self) -> int:
        """Number of foreground requests."""
    @property
    def intervals(self) -> int:
        """Number of idle intervals."""
    @property
    def idle_ns(self) -> int:
        """How long the disks were idle, all together, in nanoseconds."""
    @property
    def begin_ns(self) -> int:
        """First arrival, in nanoseconds on the trace's clock."""
    @property
    def end_ns(self) -> int:
        """Last completion, in nanoseconds on the trace's clock."""
    @property
    def origin_ns(self) -> int:
        """Nanoseconds that are added to times of the trace for those on the source's clock. That of MSR traces counts from 1601, which is
        more than a signed number of 64 bits holds."""
    def __len__(self) -> int: ...
    def __contains__(self, volume: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, volume: str, /) -> Idleness: ...
    def __eq__(self, other: object, /) -> bool: ...
    def keys(self) -> list[str]:
        """Names of the volumes."""
    def values(self) -> list[Idleness]:
        """The idle times of each volume."""
    def items(self) -> list[tuple[str, Idleness]]:
        """Each name with the idle times of that volume."""
    def profile(self) -> dict[str, Any]:
        """Everything that ``idlewise idle --json`` says of these disks together. Times are in seconds (``_s``)."""
    def statistics(self) -> dict[str, Any]:
        """The numbers of the profile alone, without what depends on the order of intervals. Times are in seconds (``_s``).

        Examples
        --------
        >>> import idlewise as iw
        >>> iw.synth(idle_mean="50ms", requests=1000).idle().statistics()["idle_intervals"]
        999
        """
    def by_volume(self) -> Table:
        """The statistics of each volume, a row each. Times are in seconds (``_s``)."""
    def split(self, share: float) -> tuple[Idleness, Idleness]:
        """What came before and after a share of the time, from 0 to 1.

        Examples
        --------
        >>> import idlewise as iw
        >>> first, rest = iw.synth(idle_mean="50ms", requests=1000).idle().split(0.5)
        >>> first.end_ns <= rest.end_ns
        True
        """
    def report(self, path: Path | None = None) -> str:
        """The page of ``idlewise idle --report`` as HTML, written to a file if one is given."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Partial:
    """Idle times of parts of a trace, put together exactly: those of a stream, of files, or of the tasks of a fleet.

    Parameters
    ----------
    disk
        What serves requests without a recorded response; ``15k``, unless given.
    origin_ns
        What counts as zero, in nanoseconds on the source's clock. Give the first arrival of the whole trace for the hours that one pass
        over it would count. Times of the parts are on the source's clock, too.

    Notes
    -----
    Parts may come in any order. Those of which all requests arrived at the same moment are taken in the order in which they are given.

    Examples
    --------
    >>> import idlewise as iw
    >>> trace = iw.synth(idle_mean="50ms", requests=1000)
    >>> part = iw.Partial()
    >>> part.push(trace)
    >>> part.idle() == trace.idle()
    True
    """

    def __new__(cls, *, disk: DiskLike | None = None, origin_ns: int = 0) -> Partial: ...
    def push(
        self,
        requests: HasArrowStream,
        *,
        columns: dict[str, str] | None = None,
        unit: str | None = None,
        memory_limit: Size | None = None,
    ) -> None:
        """Add requests, which must not be of the time of others that were added.

        Parameters
        ----------
        requests
            A table, sorted by arrival: anything with ``__arrow_c_stream__``.
        columns, unit
            As those of ``scan``.
        memory_limit
            Most memory for what is kept of them; half of what is free, unless given. More raises an error.
        """
    def merge(self, *others: Partial) -> Partial:
        """These parts and those of others."""
    @property
    def volumes(self) -> list[str]:
        """Names of the volumes."""
    @property
    def memory(self) -> int:
        """Bytes of memory at most, with all that is computed from it at a time."""
    def __getitem__(self, volume: str, /) -> Partial:
        """The parts of one volume."""
    def to_bytes(self) -> bytes:
        """The parts as bytes: a cell of a table, a file, or a message. Disk and origin are not in them."""
    @staticmethod
    def from_bytes(data: bytes, *, disk: DiskLike | None = None, origin_ns: int = 0) -> Partial:
        """The parts that ``to_bytes`` gave, with this disk and origin."""
    @staticmethod
    def _of(data: bytes, disk: Disk, origin_ns: int) -> Partial: ...
    def idle(self) -> Idleness:
        """The idle times of all parts together, if nothing is missing between them."""

@final
class Disk:
    """How long a disk takes for requests: a preset, or what ``idlewise probe`` measured.

    Examples
    --------
    >>> import idlewise as iw
    >>> disk = iw.Disk.preset("15k")
    >>> disk.verify_time_ns("64KiB") < disk.verify_time_ns("1MiB")
    True
    """

    @staticmethod
    def load(path: Path) -> Disk:
        """The disk of a file that ``idlewise probe`` or ``save`` wrote."""
    @staticmethod
    def parse(toml: str) -> Disk:
        """The disk of such a file's text."""
    @staticmethod
    def preset(name: str) -> Disk:
        """The preset of this name."""
    @staticmethod
    def presets() -> list[tuple[str, str]]:
        """Names of the presets, and what they are."""
    @property
    def name(self) -> str:
        """What the disk is called."""
    def verify_time_ns(self, size: Size) -> int:
        """Nanoseconds that a read of this size takes which moves no data to the host."""
    def to_toml(self) -> str:
        """The text of the file."""
    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Plan:
    """What to do in the gaps: how long the disk must have been idle, and the size of the requests from then on.

    ``save`` writes the file that ``idlewise scrub --plan`` reads.

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> plan = iw.tune(idle, mean_slowdown="1ms", max_slowdown="50ms")
    >>> iw.Plan.parse(plan.to_toml()) == plan
    True
    """

    @staticmethod
    def load(path: Path) -> Plan:
        """The plan of a file that ``save`` or ``idlewise tune --out`` wrote."""
    @staticmethod
    def parse(toml: str) -> Plan:
        """The plan of such a file's text."""
    def to_toml(self) -> str:
        """The text of the file."""
    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
    @property
    def request_size(self) -> int:
        """Bytes of each request; of the first ones, if the plan is shaped."""
    @property
    def idle_wait_ns(self) -> int:
        """Nanoseconds for which the disk must have been idle."""
    @property
    def predicted(self) -> dict[str, Any]:
        """What it did in simulation: slowdowns in nanoseconds, throughput in bytes per second."""
    @property
    def goal(self) -> dict[str, Any]:
        """The slowdowns that it was tuned for, in nanoseconds."""
    @property
    def warnings(self) -> list[str]:
        """Why to trust it less, a sentence each: the trace is short, or few requests collided. Empty if it comes from a file."""
    @property
    def is_shaped(self) -> bool:
        """Whether it has steps instead of one wait and one size."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Wait:
    """A policy's answer: ask again when the disk has been idle for so long.

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.Wait("100ms").until_ns
    100000000
    """

    def __new__(cls, until: Time) -> Wait: ...
    @property
    def until_ns(self) -> int:
        """Nanoseconds from the beginning of the idle interval."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Issue:
    """A policy's answer: issue one request of a size, or ``count`` one after the other; ``None`` for as many as fit.

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.Issue("64KiB").size, iw.Issue("64KiB").count
    (65536, 1)
    """

    def __new__(cls, size: Size, count: int | None = ...) -> Issue: ...
    @property
    def size(self) -> int:
        """Bytes of each request."""
    @property
    def count(self) -> int | None:
        """How many; ``None`` for as many as fit."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Outcome:
    """What a policy did on a trace, in simulation. Slowdowns are those of foreground requests.

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", requests=1000).idle()
    >>> outcome = iw.simulate(idle, "waiting", idle_wait="100ms", request_size="512KiB")
    >>> 0 < outcome.mean_slowdown_ns < outcome.max_slowdown_ns
    True
    """

    @property
    def policy(self) -> str:
        """The name of the policy."""
    @property
    def scrubbed_bytes(self) -> int:
        """Bytes that were scrubbed, of all disks together."""
    @property
    def background_requests(self) -> int:
        """Number of requests that the policy issued."""
    @property
    def collisions(self) -> int:
        """How often foreground work came while such a request was in service."""
    @property
    def collision_rate(self) -> float:
        """Collisions per foreground request."""
    @property
    def mean_slowdown_ns(self) -> int:
        """Mean of all foreground requests, cut to whole nanoseconds."""
    @property
    def slowdown_p99_ns(self) -> int:
        """99 of 100 foreground requests are slowed down by no more, in nanoseconds."""
    @property
    def max_slowdown_ns(self) -> int:
        """The largest slowdown of a foreground request, in nanoseconds."""
    @property
    def throughput_bytes_per_s(self) -> float:
        """Bytes that were scrubbed in a second of the trace, of all disks together."""
    @property
    def ran_ns(self) -> int:
        """Idle time that was used, of all disks together, in nanoseconds."""
    @property
    def useful_ns(self) -> int | None:
        """Of a command: how long it was at work for what need not be done again, in nanoseconds. ``None`` for a scrub."""
    @property
    def utilised_idle(self) -> float:
        """Share of the idle time that was used."""
    @property
    def relative_delay(self) -> float | None:
        """Added over original response time; ``None`` where that is not known."""
    def to_dict(self) -> dict[str, Any]:
        """The numbers of ``idlewise simulate --json``. Times are in seconds (``_s``)."""

@final
class SamplingPlan:
    """The few intervals that stand for a trace. ``save`` writes the file that ``idlewise replay`` takes.

    Examples
    --------
    >>> import idlewise as iw
    >>> sampled = iw.sample(iw.synth(idle_mean="50ms", requests=20_000), interval="1s", intervals=20)
    >>> sampled.interval_ns, len(sampled.representatives) <= 20
    (1000000000, True)
    """

    @staticmethod
    def load(path: Path) -> SamplingPlan:
        """The plan of a file that ``save`` or ``idlewise sample --out`` wrote."""
    def to_toml(self) -> str:
        """The text of the file."""
    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
    @property
    def interval_ns(self) -> int:
        """Length of an interval, in nanoseconds."""
    @property
    def representatives(self) -> Table:
        """The intervals that are replayed, a row each: when each begins, in seconds, and how much it stands for."""
    def estimate(self, means: Sequence[float | None]) -> tuple[float, float | None]:
        """The mean response time of the trace, from the mean of each interval in order of time, and how far off it may be with a confidence
        of 95 %, where that is known. All in seconds."""
    @property
    def outcome(self) -> dict[str, Any] | None:
        """What the sample says of the trace; ``None`` of a plan from a file."""

def tune(
    idle: Idleness,
    *,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
    mean_slowdown: Time | None = None,
    max_slowdown: Time | None = None,
    p99_slowdown: Time | None = None,
    finish_within: Time | None = None,
    capacity: Size = "10TB",
    any_moment: bool = False,
    shaped: bool = False,
) -> Plan:
    """Choose the request size and the idle wait with which a scrub is fastest within a slowdown goal.

    All disks of ``idle`` get one plan; ``tune_each`` makes one for each. What to be careful about is in ``warnings`` of the plan.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.
    progress
        Called with the share that is done, from 0 to 1.
    mean_slowdown
        Most that foreground requests may be slowed down on average.
    max_slowdown
        Most that one of them may be slowed down; what the largest request takes, unless given.
    p99_slowdown
        Most that 99 of 100 may be slowed down; no limit, unless given.
    finish_within
        Instead of ``mean_slowdown``: find the smallest one with which a pass over ``capacity`` takes no longer than this.
    capacity
        Size of the disk that is scrubbed.
    any_moment
        Keep the goal also if foreground requests arrive at other moments than recorded. Ask for it if the plan will be run.
    shaped
        Also try requests whose size grows with the time that the disk has been idle.

    Returns
    -------
    Plan

    Raises
    ------
    NoPlan
        If no plan keeps the goal.

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> plan = iw.tune(idle, mean_slowdown="1ms", max_slowdown="50ms")
    >>> plan.predicted["mean_slowdown_ns"] <= 1_000_000
    True
    >>> plan.warnings
    ['the trace covers 17.1 min: it does not show what the disk does at other hours of the day']
    """

def tune_each(
    idle: Idleness,
    *,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
    mean_slowdown: Time | None = None,
    max_slowdown: Time | None = None,
    p99_slowdown: Time | None = None,
    finish_within: Time | None = None,
    capacity: Size = "10TB",
    any_moment: bool = False,
    shaped: bool = False,
) -> Table:
    """A plan for each volume, a row each. Times are in seconds (``_s``).

    The column ``error`` says why there is no plan, and ``warnings`` why to trust one less. Both are null where there is nothing to say. The
    column ``plan`` holds the whole plan, as ``Plan.parse`` reads it: of a shaped plan, the size and the wait beside it are only those it begins
    with. The columns are the same whatever the volumes are.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    disk, progress, mean_slowdown, max_slowdown, p99_slowdown, finish_within, capacity, any_moment, shaped
        As those of ``tune``, for each volume.

    Returns
    -------
    Table

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> for row in iw.tune_each(idle, mean_slowdown="1ms", max_slowdown="50ms").rows():
    ...     print(row["volume"], row["mean_slowdown_s"] <= 0.001, row["error"])
    ...     print(iw.Plan.parse(row["plan"]).request_size == row["request_size_bytes"])
    synthetic_0 True None
    True
    """

def frontier(
    idle: Idleness,
    *,
    max_slowdown: Time | None = None,
    any_moment: bool = False,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> Table:
    """Throughput against slowdown, for many sizes and waits: what each reaches at its mean slowdown.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    max_slowdown
        Leave out sizes that slow one foreground request down by more; what the largest request takes, unless given.
    any_moment
        Slowdowns are those of foreground requests that arrive at other moments than recorded.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Table
        A row a point. Times are in seconds (``_s``).

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> table = iw.frontier(idle, max_slowdown="20ms")
    >>> sorted(set(table["policy"]))
    ['exponential', 'fixed', 'linear', 'swapping']
    """

def baselines(idle: Idleness, plan: Plan | None = None, *, disk: DiskLike | None = None) -> Table:
    """What the usual schedules do on the same idle times.

    With a plan, also what they do with its request size, and at its mean slowdown.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    plan
        A plan to put them beside.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.

    Returns
    -------
    Table
        A row a schedule. Times are in seconds (``_s``).

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> iw.baselines(idle)["name"]
    ['cfq-idle', 'back-to-back', 'fixed-delay-16ms', 'fixed-delay-64ms']
    """

def simulate(
    idle: Idleness,
    policy: PolicyLike,
    *,
    train: Idleness | None = None,
    overruns: Time | list[Time] | dict[str, Any] | None = None,
    opening: Time | None = None,
    piece: Time | None = None,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
    **parameters: Time | Size | float,
) -> Outcome:
    """Run one policy over the idle times.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    policy
        The name of a policy (``iw.policies()`` has all), a plan, or a class of your own with ``decide``.
    train
        Idle times of the same volumes that the policy learns from instead of those that it runs on.
    overruns
        A command runs in the gaps instead of a scrub, as ``idlewise run`` holds it. This is how long foreground requests wait until it is
        held: a time, a list of times of which each is as likely, or what ``idlewise run --json`` measured, which is
        ``report["disks"][0]["overruns"]``.
    opening
        Of such a command: the time until it is at work, each time it goes on.
    piece
        Of such a command: it works in pieces of this time. One that is cut in its first half is done again, else the foreground waits for its
        end.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.
    progress
        Called with the share that is done, from 0 to 1.
    parameters
        Those of the policy, by the names of the command's options: ``idle_wait="100ms"``.

    Returns
    -------
    Outcome

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", requests=1000).idle()
    >>> iw.simulate(idle, "waiting", idle_wait="100ms", request_size="512KiB").collisions > 0
    True
    >>> iw.simulate(idle, "waiting", idle_wait="100ms", overruns="8ms").max_slowdown_ns
    8000000
    """

def grid(
    idle: Idleness,
    sizes: Sequence[Size],
    waits: Sequence[Time],
    *,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> Table:
    """Waiting with each size and each idle wait, a row each: what it scrubs and how much it slows the foreground down.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    sizes
        Sizes of requests.
    waits
        Idle waits.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Table
        A row a pair. Times are in seconds (``_s``).

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", requests=1000).idle()
    >>> [row["request_size_bytes"] for row in iw.grid(idle, ["64KiB", "1MiB"], ["10ms", "100ms"]).rows()]
    [65536, 65536, 1048576, 1048576]
    """

def compare(
    idle: Idleness,
    policies: Sequence[PolicyLike | tuple[PolicyLike, dict[str, Any]]] | None = None,
    *,
    request_size: Size | None = None,
    train: Idleness | None = None,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> Table:
    """How much idle time each policy uses, how often it collides, how much it scrubs, and by how much it slows the foreground down.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    policies
        Names, each of which runs with many parameters, a row each. Plans, classes of your own, and pairs of a name and its parameters, such as
        ``("waiting", {"idle_wait": "1s", "request_size": "64KiB"})``, run once.
    request_size
        Bytes of each request of policies that are named without parameters; 64 KiB, unless given.
    train
        Idle times of the same volumes that policies learn from instead of those that they run on. What they do on those is in the columns
        ``trained_utilised_idle`` and ``trained_collision_rate``.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Table
        A row a policy and parameter. Times are in seconds (``_s``).

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> table = iw.compare(idle, ["waiting", "oracle"])
    >>> sorted(set(table["policy"]))
    ['oracle', 'waiting']
    """

def explore(
    idle: Idleness,
    *,
    relative_delay: float = 0.07,
    request_size: Size | None = None,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """All pairs of an idle wait and a busy period, as ``idlewise explore --json`` says them.

    Parameters
    ----------
    idle
        Idle times, from ``Trace.idle``.
    relative_delay
        What foreground requests may suffer: added over original response time.
    request_size
        Bytes of each background request; 64 KiB, unless given.
    disk
        The disk: an ``iw.Disk``, the name of a preset, or a file; that of ``idle``, unless given.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    dict
        The chosen pair is ``chosen``. Times are in seconds (``_s``).

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> iw.explore(idle)["chosen"]["relative_delay"] <= 0.07
    True
    """

def sample(
    trace: Trace,
    *,
    interval: Time | None = None,
    intervals: int | None = None,
    error: float | None = None,
    features: str | None = None,
    rule: str | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> SamplingPlan:
    """Find the few intervals that stand for a trace.

    They are drawn by lot. With ``rule`` or ``features`` intervals are clustered as in the paper (DiskAccel, SIGMETRICS 2015), and nobody
    knows how far off the estimate may be.

    Parameters
    ----------
    trace
        Requests, from ``scan``. Response times are not needed.
    interval
        Length of an interval; 10 s, unless given.
    intervals
        Draw so many at most; 50, unless given.
    error
        Draw as many as it is expected to take for the estimate to be off by no more than this share, with a confidence of 95 %.
    features
        Cluster by these features, separated by commas.
    rule
        What chooses the number of clusters: ``"bic"``, ``"bic90"`` or ``"fk"``.
    seed
        The same seed gives the same plan.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    SamplingPlan

    Examples
    --------
    >>> import idlewise as iw
    >>> trace = iw.synth(idle_mean="50ms", requests=20_000)
    >>> iw.sample(trace, interval="1s", intervals=20).outcome["share_of_time"] < 0.03
    True
    """

def array(
    layout: str,
    passes: Sequence[Time],
    *,
    capacity: Size | None = None,
    failures: float | None = None,
    latent: float | None = None,
    read_errors: float | None = None,
    rebuild: Time | None = None,
    rebuild_in_gaps: bool = False,
    age: Time | None = None,
    within: Time | None = None,
    play: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """How long an array keeps its data, by how its disks are scrubbed.

    Parameters
    ----------
    layout
        The array and the number of its disks: ``"raid5:8"``, ``"raid6:10"``, ``"raidz1:6"`` to ``"raidz3:12"`` or ``"mirror:2"``.
    passes
        How long a pass of the scrub takes. Each gives one of the ``rows``; the first row is without scrubs.
    capacity
        Size of each disk; 20 TB.
    failures, latent
        Shares of the disks that fail in a year, and to which latent errors come; 0.0157 and 0.033.
    read_errors
        One read error in so many bits read, such as ``1e15``; none.
    rebuild, rebuild_in_gaps
        How long a rebuild takes; the capacity at 100 MB/s, or as long as a pass.
    age
        Age that disks reach; 1826 days. Without scrubs, an error waits unseen for half of it.
    within
        ``loss_within`` is the likelihood of a loss in so long; 3652 days.
    play
        Also play the array out, so many times from a failure until all disks are sound.

    Examples
    --------
    >>> import idlewise as iw
    >>> never, fortnightly = iw.array("raid6:10", ["14d"])["rows"]
    >>> fortnightly["mttdl_s"] > 10 * never["mttdl_s"]
    True
    """

def reliability(
    scan_time: Time,
    *,
    dirty: float = 0.0,
    visible: Time | None = None,
    latent: Time | None = None,
    recovery: Time | None = None,
    latent_recovery: Time | None = None,
    temporal: float = 1.0,
    spatial: Sequence[float] = ...,
    parity_factor: float = 48.0,
) -> dict[str, float]:
    """Mean times to data loss with passes of this length, in seconds (DSN 2008, equations 1 to 4).

    The model is that of data in two copies on disks of 2008; ``array`` is about RAID and disks of today.

    Parameters
    ----------
    scan_time
        How long one pass over the disk takes.
    dirty
        Share of the disk whose parity is not up to date.
    visible, latent
        Mean time between errors that are seen at once, such as the failure of a disk, and between those that are not.
    recovery, latent_recovery
        Mean time to recover from each, once it is seen.
    temporal
        How errors come together in time: 1 if each comes alone, less if they do not.
    spatial
        How likely a second error hits what the first has left without redundancy: visible after visible, latent after visible, visible after
        latent, latent after latent.
    parity_factor
        How much rarer latent errors are with intra-disk parity.

    Returns
    -------
    dict

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.reliability("14d")["gain_scrub"] > 1
    True
    """

def synth(
    like: str | None = None,
    *,
    idle_mean: Time | None = None,
    idle_cov: float = 1.0,
    burstiness: float = 0.0,
    requests_per_busy: float = 1.0,
    together: bool = False,
    tick: Time | None = None,
    service: Time | None = None,
    requests: int | None = None,
    request_size: Size | None = None,
    read_share: float = 0.7,
    sequential: float = 0.0,
    phase: float = 1.0,
    capacity: Size | None = None,
    seed: int = 1,
) -> Trace:
    """Make a trace with given idle times, or like one of the papers'.

    Parameters
    ----------
    like
        The name of a trace of the papers: those of ``idlewise trace synth --help``. Else give ``idle_mean``.
    idle_mean, idle_cov
        Mean length of the idle intervals, and their coefficient of variation.
    burstiness
        How much likelier a long interval is after a long one.
    requests_per_busy
        Mean number of requests in a busy period.
    together
        All requests of a busy period arrive at once, instead of one while the one before is served.
    tick
        Idle intervals are multiples of this.
    service
        Mean service time of a request; 5 ms, unless given.
    requests
        Number of requests; 100,000, or that of the paper's, unless given.
    request_size
        Bytes of each request; 64 KiB, unless given.
    read_share, sequential
        Shares of requests that read, and that go on where the one before ended.
    phase
        Mean number of requests until reads and writes may change.
    capacity
        Size of the disk; 300 GB, unless given.
    seed
        The same seed gives the same trace.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.synth("sigmetrics2009-t1", requests=100).requests
    100
    """

def policies() -> list[tuple[str, str]]:
    """Names of the policies, and what they do.

    Examples
    --------
    >>> import idlewise as iw
    >>> dict(iw.policies())["back-to-back"]
    'issue whenever the disk is idle, 64KiB unless given'
    """

def formats() -> list[tuple[str, str]]:
    """Names of the formats that are read, and what they are.

    Examples
    --------
    >>> import idlewise as iw
    >>> "msr" in dict(iw.formats())
    True
    """

def first_arrival(lines: bytes) -> tuple[str, int] | None:
    """The format of these lines of a file and the first arrival in them, if its rows can be read one without the other."""

def open_found(path: str, folder: str) -> int | None:
    """A descriptor of a file that a pattern has found below a folder; none of what is not to be read, such as what lies behind a link of
    another user."""

def names_of_found(path: str, folder: str) -> list[tuple[str, bool]] | None:
    """The names in a folder that a pattern has found below a folder, and which are folders themselves; none of what lies behind a link of
    another user, or is gone."""

def state_of_found(path: str, folder: str) -> tuple[int, int, int, int, int] | None:
    """Mode, size, inode, and the times of the last changes of what a pattern has found below a folder; none of what lies behind a link of
    another user, or is gone."""

def is_mount_of_another(thing: int, folder: int) -> bool:
    """Whether a descriptor is of a file system in user space that another user has mounted in a folder: whoever asks it may wait for ever."""

def one_line(path: str) -> str:
    """A path as messages show it: without what a terminal would obey, or nobody sees."""

def half_of_free_memory() -> int | None:
    """Bytes: half of what is free to this process."""

def fleet_page(table: str, within: Time) -> str:
    """A page about the table of a fleet, which is JSON."""

def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, through no link of another user."""

def run_command(program: Path, arguments: Sequence[str]) -> int:
    """Run the command in this process; ``program`` starts it once more. Its exit code."""
