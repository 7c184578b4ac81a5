#!/usr/bin/env python3
"""Reading traces of lines, side by side in one run: idlewise, polars' read_csv, libCacheSim's trace analyser, `wc -l`, and reading alone.

    benches/parse.py [ROWS [ROUNDS]]     20 million rows a file, about 1 GB each in a temporary folder, and 3 rounds in turns

Three files: an MSR CSV of two volumes, one of 200 volumes whose rows are mixed, and Alibaba's lines of 200 volumes. polars, numpy and libcachesim
come from the package index into a virtual environment under target/; libCacheSim analyses the first 200,000 rows of the first file only, as it is
slow. Each figure is the best of its rounds.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "target" / "bench-venv"
PYTHON = str(ENVIRONMENT / "bin" / "python")
# Seconds that a peer may take.
PATIENCE = 120

MAKE = """
import sys
import numpy as np
import polars as pl

path, kind, volumes, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random = np.random.default_rng(1)
gaps = np.where(random.random(rows) < 0.02, random.exponential(4e4, rows), random.exponential(3e2, rows)).astype(np.int64)
at, volume = np.cumsum(gaps), random.integers(0, volumes, rows)
offset, length = random.integers(0, 1 << 28, rows) * 4096, random.integers(1, 33, rows) * 4096
if kind == "msr":
    hosts = np.array([f"host{number // 10}" if volumes > 2 else "usr" for number in range(volumes)])
    columns = {
        "time": 128166372000000000 + at, "host": hosts[volume], "disk": volume % 10,
        "op": random.choice(["Read", "Write"], rows), "offset": offset, "length": length,
        "response": random.exponential(6e3, rows).astype(np.int64),
    }
else:
    columns = {
        "volume": volume, "op": random.choice(["R", "W"], rows), "offset": offset, "length": length, "time": 1577808000000000 + at // 10,
    }
pl.DataFrame(columns).write_csv(path, include_header=False)
"""

POLARS = """
import polars, sys, time
began = time.perf_counter()
polars.read_csv(sys.argv[1], has_header=False)
print(time.perf_counter() - began)
"""

LIBCACHESIM = """
import libcachesim as l, os, sys, time
parameters = l.ReaderInitParam(has_header=False, has_header_set=True, delimiter=",", obj_id_is_num=True, obj_id_is_num_set=True)
parameters.time_field, parameters.obj_id_field, parameters.obj_size_field = 1, 5, 6
reader = l.TraceReader(sys.argv[1], l.TraceType.CSV_TRACE, parameters)
analyser = l.TraceAnalyzer(reader, os.path.join(os.path.dirname(sys.argv[1]), "analysis"))
began = time.perf_counter()
analyser.run()
print(time.perf_counter() - began)
"""


def of_python(code, path):
    """Seconds that a Python program says it took, in a process of its own."""
    try:
        # libCacheSim leaves a file where it runs.
        where = pathlib.Path(path).parent
        done = subprocess.run([PYTHON, "-c", code, str(path)], capture_output=True, text=True, timeout=PATIENCE, cwd=where)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def of_command(*command):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def ours(path):
    bench = ["cargo", "bench", "--locked", "-q", "-p", "idlewise", "--bench", "parse", "--", str(path)]
    return json.loads(subprocess.run(bench, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def read_alone(path):
    """Seconds to read a file into memory that is used again."""
    began, memory = time.perf_counter(), bytearray(1 << 22)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(memory):
            pass
    return time.perf_counter() - began


def compare(path, rows, rounds):
    """A line for each reader, of rounds in turns."""
    best = {}

    def take(name, seconds):
        best[name] = min(seconds, best.get(name, seconds))

    for _ in range(rounds):
        ran = ours(path)
        take("idlewise, into columns, first", ran["first_s"])
        take("idlewise, into columns, again", ran["read_s"])
        take("idlewise, to idle intervals", ran["idle_s"])
        take("polars read_csv", of_python(POLARS, path))
        take("wc -l", of_command("wc", "-l", path))
        take("reading alone", read_alone(path))
    first = best["idlewise, into columns, first"]
    for name, seconds in best.items():
        print(f"  {name:<30} {seconds:6.2f} s {rows / seconds / 1e6:7.1f} M rows/s {seconds / first:5.2f} of idlewise's first")
    print(f"  memory of idlewise at most {ran['peak_bytes'] / 1e6:.0f} MB, with the idle intervals")


def main():
    rows, rounds = ([int(given) for given in sys.argv[1:]] + [20_000_000, 3][len(sys.argv) - 1 :])[:2]
    if not ENVIRONMENT.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(ENVIRONMENT / "bin" / "pip"), "install", "-q", "polars", "numpy", "libcachesim"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        path, head = pathlib.Path(folder) / "trace.csv", pathlib.Path(folder) / "head.csv"
        for kind, volumes in (("msr", 2), ("msr", 200), ("alibaba", 200)):
            subprocess.run([PYTHON, "-c", MAKE, str(path), kind, str(volumes), str(rows)], check=True)
            print(f"{kind}, {volumes} volumes, {rows} rows, {path.stat().st_size / 1e9:.2f} GB", flush=True)
            compare(path, rows, rounds)
            if volumes == 2:
                with open(path) as whole, open(head, "w") as part:
                    part.writelines(line for _, line in zip(range(200_000), whole))
                seconds = of_python(LIBCACHESIM, head)
                took = f"{200_000 / seconds:.0f} rows/s" if seconds else f"did not run, or not to its end in {PATIENCE} s"
                print(f"  libCacheSim traceAnalyzer, 200,000 rows: {took}", flush=True)


if __name__ == "__main__":
    main()
