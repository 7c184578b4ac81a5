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
    "open_found",
    "replace_file",
    "run_command",
    "sample",
    "simulate",
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
    """

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Trace:
    """Requests, from ``scan`` or ``synth``. As Arrow it streams them: arrival, issue, completion, offset, length, op, volume."""

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
    def name(self) -> str: ...
    @property
    def volumes(self) -> list[str]:
        """Names of the volumes. The first question reads the trace once."""
    @property
    def requests(self) -> int: ...
    @property
    def provenance(self) -> dict[str, Any]:
        """Where the trace comes from: format, compression, clock, and what was left out."""
    def idle(self, *, disk: DiskLike | None = None, progress: Progress | None = None) -> Idleness:
        """Reduce the requests to idle times, in one pass and in flat memory.

        Requests without a recorded response are served by the model of a disk, ``15k`` unless another is given.

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
    """The idle times of disks, by volume. As Arrow: a row an interval, with volume, begin, length, followers and busy_before."""

    @staticmethod
    def merge(parts: Sequence[Partial]) -> Idleness:
        """Put parts of a trace together, exactly, in any order."""
    @property
    def volumes(self) -> list[str]: ...
    @property
    def disk(self) -> Disk:
        """The model that served what was not recorded, and that simulations take."""
    @property
    def source(self) -> dict[str, Any]: ...
    @property
    def requests(self) -> int: ...
    @property
    def intervals(self) -> int: ...
    @property
    def idle_ns(self) -> int: ...
    @property
    def begin_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def origin_ns(self) -> int:
        """What is added to times for those on the source's clock."""
    def __len__(self) -> int: ...
    def __contains__(self, volume: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, volume: str, /) -> Idleness: ...
    def __eq__(self, other: object, /) -> bool: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[Idleness]: ...
    def items(self) -> list[tuple[str, Idleness]]: ...
    def profile(self) -> dict[str, Any]:
        """Everything that ``idlewise idle --json`` says of these disks together."""
    def statistics(self) -> dict[str, Any]:
        """The numbers of the profile alone, without what depends on the order of intervals."""
    def by_volume(self) -> Table:
        """The statistics of each volume, a row each."""
    def split(self, share: float) -> tuple[Idleness, Idleness]:
        """What came before and after a share of the time."""
    def report(self, path: Path | None = None) -> str:
        """The page of ``idlewise idle --report``, written to a file if one is given."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Partial:
    """Idle times of parts of a trace, put together exactly: those of a stream, of files, or of the tasks of a fleet.

    Times are on the source's clock. ``origin_ns`` is what counts as zero; give the first arrival of the whole trace for the hours
    that one pass over it would count. Parts of which all requests arrived at the same moment are taken in the order in which they are given.

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
        """Add requests, which must not be of the time of others that were added. What is kept of them takes no more memory than
        ``memory_limit``, or half of what is free, or it raises an error."""
    def merge(self, *others: Partial) -> Partial:
        """These parts and those of others."""
    @property
    def volumes(self) -> list[str]: ...
    @property
    def memory(self) -> int:
        """Bytes of memory at most, with all that is computed from it at a time."""
    def __getitem__(self, volume: str, /) -> Partial:
        """The parts of one volume."""
    def to_bytes(self) -> bytes:
        """The parts as bytes: a cell of a table, a file, or a message. Disk and origin are not in them."""
    @staticmethod
    def from_bytes(data: bytes, *, disk: DiskLike | None = None, origin_ns: int = 0) -> Partial: ...
    @staticmethod
    def _of(data: bytes, disk: Disk, origin_ns: int) -> Partial: ...
    def idle(self) -> Idleness: ...

