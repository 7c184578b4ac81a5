"""Idle statistics by volume from an MSR CSV: this package, polars and pandas on the same file, in turns.

Usage: benches/python.py [ROWS [ROUNDS]], 20,000,000 rows and 3 rounds unless given. It needs numpy, polars, pandas and pyarrow, and a package that
was built for release. Each job runs in a process of its own and is given as the best of its rounds; all must find the same intervals.

libCacheSim's TraceAnalyzer is run once, where it is installed: it knows no idle times and no volumes, so it only counts requests a minute.
"""

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

NAMES = ["timestamp", "host", "disk", "op", "offset", "size", "response"]


def make(path, rows):
    """Requests of 60 volumes, in order of arrival."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(1)
    gaps = np.where(random.random(rows) < 0.02, random.exponential(4e4, rows), random.exponential(3e2, rows))
    frame = pl.DataFrame(
        {
            "timestamp": 128166372000000000 + np.cumsum(gaps.astype(np.int64)),
            "host": random.choice(["hm", "mds", "prn", "proj", "prxy", "rsrch"], rows),
            "disk": random.integers(0, 10, rows),
            "op": random.choice(["Read", "Write"], rows),
            "offset": random.integers(0, 1 << 30, rows) * 512,
            "size": random.integers(1, 128, rows) * 512,
            "response": random.exponential(6e3, rows).astype(np.int64),
        }
    )
    frame.write_csv(path, include_header=False)


def ours(path):
    import idlewise as iw

    table = iw.scan(path).idle().by_volume()
    return dict(zip(table["volume"], table["idle_intervals"])), sum(table["idle_mean_s"])


def of_polars(path):
    import polars as pl

    by = ["host", "disk"]
    requests = pl.scan_csv(path, has_header=False, new_columns=NAMES).select(
        *by, begin="timestamp", end=pl.col("timestamp") + pl.col("response")
    )
    lengths = requests.with_columns(busy=pl.col("end").cum_max().shift().over(by)).select(
        *by, length=pl.col("begin") - pl.col("busy")
    )
    length = pl.col("length").filter(pl.col("length") > 0)
    found = lengths.group_by(by).agg(
        count=length.len(), mean=length.mean() / 1e7, std=length.std(ddof=0), p99=length.quantile(0.99)
    )
    found = found.collect()
    names = [f"{host}_{disk}" for host, disk in found.select(by).iter_rows()]
    return dict(zip(names, found["count"].to_list())), found["mean"].sum()


def of_pandas(path):
    import pandas as pd

    frame = pd.read_csv(path, header=None, names=NAMES, engine="pyarrow")
    # Behind a shift they are floating-point numbers, which hold no such large ones exactly.
    frame["timestamp"] -= frame["timestamp"].iloc[0]
    frame["end"] = frame["timestamp"] + frame["response"]
    groups = frame.groupby(["host", "disk"], sort=False)
    frame["busy"] = groups["end"].cummax()
    frame["length"] = frame["timestamp"] - groups["busy"].shift()
    idle = frame[frame["length"] > 0].groupby(["host", "disk"])["length"]
    found = idle.agg(["count", "mean", "std", lambda lengths: lengths.quantile(0.99)])
    names = [f"{host}_{disk}" for host, disk in found.index]
    return dict(zip(names, found["count"].tolist())), found["mean"].sum() / 1e7


def of_libcachesim(path):
    import libcachesim

    columns = libcachesim.ReaderInitParam(has_header=False, has_header_set=True, obj_id_is_num=True, obj_id_is_num_set=True)
    columns.time_field, columns.obj_id_field, columns.obj_size_field = 1, 5, 6
    requests = libcachesim.TraceReader(path, libcachesim.TraceType.CSV_TRACE, columns)
    minute = libcachesim.AnalysisParam(time_window=600_000_000)
    only = libcachesim.AnalysisOption(access_pattern=False, size=False, reuse=False, popularity=False)
    libcachesim.TraceAnalyzer(requests, path + ".analysis", minute, only).run()
    return {}, 0


JOBS = {"idlewise": ours, "polars": of_polars, "pandas": of_pandas}
# What does less, and is slow.
ONCE = {"libCacheSim": of_libcachesim}


def main():
    if len(sys.argv) == 3 and sys.argv[1] in JOBS | ONCE:
        began = time.perf_counter()
        counts, mean = (JOBS | ONCE)[sys.argv[1]](sys.argv[2])
        seconds, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        with open("/proc/self/status") as status:
            # That of `used` is also the parent's.
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        print(json.dumps([seconds, used.ru_utime + used.ru_stime, memory, sorted(counts.items()), mean]))
        return
    rows, rounds = ([int(given) for given in sys.argv[1:]] + [20_000_000, 3][len(sys.argv) - 1 :])[:2]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "requests.csv")
        make(path, rows)
        best, found = {}, {}
        once = list(ONCE) if importlib.util.find_spec("libcachesim") else []
        for name in list(JOBS) * rounds + once:
            done = subprocess.run([sys.executable, __file__, name, path], capture_output=True, text=True, check=True)
            *costs, counts, mean = json.loads(done.stdout.splitlines()[-1])
            best[name] = [min(pair) for pair in zip(costs, best.get(name, costs))]
            found[name] = (counts, mean)
        for name, (seconds, processor, memory) in best.items():
            counts, mean = found[name]
            assert name in ONCE or counts == found["idlewise"][0] and abs(mean / found["idlewise"][1] - 1) < 1e-9, name
            times = f"{seconds:6.2f} s, {seconds / best['idlewise'][0]:4.1f} times as long; {processor:6.2f} s of processors"
            print(f"{name:9} {times}; {memory / 1e6:5.2f} GB; {rows / seconds / 1e6:5.2f} M rows/s")


if __name__ == "__main__":
    main()
