"""What Python says is what the command says: the same numbers, not close ones."""

import json
import os
import pathlib

import polars as pl
import pytest

import idlewise as iw

NAMES = [
    "hplajw.1week.srt",
    "msr/hm_0.excerpt.csv",
    "msr/wdev_1.csv",
    "cloudPhysicsIO.vscsi",
    "blkreplay_linux-mysql.load.gz",
    "blktrace-hadoop/nvme.blkparse.txt.xz",
    "nexus5/log146_callIn.txt.xz",
    "pixel6a/genshin_impact_exec.csv.gz",
]
OURS = {"idlewise"}


@pytest.fixture(params=["made", *NAMES])
def path(request, made):
    if request.param == "made":
        return made
    folder = os.environ.get("IDLEWISE_TRACES")
    if not folder:
        pytest.skip("IDLEWISE_TRACES is not set: no shared traces")
    return pathlib.Path(folder) / request.param


def same(ours, theirs, names=None):
    """Each number of ours is the command's."""
    assert ours
    for name, value in ours.items():
        if names is None or name in names:
            assert theirs[name] == value, name


def test_idle(path, command):
    said = command("idle", path)
    idle = iw.scan(path).idle()
    profile = idle.profile()
    same(profile, said)
    assert set(said) - set(profile) == {"volumes", *idle.source} | OURS & set(said)
    same(idle.source, said)
    rows = idle.by_volume().rows()
    assert [row["volume"] for row in rows] == [volume["volume"] for volume in said["volumes"]]
    for row, volume in zip(rows, said["volumes"]):
        same(row, volume)


def test_simulate(path, command):
    idle = iw.scan(path).idle(disk="nearline")
    options = ["--disk", "nearline", "--idle-wait", "30ms", "--request-size", "256KiB"]
    said = command("simulate", path, "--policy", "waiting", *options)
    outcome = iw.simulate(idle, "waiting", idle_wait="30ms", request_size="256KiB")
    same(outcome.to_dict(), said)
    assert outcome.max_slowdown_ns == round(said["max_slowdown_s"] * 1e9)


def test_tune(path, command, tmp_path):
    goal = ["--mean-slowdown", "500us", "--max-slowdown", "20ms"]
    said = command("tune", path, *goal, "--out", tmp_path / "command.toml")
    idle = iw.scan(path).idle()
    if not said["background_requests"]:
        with pytest.raises(iw.NoPlan):
            iw.tune(idle, mean_slowdown="500us", max_slowdown="20ms")
        return
    plan = iw.tune(idle, mean_slowdown="500us", max_slowdown="20ms")
    assert plan.to_toml() == (tmp_path / "command.toml").read_text()
    assert plan == iw.Plan.load(tmp_path / "command.toml")
    outcome = iw.simulate(idle, plan).to_dict()
    same(outcome, said, set(said))
    ours = iw.baselines(idle, plan).rows()
    assert [row["name"] for row in ours] == [base["name"] for base in said["baselines"]]
    for row, base in zip(ours, said["baselines"]):
        same({name: value for name, value in row.items() if value is not None}, base)


def test_tune_each(made, command):
    goal = ["--mean-slowdown", "500us", "--max-slowdown", "20ms"]
    said = command("tune", made, *goal, "--by-volume")
    rows = iw.tune_each(iw.scan(made).idle(), mean_slowdown="500us", max_slowdown="20ms").rows()
    assert [row["volume"] for row in rows] == [one["volume"] for one in said]
    for row, one in zip(rows, said):
        same(row, one, set(one) - {"warnings"})
        assert row["warnings"] == "; ".join(one["warnings"]).replace("--any-moment", "any_moment=True")
        assert row["error"] is None
    failed = pl.DataFrame(iw.tune_each(iw.scan(made).idle(), mean_slowdown="500us", max_slowdown="1us"))
    assert failed["error"].str.contains("allow at least").to_list() == [True, True]
    kept = pl.DataFrame(iw.tune_each(iw.scan(made).idle(), mean_slowdown="500us", max_slowdown="20ms"))
    for column in ["warnings", "error"]:
        assert kept.schema[column] == failed.schema[column] == pl.String


def test_a_row_holds_its_whole_plan(made):
    idle = iw.scan(made).idle()
    simple, shaped = (iw.tune_each(idle, mean_slowdown="500us", max_slowdown="20ms", shaped=shaped) for shaped in [False, True])
    assert pl.DataFrame(simple).schema == pl.DataFrame(shaped).schema
    assert any(iw.Plan.parse(row["plan"]).is_shaped for row in shaped.rows())
    for row in [*simple.rows(), *shaped.rows()]:
        plan = iw.Plan.parse(row["plan"])
        outcome = iw.simulate(idle[row["volume"]], plan)
        assert (outcome.to_dict()["mean_slowdown_s"], outcome.scrubbed_bytes) == (row["mean_slowdown_s"], row["scrubbed_bytes"])
        assert plan.is_shaped == ("then of other sizes" in repr(plan))


