#!/usr/bin/env python3
"""Checks the numbers of `idlewise idle --json` against numpy, scipy and statsmodels.

    check.py IDLEWISE TRACE...

Requests come from `idlewise trace head`; idle intervals and every statistic of them are computed here anew. Prints what it
compared; exits with 1 and the differences if there are any.
"""

import json
import math
import subprocess
import sys
import warnings

import numpy as np
from scipy import stats
from statsmodels.regression.linear_model import yule_walker
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.tsa.stattools import acf

HOUR = 3600 * 10**9
# yule_walker announces that its result will have another type.
warnings.simplefilter("ignore", FutureWarning)


def run(program, *arguments):
    done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def nanoseconds(rows, name):
    return np.array([round(row[name] * 1e9) for row in rows], dtype=np.int64)


def idle_lengths(arrival, completion):
    """Gaps between maximal stretches with a request outstanding, in nanoseconds."""
    order = np.argsort(arrival, kind="stable")
    arrival, completion = arrival[order], completion[order]
    busy_until = np.maximum.accumulate(completion)
    gaps = arrival[1:] - busy_until[:-1]
    return gaps[gaps > 0]


class Check:
    def __init__(self, trace):
        self.trace, self.count, self.wrong = trace, 0, []

    def close(self, name, ours, oracle, relative=1e-9, absolute=1e-12):
        self.count += 1
        if ours is None or not math.isclose(ours, oracle, rel_tol=relative, abs_tol=absolute):
            self.wrong.append(f"{self.trace}: {name}: {ours} here, {oracle} by the oracle")


def check(program, trace):
    report = run(program, "idle", trace, "--json")
    rows = run(program, "trace", "head", "--requests", "100000000", trace, "--json")
    check = Check(trace)
    arrival, completion = nanoseconds(rows, "arrival_s"), nanoseconds(rows, "completion_s")
    volumes = np.array([row["volume"] for row in rows])
    by_volume = {name: idle_lengths(arrival[volumes == name], completion[volumes == name]) for name in set(volumes)}
    lengths = np.concatenate(list(by_volume.values()))
    seconds = lengths / 1e9

    # Moments and shares.
    check.close("intervals", report["idle_intervals"], len(lengths))
    check.close("mean", report["idle_mean_s"], np.mean(seconds))
    check.close("variance", report["idle_variance_s2"], np.var(seconds))
    check.close("cov", report["idle_cov"], stats.variation(seconds))
    longest = np.sort(lengths)[::-1][: max(1, round(0.15 * len(lengths)))]
    check.close("15 % longest", report["idle_share_longest_15pct"], longest.sum() / lengths.sum())
    for name, wait in (("10ms", 10**7), ("100ms", 10**8), ("1s", 10**9)):
        usable = np.maximum(lengths - wait, 0).sum() / lengths.sum()
        check.close(f"usable after {name}", report[f"usable_after_{name}"], usable)
    check.close("over 100 ms", report["longer_than_100ms"], np.mean(lengths > 10**8))

    # Periods by analysis of variance.
    hours = np.bincount(arrival // HOUR)
    check.close("hours", sum(abs(a - b) for a, b in zip(report["requests_per_hour"], hours)), 0)
    for period in report["periods"]:
        groups = [hours[phase :: period["hours"]] for phase in range(period["hours"])]
        oracle = stats.f_oneway(*groups)
        check.close(f"F of {period['hours']} h", period["f"], oracle.statistic, 1e-8)
        check.close(f"p of {period['hours']} h", period["p"], oracle.pvalue, 1e-6, 1e-290)

    # The sequence: autocorrelation and autoregression.
    sequence = by_volume[report["sequence_volume"]] / 1e9
    ours = report["autocorrelation"]
    oracle = acf(sequence, nlags=len(ours["lags"]), fft=True)[1:]
    for lag, (a, b) in enumerate(zip(ours["lags"], oracle), 1):
        check.close(f"autocorrelation at {lag}", a, b, 1e-7, 1e-9)
    check.close("Ljung-Box", ours["ljung_box_p"], acorr_ljungbox(sequence, lags=[20])["lb_pvalue"].iloc[0], 1e-6, 1e-290)
    model = report["autoregression"]
    n, most = len(sequence), int(10 * math.log10(len(sequence)))
    fits = {0: (np.array([]), np.std(sequence))}
    fits.update({order: yule_walker(sequence, order=order, method="mle") for order in range(1, most + 1)})
    criteria = {order: n * math.log(sigma**2) + 2 * (order + 1) for order, (_, sigma) in fits.items()}
    order = min(criteria, key=criteria.get)
    check.close("AR order", len(model["coefficients"]), order)
    for index, (a, b) in enumerate(zip(model["coefficients"], fits[order][0]), 1):
        check.close(f"AR coefficient {index}", a, b, 1e-6, 1e-8)
    check.close("AR variance", model["variance"], fits[order][1] ** 2, 1e-7)

    # Burstiness is a correlation of indicators; the ends of the series make a difference of about 1/n.
    long = sequence > sequence.mean()
    after = long[1:][long[:-1]].mean()
    check.close("burstiness", report["burstiness"], (after - long.mean()) / (1 - long.mean()))

    # Hazard: the total time on test, and events over exposure.
    for name, age in (("hazard_test", 0), ("hazard_test_after_100ms", 10**8)):
        rest = np.sort(lengths[lengths > age]) - age
        if len(rest) < 10 or report[name] is None:
            continue
        count = len(rest)
        spacings = np.diff(np.concatenate([[0], rest])) * (count - np.arange(count))
        until = np.cumsum(spacings.astype(float))
        z = (np.sum(until[:-1]) / until[-1] - (count - 1) / 2) / math.sqrt((count - 1) / 12)
        check.close(f"{name} z", report[name]["z"], z, 1e-7)
        check.close(f"{name} p", report[name]["p"], stats.norm.cdf(z), 1e-6, 1e-290)
    for bin in report["hazard"]:
        begin, end = round(bin["from_s"] * 1e9), round(bin["to_s"] * 1e9)
        exposure = np.clip(lengths, begin, end) - begin
        ended = np.sum((lengths > begin) & (lengths <= end))
        check.close(f"hazard from {begin} ns", bin["per_s"], ended / (exposure.sum() / 1e9), 1e-7)

    # The histogram is exact at its pairs.
    ordered = np.sort(seconds)
    check.close("pairs of the histogram", max(0, len(report["cdh"]) - 1000), 0)
    for length, share in report["cdh"]:
        check.close(f"C({length})", share, np.searchsorted(ordered, length + 5e-10, side="right") / len(ordered))
    return check


def main():
    wrong = []
    for trace in sys.argv[2:]:
        done = check(sys.argv[1], trace)
        print(f"{trace}: {done.count} numbers compared, {len(done.wrong)} differ")
        wrong += done.wrong
    print("\n".join(wrong[:40]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