@final
class Disk:
    """How long a disk takes for requests: a preset, or what ``idlewise probe`` measured.

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.Disk.preset("15k").verify_time_ns("64KiB") > 0
    True
    """

    @staticmethod
    def load(path: Path) -> Disk: ...
    @staticmethod
    def parse(toml: str) -> Disk: ...
    @staticmethod
    def preset(name: str) -> Disk: ...
    @staticmethod
    def presets() -> list[tuple[str, str]]: ...
    @property
    def name(self) -> str: ...
    def verify_time_ns(self, size: Size) -> int:
        """How long a read of this size takes that moves no data to the host."""
    def to_toml(self) -> str: ...
    def save(self, path: Path) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Plan:
    """What to do in the gaps. ``save`` writes the file that ``idlewise scrub --plan`` reads."""

    @staticmethod
    def load(path: Path) -> Plan: ...
    @staticmethod
    def parse(toml: str) -> Plan: ...
    def to_toml(self) -> str: ...
    def save(self, path: Path) -> None: ...
    @property
    def request_size(self) -> int: ...
    @property
    def idle_wait_ns(self) -> int: ...
    @property
    def predicted(self) -> dict[str, Any]:
        """What it did in simulation: slowdowns in nanoseconds, throughput in bytes per second."""
    @property
    def goal(self) -> dict[str, Any]: ...
    @property
    def is_shaped(self) -> bool:
        """Whether it has steps instead of one wait and one size."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Wait:
    """Ask again when the disk has been idle for so long."""

    def __new__(cls, until: Time) -> Wait: ...
    @property
    def until_ns(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Issue:
    """Issue one request of a size, or ``count`` one after the other; ``None`` for as many as fit."""

    def __new__(cls, size: Size, count: int | None = ...) -> Issue: ...
    @property
    def size(self) -> int: ...
    @property
    def count(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Outcome:
    """What a policy did on a trace, in simulation."""

    @property
    def policy(self) -> str: ...
    @property
    def scrubbed_bytes(self) -> int: ...
    @property
    def background_requests(self) -> int: ...
    @property
    def collisions(self) -> int: ...
    @property
    def collision_rate(self) -> float:
        """Collisions per foreground request."""
    @property
    def mean_slowdown_ns(self) -> int:
        """Mean of all foreground requests, cut to whole nanoseconds."""
    @property
    def slowdown_p99_ns(self) -> int: ...
    @property
    def max_slowdown_ns(self) -> int: ...
    @property
    def throughput_bytes_per_s(self) -> float: ...
    @property
    def ran_ns(self) -> int:
        """Idle time that was used, of all disks together."""
    @property
    def useful_ns(self) -> int | None:
        """Of a command: how long it was at work for what need not be done again. ``None`` for a scrub."""
    @property
    def utilised_idle(self) -> float:
        """Share of the idle time that was used."""
    @property
    def relative_delay(self) -> float | None:
        """Added over original response time; ``None`` where that is not known."""
    def to_dict(self) -> dict[str, Any]:
        """The numbers of ``idlewise simulate --json``."""

@final
class SamplingPlan:
    """The few intervals that stand for a trace. ``save`` writes the file that ``idlewise replay`` takes."""

    @staticmethod
    def load(path: Path) -> SamplingPlan: ...
    def to_toml(self) -> str: ...
    def save(self, path: Path) -> None: ...
    @property
    def interval_ns(self) -> int: ...
    @property
    def representatives(self) -> Table: ...
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

    Give ``mean_slowdown``, or ``finish_within`` for the gentlest plan whose pass over ``capacity`` takes no longer. ``any_moment``
    keeps the goal also if foreground requests arrive at other moments than recorded. ``shaped`` also tries steps.

    Raises
    ------
    NoPlan
        If no plan keeps the goal.

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", idle_cov=3.0, requests=5000).idle()
    >>> iw.tune(idle, mean_slowdown="1ms", max_slowdown="50ms").request_size % 512
    0
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
    """A plan for each volume, a row each. Where there is none, the column ``error`` says why."""

def frontier(
    idle: Idleness,
    *,
    max_slowdown: Time | None = None,
    any_moment: bool = False,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> Table:
    """Throughput against slowdown, for many sizes and waits."""

def baselines(idle: Idleness, plan: Plan | None = None, *, disk: DiskLike | None = None) -> Table:
    """What the usual schedules do on the same idle times."""

def simulate(
    idle: Idleness,
    policy: PolicyLike,
    *,
    overruns: Time | list[Time] | dict[str, Any] | None = None,
    opening: Time | None = None,
    piece: Time | None = None,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
    **parameters: Time | Size | float,
) -> Outcome:
    """Run one policy over the idle times.

    ``parameters`` are those of the policy, by the names of the command's options: ``idle_wait="100ms"``.

    With ``overruns`` a command runs in the gaps, as ``idlewise run`` holds it, instead of a scrub. They are how long foreground requests
    wait until it is held: a time, a list of times of which each is as likely, or what ``idlewise run --json`` measured, which is
    ``report["disks"][0]["overruns"]``. ``opening`` is the time until the command is at work, each time it goes on. With ``piece`` it works in
    pieces of that time: one that is cut in its first half is done again, else the foreground waits for its end.

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

    Examples
    --------
    >>> import idlewise as iw
    >>> idle = iw.synth(idle_mean="200ms", requests=1000).idle()
    >>> [row["request_size_bytes"] for row in iw.grid(idle, ["64KiB", "1MiB"], ["10ms", "100ms"]).rows()]
    [65536, 65536, 1048576, 1048576]
    """

def compare(
    idle: Idleness,
    policies: Sequence[PolicyLike] | None = None,
    *,
    request_size: Size | None = None,
    train: Idleness | None = None,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> Table:
    """How much idle time each policy uses, and how often it collides.

    A policy by name runs with many parameters, a row each. Your own runs once.
    """

def explore(
    idle: Idleness,
    *,
    relative_delay: float = 0.07,
    request_size: Size | None = None,
    disk: DiskLike | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """All pairs of an idle wait and a busy period, as ``idlewise explore --json`` says them."""

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

    They are drawn by lot: 50 of them, or ``intervals``, or as many as it is expected to take for the estimate to be off by no more than
    the share ``error``, with a confidence of 95 %. With ``rule`` (``"bic"``, ``"bic90"``, ``"fk"``) or ``features`` intervals are
    clustered as in the paper, and nobody knows how far off the estimate may be.
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
    """Mean times to data loss with passes of this length, in seconds.

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

    Examples
    --------
    >>> import idlewise as iw
    >>> iw.synth("sigmetrics2009-t1", requests=100).requests
    100
    """

def policies() -> list[tuple[str, str]]:
    """Names of the policies, and what they do."""

def formats() -> list[tuple[str, str]]:
    """Names of the formats that are read, and what they are."""

def first_arrival(lines: bytes) -> tuple[str, int] | None:
    """The format of these lines of a file and the first arrival in them, if its rows can be read one without the other."""

def open_found(path: str, folder: str) -> int | None:
    """A descriptor of a file that a pattern has found below a folder; none of what is not to be read, such as what lies behind a link of
    another user."""

def half_of_free_memory() -> int | None:
    """Bytes: half of what is free to this process."""

def fleet_page(table: str, within: Time) -> str:
    """A page about the table of a fleet, which is JSON."""
    ...

def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, through no link of another user."""

def run_command(program: Path, arguments: Sequence[str]) -> int: ...