def test_tables_of_plans_have_the_same_columns(made):
    tables = [
        pl.DataFrame(iw.tune_each(iw.scan(made, volumes=volume).idle(), mean_slowdown="500us", max_slowdown=most))
        for volume, most in [("host_0", "20ms"), ("host_1", "1us")]
    ]
    assert tables[0].schema == tables[1].schema and len(pl.concat(tables)) == 2


def test_responses_are_recorded_or_not_by_volume():
    arrival = [k * 200_000_000 for k in range(400)]
    requests = pl.DataFrame({
        "arrival": arrival, "offset": 0, "length": 4096, "op": "read", "volume": ["a", "b"] * 200,
        "response": [1_000_000, None] * 200,
    })
    both = iw.scan(requests).idle()
    delay = {name: iw.simulate(both[name], "waiting", idle_wait="10ms", request_size="64KiB").relative_delay for name in both}
    assert delay["a"] > 0 and delay["b"] is None
    alone = iw.scan(requests.filter(pl.col("volume") == "b")).idle()
    assert iw.simulate(alone, "waiting", idle_wait="10ms", request_size="64KiB").relative_delay is None


def test_fixed_parameters_are_compared_as_they_are_simulated(made):
    first, rest = iw.scan(made).idle().split(0.5)
    fixed = {"idle_wait": "50ms", "request_size": "64KiB"}
    row = iw.compare(rest, [("waiting", fixed)], train=first).rows()[0]
    outcome = iw.simulate(rest, "waiting", **fixed).to_dict()
    for name in ["utilised_idle", "collision_rate", "mean_slowdown_s", "throughput_bytes_per_s"]:
        assert row[name] == outcome[name]
    assert row["idle_wait_s"] == 0.05
    seen = []

    class Looks(iw.Policy):
        def __init__(self, past):
            seen.append(past.volumes + [past.intervals])

        def decide(self, elapsed_ns):
            return None

    iw.simulate(rest, Looks, train=first)
    assert seen == [[name, first[name].intervals] for name in rest]


def test_a_file_that_is_no_plan_may_be_as_long_as_it_likes(tmp_path):
    path = tmp_path / "plan.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for load in [iw.Plan.load, iw.Disk.load, iw.SamplingPlan.load]:
        with pytest.raises(iw.IdlewiseError, match="is larger than 16 MiB"):
            load(path)


def test_misspelt_keywords_are_told_with_those_that_there_are(made):
    idle = iw.scan(made).idle()
    with pytest.raises(TypeError, match="no keyword 'mean_slowdwn'; there are mean_slowdown, "):
        iw.tune(idle, mean_slowdwn="1ms")
    with pytest.raises(iw.IdlewiseError, match="no policy takes 'idle_wiat'; there are .*idle_wait"):
        iw.simulate(idle, "waiting", idle_wiat="1s")


def test_a_plan_says_what_to_be_careful_about(made, command, tmp_path):
    said = command("tune", made, "--volume", "host_0", "--mean-slowdown", "500us", "--max-slowdown", "20ms")
    plan = iw.tune(iw.scan(made, volumes="host_0").idle(), mean_slowdown="500us", max_slowdown="20ms")
    assert plan.warnings == [line.replace("--any-moment", "any_moment=True") for line in said["warnings"]] != []
    plan.save(tmp_path / "plan.toml")
    assert iw.Plan.load(tmp_path / "plan.toml").warnings == []


def test_grid(path, command):
    said = command("simulate", path, "--grid", "64KiB,1MiB", "10ms..50ms")
    table = iw.grid(iw.scan(path).idle(), ["1MiB", "64KiB", 65_536], ["50ms", "10ms", "20ms"])
    for row, cell in zip(table.rows(), said["cells"], strict=True):
        same({name: value for name, value in row.items() if value is not None}, cell)
    with pytest.raises(ValueError, match="at least 512"):
        iw.grid(iw.scan(path).idle(), [100], ["10ms"])


def test_a_command_in_the_gaps(path, command, tmp_path):
    idle = iw.scan(path).idle()
    measured = {"uses": 40, "count": 30, "percentiles_s": [0.001, 0.004, 0.02]}
    report = tmp_path / "run.json"
    report.write_text(json.dumps({"disks": [{"overruns": measured}]}))
    wait = ["--idle-wait", "20ms"]
    for given, overruns, options, more in [
        ("8ms", "8ms", ["--budget", "1ms"], {"budget": "1ms"}),
        ("2ms,5ms,40ms", ["2ms", 5_000_000, "40ms"], ["--opening", "5ms"], {"opening": "5ms"}),
        (report, measured, ["--piece", "100ms"], {"piece": "100ms"}),
    ]:
        said = command("simulate", path, "--run", given, *wait, *options)
        outcome = iw.simulate(idle, "waiting", idle_wait="20ms", overruns=overruns, **more)
        same(outcome.to_dict(), said)
        assert outcome.useful_ns <= outcome.ran_ns + (100_000_000 if given == report else 0) * outcome.background_requests
        assert outcome.useful_ns / 1e9 == pytest.approx(said["useful_s"])
    assert iw.simulate(idle, "waiting", idle_wait="20ms", request_size="64KiB").useful_ns is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"opening": "5ms"}, "give its overruns"),
        ({"overruns": []}, "empty list"),
        ({"overruns": {"count": 3}}, "neither times nor"),
        ({"overruns": {"count": 0, "uses": 3, "percentiles_s": [0.1]}}, "no foreground request came"),
        ({"overruns": {"count": 3, "uses": 3, "percentiles_s": [float("nan")]}}, "neither times nor"),
        ({"overruns": "soon"}, "soon"),
    ],
)
def test_what_is_no_overrun_is_refused(idle, more, said):
    with pytest.raises(ValueError, match=said):
        iw.simulate(idle, "waiting", idle_wait="20ms", **more)


