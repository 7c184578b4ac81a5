"""Policies by name, as plans, and written in Python."""

import gc
import weakref

import pytest

import idlewise as iw


class Waits(iw.Policy):
    """What the policy ``waiting`` does, in Python."""

    def decide(self, elapsed_ns):
        return iw.Wait("30ms") if elapsed_ns < 30_000_000 else iw.Issue("256KiB", None)


def test_a_policy_in_python_does_what_the_same_in_rust_does(idle):
    rust = iw.simulate(idle, "waiting", idle_wait="30ms", request_size="256KiB")
    ours = iw.simulate(idle, Waits)
    assert ours.to_dict() == rust.to_dict() and ours.collisions > 0
    assert ours.policy == "Waits"

    class OneByOne(Waits):
        def decide(self, elapsed_ns):
            return iw.Wait(30_000_000) if elapsed_ns < 30_000_000 else iw.Issue(256 << 10)

    assert iw.simulate(idle, OneByOne).to_dict() == rust.to_dict()


def test_it_is_made_for_each_volume_and_told_what_happens(idle):
    seen = []

    class Curious:
        def __init__(self, past):
            seen.append((past.volumes, past.intervals))
            self.told = []

        def decide(self, elapsed_ns):
            assert elapsed_ns == 0
            return None

        def idle_began(self, busy_ns, at_ns):
            assert busy_ns > 0 and at_ns > 0

        def foreground_arrived(self, idle_ns, collision_ns):
            assert idle_ns > 0 and collision_ns == 0

    assert iw.simulate(idle, Curious).background_requests == 0
    assert seen == [([name], one.intervals) for name, one in idle.items()]


@pytest.mark.parametrize("where", ["__init__", "decide", "foreground_arrived"])
def test_its_exceptions_surface(idle, where):
    def fail(*_):
        raise ZeroDivisionError("mine")

    policy = type("Fails", (Waits,), {where: fail})
    with pytest.raises(ZeroDivisionError, match="mine"):
        iw.simulate(idle, policy)
    with pytest.raises(ZeroDivisionError, match="mine"):
        iw.compare(idle, ["waiting", policy])


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [(7, TypeError, "not int"), (iw.Wait(0), ValueError, "which is over")],
)
def test_answers_that_mean_nothing_are_refused(idle, answer, error, why):
    policy = type("Wrong", (), {"__init__": lambda self, past: None, "decide": lambda self, elapsed: answer})
    with pytest.raises(error, match=why):
        iw.simulate(idle, policy)


def test_plans_and_budgets(idle):
    plan = iw.tune(idle, mean_slowdown="500us", max_slowdown="20ms")
    done = iw.simulate(idle, plan)
    assert done.mean_slowdown_ns <= 500_000 and done.max_slowdown_ns <= 20_000_000
    same = iw.simulate(idle, "waiting", idle_wait=plan.idle_wait_ns, request_size=plan.request_size)
    assert same.to_dict() == done.to_dict()
    held = iw.simulate(idle, plan, budget="50us")
    assert held.mean_slowdown_ns < done.mean_slowdown_ns
    with pytest.raises(iw.IdlewiseError, match="a plan takes no idle_wait"):
        iw.simulate(idle, plan, idle_wait="1s")


def test_what_cannot_run_is_said(idle):
    for policy, parameters, why in [
        ("waiting", {}, "needs"),
        ("no-such", {}, "no policy 'no-such'"),
        ("waiting", {"idle_wait": "1 fortnight", "request_size": 512}, "fortnight"),
        ("waiting", {"idle_weight": "1s"}, "no policy takes 'idle_weight'"),
        ("cfq-idle", {"idle_wait": "1s"}, "takes no idle_wait"),
        (Waits, {"idle_wait": "1s"}, "takes no idle-?_?wait"),
    ]:
        with pytest.raises(iw.IdlewiseError, match=why):
            iw.simulate(idle, policy, **parameters)
    with pytest.raises(TypeError, match="give the class"):
        iw.simulate(idle, Waits(idle))
    with pytest.raises(iw.NoPlan, match="allow at least"):
        iw.tune(idle, mean_slowdown="1ms", max_slowdown="1us")
    with pytest.raises(iw.IdlewiseError, match="says what to tune for"):
        iw.tune(idle)


def test_compare_takes_own_policies_beside_others(idle):
    rows = iw.compare(idle, ["cfq-idle", Waits]).rows()
    assert rows[-1]["policy"] == "Waits"
    assert rows[-1]["utilised_idle"] == iw.simulate(idle, Waits).utilised_idle
    first, rest = idle.split(0.5)
    trained = iw.compare(rest, ["ar"], train=first)
    assert "trained_utilised_idle" in trained.column_names


def test_own_policies_learn_from_the_part_to_train_on(idle):
    first, rest = idle.split(0.5)
    seen = []

    class Learns(Waits):
        def __init__(self, past):
            seen.append((past.volumes, past.intervals, past.end_ns))

    row = iw.compare(rest, [Learns], train=first).rows()[0]
    # Once for each part that it runs on.
    assert seen == 2 * [([volume], first[volume].intervals, first[volume].end_ns) for volume in rest.volumes]
    for part, prefix in [(rest, ""), (first, "trained_")]:
        outcome = iw.simulate(part, Waits)
        told = (row[prefix + "utilised_idle"], row[prefix + "collision_rate"])
        assert told == (outcome.utilised_idle, outcome.collision_rate)


def test_what_is_misspelt_is_told_what_there_is(idle):
    with pytest.raises(KeyError, match=f"no volume 'zz'; there is {idle.volumes[0]}"):
        idle["zz"]
    with pytest.raises(ValueError, match="no disk '14k'; there is 15k"):
        iw.tune(idle, disk="14k", mean_slowdown="1ms")


def test_nothing_of_it_stays(idle):
    class Short(Waits):
        pass

    iw.simulate(idle, Short)
    gone = weakref.ref(Short)
    del Short
    gc.collect()
    assert gone() is None


def test_one_that_simulates_itself_without_end_is_stopped(idle):
    class Within(Waits):
        def decide(self, elapsed_ns):
            return iw.simulate(idle, Within) and None

    with pytest.raises(RecursionError, match="too many"):
        iw.simulate(idle, Within)
