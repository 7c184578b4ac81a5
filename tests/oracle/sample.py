#!/usr/bin/env python3
"""Checks the numbers of `idlewise sample --json` against numpy and scikit-learn.

    sample.py IDLEWISE TRACE...

Requests come from `idlewise trace head`; every feature of every interval, means and errors are computed here anew, and k-means
is scikit-learn's. Prints what it compared; exits with 1 and the differences if there are any.
"""

import json
import math
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.preprocessing import scale

INTERVAL = 10 * 10**9
LEVELS, QUEUE, FAR, SECTOR = 16, 32, 128 * 1024, 512
PAPERS = ["Arq", "Wsl", "Rnd", "Ant", "Ent", "Tre", "Ate"]


def run(program, *arguments):
    done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def entropy(letters):
    """The mean over the levels; a letter is a space and a bucket in it."""
    levels = [Counter((space, bucket >> level) for space, bucket in letters) for level in range(LEVELS)]
    return np.mean([stats.entropy(list(counts.values()), base=2) for counts in levels])


def features_of(rows, travels):
    """The eleven features of one interval's requests, from (arrival, volume, offset, length, read) and travel distances."""
    count, traffic, travel = len(rows), sum(row[3] for row in rows), sum(travels)
    sectors = set()
    for _, volume, offset, length, _ in rows:
        if length:
            sectors.update((volume, sector) for sector in range(offset // SECTOR, (offset + length - 1) // SECTOR + 1))
    working_set = len(sectors) * SECTOR
    return {
        "Rnd": sum(distance > FAR for distance in travels) / count,
        "Rd": sum(row[4] for row in rows) / count,
        "Mss": traffic,
        "Cnt": count,
        "Ant": entropy([(row[1], row[2] // SECTOR) for row in rows]),
        "Ent": entropy([(0, (row[0] % INTERVAL << LEVELS) // INTERVAL) for row in rows]),
        "Wst": working_set,
        "Wsl": traffic / working_set if working_set else 1,
        "Arq": traffic / count,
        "Tre": travel,
        "Ate": travel / count,
    }


def sizes_of(intervals, indices):
    """The size of each interval, and by what they are ordered: from what five disks that are made up would do, in nanoseconds."""
    free, last, times = defaultdict(lambda: [0] * 5), {}, defaultdict(lambda: [0.0] * 5)
    for index in indices:
        for arrival, volume, _, length, is_read in intervals[index]:
            sleeps = volume not in last or arrival - last[volume] >= 10 * 10**9
            last[volume] = arrival
            services = [500_000 + 10 * length, 20_000_000 + 250 * length, 40_000_000 + 500 * length, *[500_000 + 10 * length] * 2]
            answers = []
            for disk, service in enumerate(services):
                # The last one buffers its writes.
                if disk == 4 and not is_read:
                    answers.append(0)
                    continue
                begin = min(max(arrival, free[volume][disk]), arrival + 10 * 10**9)
                free[volume][disk] = begin + service + (100_000_000 if sleeps and disk == 3 else 0)
                answers.append(free[volume][disk] - arrival)
            answers[3] -= answers[0]
            times[index] = [sum(pair) for pair in zip(times[index], answers)]
    columns = [
        [len(intervals[index]) for index in indices],
        [sum(row[3] for row in intervals[index]) for index in indices],
        *zip(*[times[index] for index in indices]),
    ]
    shares = np.array([np.array(column) / sum(column) for column in columns if sum(column) > 0], dtype=float)
    size = np.sqrt((shares**2).sum(axis=0))
    return size, np.array([times[index][1] for index in indices]) / size


def probabilities_of(size, count):
    if count >= len(size):
        return np.ones(len(size))
    sure = np.zeros(len(size), dtype=bool)
    while True:
        each = np.where(sure, 1.0, (count - sure.sum()) * size / size[~sure].sum())
        more = ~sure & (each >= 1 - 1e-9)
        if not more.any():
            return each
        sure |= more


def prior_of(size, probabilities):
    lot = probabilities < 1
    return ((1 - probabilities[lot]) / probabilities[lot] * (size[lot] / size.sum()) ** 2).sum()


def check(program, trace):
    report = run(program, "sample", trace, "--rule", "bic", "--json")
    requests = run(program, "trace", "head", "--requests", "100000000", trace, "--json")
    wrong, compared = [], 0

    def close(name, ours, oracle, relative=1e-9):
        nonlocal compared
        compared += 1
        if ours is None or not math.isclose(ours, oracle, rel_tol=relative, abs_tol=1e-9):
            wrong.append(f"{trace}: {name}: {ours} here, {oracle} by the oracle")

    intervals, travels, responses = defaultdict(list), defaultdict(list), defaultdict(list)
    recent = defaultdict(list)
    for request in requests:
        arrival, completion = round(request["arrival_s"] * 1e9), round(request["completion_s"] * 1e9)
        volume, offset, length = request["volume"], request["offset_bytes"], request["length_bytes"]
        index, ends = arrival // INTERVAL, recent[volume]
        intervals[index].append((arrival, volume, offset, length, request["op"] == "read"))
        travels[index].append(min((abs(end - offset) for end in ends[-QUEUE:]), default=0))
        responses[index].append((completion - arrival) / 1e9)
        ends.append(offset + length)
    indices = sorted(intervals)
    features = {index: features_of(intervals[index], travels[index]) for index in indices}
    means = {index: np.mean(responses[index]) for index in indices}
    weights = np.array([len(intervals[index]) for index in indices], dtype=float)

    close("intervals", report["intervals"], indices[-1] + 1)
    close("intervals with requests", report["intervals_with_requests"], len(indices))
    truth = np.average([means[index] for index in indices], weights=weights)
    close("true mean", report["true_mean_response_s"], truth, 1e-6)
    chosen = report["representatives"]
    for one in chosen:
        for name, value in features[one["index"]].items():
            close(f"{name} of interval {one['index']}", one["features"][name], value)
        close(f"mean response of interval {one['index']}", one["mean_response_s"], means[one["index"]], 1e-6)
    estimate = np.average([means[one["index"]] for one in chosen], weights=[one["weight"] for one in chosen])
    close("estimate", report["estimate_mean_response_s"], estimate, 1e-6)
    close("error", report["error"], abs(estimate - truth) / truth, 1e-4)
    close("weights", sum(one["weight"] for one in chosen), len(requests))
    variation = stats.variation(list(means.values()))
    needed = max(1, math.ceil((stats.norm.ppf(0.95) * variation / 0.15) ** 2))
    close("samples", report["systematic"][0]["samples"], min(needed, indices[-1] + 1))

    # Drawn by lot: sizes, probabilities and the interval of confidence, with queues that are served request by request.
    drawn = run(program, "sample", trace, "--intervals", "20", "--json")
    size, order = sizes_of(intervals, indices)
    count = len(drawn["representatives"])
    probabilities = probabilities_of(size, count)
    place = {index: at for at, index in enumerate(indices)}
    by_turn = sorted(drawn["representatives"], key=lambda one: one["turn"])
    for one in by_turn:
        close(f"probability of interval {one['index']}", one["probability"], probabilities[place[one["index"]]])
    compared += 1
    ranks = [order[place[one["index"]]] for one in by_turn]
    if any(b < a * (1 - 1e-9) for a, b in zip(ranks, ranks[1:])) or count != min(20, len(indices)):
        wrong.append(f"{trace}: {count} were drawn, with {ranks} in turn")
    sums = np.array([one["requests"] * means[one["index"]] / one["probability"] for one in by_turn])
    left = np.array([1 - one["probability"] for one in by_turn])
    lot, whole = left > 0, sums.sum()
    lots = lot.sum()
    seen = (np.sqrt(left[lot][1:] * left[lot][:-1]) * np.diff(sums[lot]) ** 2).sum() / 2 * lots / max(lots - 1, 1)
    freedom = max(lots - 1, 0) + 20
    both = (20 * prior_of(size, probabilities) * whole**2 + max(lots - 1, 0) * seen) / freedom
    variance = max(both, seen)
    close("drawn estimate", drawn["estimate_mean_response_s"], whole / len(requests), 1e-6)
    quantile = stats.t.ppf(0.975, freedom)
    close("expected error", drawn["expected_error"], quantile * math.sqrt(prior_of(size, probabilities)), 1e-3)
    close("half width", drawn["half_width_s"], quantile * math.sqrt(variance) / len(requests), 1e-3)

    points = scale(np.array([[float(features[index][name]) for name in PAPERS] for index in indices]))
    for criterion in report["criteria"]:
        if criterion["k"] in (1, 2, 3, 5, 10, 20, 40) and criterion["k"] < len(indices):
            fit = KMeans(criterion["k"], n_init=3, random_state=0).fit(points, sample_weight=weights)
            compared += 1
            # Both are local minima: one that is a little worse is not wrong.
            if criterion["distortion"] > fit.inertia_ * 1.03 + 1e-9:
                wrong.append(f"{trace}: distortion of {criterion['k']}: {criterion['distortion']} against {fit.inertia_}")
    return compared, wrong


def main():
    wrong = []
    for trace in sys.argv[2:]:
        compared, differ = check(sys.argv[1], trace)
        print(f"{trace}: {compared} numbers compared, {len(differ)} differ")
        wrong += differ
    print("\n".join(wrong[:40]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