def test_a_policy_that_ends_by_itself_runs_no_command(idle):
    with pytest.raises(ValueError, match="restrained has another"):
        iw.simulate(idle, "restrained", idle_wait="20ms", busy_period="1s", overruns="8ms")


def test_finish_within(made, command):
    said = command("tune", made, "--finish-within", "400d", "--capacity", "1TB")
    plan = iw.tune(iw.scan(made).idle(), finish_within="400d", capacity="1TB")
    assert plan.goal["mean_slowdown_ns"] == round(said["goal"]["mean_slowdown_s"] * 1e9)
    assert plan.request_size == said["request_size_bytes"]


def test_compare(made, command):
    said = command("compare", made, "--policies", "waiting,oracle,ar")
    rows = iw.compare(iw.scan(made).idle(), ["waiting", "oracle", "ar"]).rows()
    assert len(rows) == len(said["points"])
    for row, point in zip(rows, said["points"]):
        flat = {**point, **point["parameters"]}
        same({name: value for name, value in row.items() if value is not None}, flat)


def test_explore(made, command):
    said = command("explore", made)
    same(iw.explore(iw.scan(made).idle()), said)


def test_frontier_holds_the_plan(idle):
    table = iw.frontier(idle, max_slowdown="20ms").rows()
    assert {row["policy"] for row in table} == {"fixed", "exponential", "linear", "swapping"}
    plan = iw.tune(idle, mean_slowdown="500us", max_slowdown="20ms")
    within = [row["throughput_bytes_per_s"] for row in table if row["policy"] == "fixed" and row["mean_slowdown_s"] <= 5e-4]
    assert max(within) <= iw.simulate(idle, plan).throughput_bytes_per_s * 1.001


def test_sample(made, command, tmp_path):
    path = made
    said = command("sample", path, "--interval", "1s", "--seed", "3")
    plan = iw.sample(iw.scan(path), interval="1s", seed=3)
    same(plan.outcome, said)
    for row, one in zip(plan.representatives.rows(), said["representatives"], strict=True):
        same(row, one)
    plan.save(tmp_path / "plan.toml")
    assert iw.SamplingPlan.load(tmp_path / "plan.toml").to_toml() == plan.to_toml()
    means = [0.001] * len(plan.representatives)
    assert plan.estimate(means)[0] == pytest.approx(0.001, rel=0.05)
    for none in (float("nan"), float("inf"), -0.001):
        with pytest.raises(ValueError, match="no mean response time"):
            plan.estimate([none] + means[1:])


def test_reliability(command):
    said = command("reliability", "--scan-time", "30d", "--temporal", "0.5")
    same(iw.reliability("30d", temporal=0.5), said)


@pytest.mark.parametrize("options", [{}, {"rebuild_in_gaps": True, "read_errors": 1e15}, {"capacity": "4TB", "failures": 0.02, "play": 2000}])
def test_array(command, options):
    said = {"rebuild_in_gaps": "--rebuild-in-gaps", "read_errors": "--read-errors", "capacity": "--capacity", "failures": "--failures", "play": "--play"}
    more = [word for name, value in options.items() for word in ([said[name]] if value is True else [said[name], str(value)])]
    same(iw.array("raidz2:10", ["14d", "60d"], **options), command("array", "raidz2:10", "--pass", "14d,60d", *more))
    for wrong in ({"failures": 1.0}, {"age": "0s"}, {"rebuild": "1d", "rebuild_in_gaps": True}, {"read_errors": 1.0}, {"play": 0}):
        with pytest.raises(ValueError):
            iw.array("mirror:2", ["14d"], **wrong)
    with pytest.raises(ValueError, match="raid6"):
        iw.array("raid7:5", [])


def test_trace_info(path, command):
    said = command("trace", "info", path)
    trace = iw.scan(path)
    assert (trace.requests, trace.volumes) == (said["requests"], said["volumes"])
    assert trace.provenance["format"] == said["format"]
    assert trace.provenance["resolution_ns"] == round(said["resolution_s"] * 1e9)


def test_synth(command, tmp_path):
    out = tmp_path / "made.parquet"
    command("trace", "synth", "--like", "sigmetrics2009-t1", "--requests", "2000", "--seed", "7", "--out", out)
    ours = iw.synth("sigmetrics2009-t1", requests=2000, seed=7).idle()
    assert ours.requests == 2000
    assert ours.intervals == iw.scan(out).idle().intervals
