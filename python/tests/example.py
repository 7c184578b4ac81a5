"""Typed as the package says: mypy --strict and strict pyright pass."""

# pyright: strict

from datetime import timedelta

import idlewise as iw


class TwoStep(iw.Policy):
    def __init__(self, past: iw.Idleness) -> None:
        self.wait = sorted(row["idle_mean_s"] for row in past.by_volume().rows())[0]

    def decide(self, elapsed_ns: int) -> iw.Wait | iw.Issue | None:
        return iw.Wait("1s") if elapsed_ns < 10**9 else iw.Issue("256KiB", None)


def plan(path: str) -> iw.Plan:
    idle = iw.scan(path, volumes="hm_*").idle(disk=iw.Disk.preset("15k"))
    best: iw.Plan = iw.tune(idle, mean_slowdown=timedelta(milliseconds=1), max_slowdown=50_000_000)
    own: iw.Outcome = iw.simulate(idle, TwoStep)
    named = iw.simulate(idle, "waiting", idle_wait="1s", request_size=65536)
    table: iw.Table = iw.compare(idle, ["waiting", TwoStep, best])
    print(own.mean_slowdown_ns < named.mean_slowdown_ns, len(table))
    return best
