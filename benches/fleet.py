"""A fleet's idle statistics from one large file: by this package on all cores and on Dask, and by plain scripts, one after the other; and
how long this package takes with a plan for each volume as well.

Usage: benches/fleet.py [ROWS...], 20,000,000 and 200,000,000 rows of 1,000 volumes unless given. It needs pandas, polars, pyarrow, distributed
and dask[dataframe], for Spark's SQL pysail and pyspark-client, and a package that was built for release. Each job runs in processes of its own,
which together may take as much memory as the machine has free. All must find as many idle intervals of each volume.

What is printed of a job: the time; the time of processors; and the memory of its largest process.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

NAMES = ["timestamp", "host", "disk", "op", "offset", "size", "response"]
GOAL = {"mean_slowdown": "1ms", "max_slowdown": "50ms"}


def make(path, rows):
    """Requests of 1,000 volumes over 31 days, whose rates differ a thousandfold."""
    synth = ["trace", "synth", "--fleet", "1000", "--requests", str(rows), "--for", "31d", "--out", path]
    subprocess.run([sys.executable, "-m", "idlewise", *synth], check=True, stderr=subprocess.DEVNULL)


def _ours(path, **options):
    from idlewise import fleet

    return {row["volume"]: row["idle_intervals"] for row in fleet.analyze(path, **options).rows}


def ours(path):
    return _ours(path, plans=False)


def with_plans(path):
    return _ours(path, **GOAL)


def _on_dask(path, workers):
    import distributed

    from idlewise import fleet

    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        with distributed.Client(cluster) as client:
            return _ours(path, engine=fleet.Dask(client), plans=False)


def on_two(path):
    return _on_dask(path, 2)


def on_four(path):
    return _on_dask(path, 4)


def of_polars(path):
    import polars as pl

    by = ["host", "disk"]
    requests = pl.scan_csv(path, has_header=False, new_columns=NAMES).select(*by, begin="timestamp", end=pl.col("timestamp") + pl.col("response"))
    lengths = requests.with_columns(busy=pl.col("end").cum_max().shift().over(by)).select(*by, length=pl.col("begin") - pl.col("busy"))
    length = pl.col("length").filter(pl.col("length") > 0)
    columns = [length.len().alias("count"), length.mean().alias("mean"), length.std().alias("std"), length.quantile(0.99).alias("p99")]
    found = lengths.group_by(by).agg(*columns).collect(engine="streaming")
    return {f"{host}_{disk}": count for host, disk, count in found.select(*by, "count").iter_rows()}


def of_dask(path):
    import dask.dataframe
    import distributed

    def statistics(requests):
        requests = requests.sort_values("timestamp", kind="stable")
        length = requests["timestamp"] - (requests["timestamp"] + requests["response"]).cummax().shift()
        return length[length > 0].agg(["count", "mean", "std"])

    with distributed.LocalCluster(n_workers=os.cpu_count(), threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        with distributed.Client(cluster):
            frame = dask.dataframe.read_csv(path, header=None, names=NAMES, usecols=["timestamp", "host", "disk", "response"])
            groups = frame.groupby(["host", "disk"])
            found = groups.apply(statistics, meta={"count": "f8", "mean": "f8", "std": "f8"}).compute()
    return {f"{host}_{disk}": int(row["count"]) for (host, disk), row in found.iterrows()}


def of_spark_sql(path):
    from pyspark.sql import SparkSession
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    host, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    columns = ", ".join(f"{name} {'string' if name in ('host', 'op') else 'bigint'}" for name in NAMES)
    session.read.schema(columns).csv(path).createOrReplaceTempView("requests")
    found = session.sql(
        """
        select host, disk, count(*), avg(length), stddev_pop(length), percentile_approx(length, 0.99) from (
            select host, disk, timestamp - max(timestamp + response) over (
                partition by host, disk order by timestamp rows between unbounded preceding and 1 preceding) length from requests)
        where length > 0 group by host, disk"""
    )
    return {f"{row[0]}_{row[1]}": row[2] for row in found.collect()}


JOBS = {
    "idlewise, all cores": ours,
    "idlewise, 2 workers of Dask": on_two,
    "idlewise, 4 workers of Dask": on_four,
    "polars": of_polars,
    "Dask's data frames": of_dask,
    "Spark's SQL (Sail)": of_spark_sql,
    "idlewise, with plans": with_plans,
}


def memory_free():
    with open("/proc/meminfo") as told:
        return next(int(line.split()[1]) for line in told if line.startswith("MemAvailable:")) * 1024


def run(name, path):
    """The costs of a job, or why it has none."""
    free = memory_free()
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (free, free))  # noqa: E731
    try:
        done = subprocess.run([sys.executable, __file__, name, path], capture_output=True, text=True, preexec_fn=limit, timeout=3600)
        return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else (done.stderr.strip().splitlines() or ["killed"])[-1][:120]
    except subprocess.TimeoutExpired:
        return "not over within an hour"


def main():
    if len(sys.argv) == 3 and sys.argv[1] in JOBS:
        began = time.perf_counter()
        counts = JOBS[sys.argv[1]](sys.argv[2])
        seconds = time.perf_counter() - began
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        processors = sum(one.ru_utime + one.ru_stime for one in used)
        print(json.dumps([seconds, processors, max(one.ru_maxrss for one in used), sorted(counts.items())]))
        return
    for rows in [int(given) for given in sys.argv[1:]] or [20_000_000, 200_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fleet.csv")
            make(path, rows)
            print(f"{rows / 1e6:.0f} M requests of 1,000 volumes, {os.stat(path).st_size / 1e9:.1f} GB, {os.cpu_count()} cores", flush=True)
            expected = None
            for name in JOBS:
                found = run(name, path)
                if isinstance(found, str):
                    print(f"  {name:28} {found}", flush=True)
                    continue
                seconds, processors, memory, counts = found
                expected = expected or dict(counts)
                same = {volume: count for volume, count in counts if count} == {volume: count for volume, count in expected.items() if count}
                wrong = "" if same else "; NOT the same intervals"
                print(f"  {name:28} {seconds:7.1f} s, {processors:7.1f} s of processors, {memory / 1e6:5.2f} GB{wrong}", flush=True)


if __name__ == "__main__":
    # Dask's workers import this file.
    main()
