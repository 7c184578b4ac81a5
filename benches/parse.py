#!/usr/bin/env python3
"""Reading an MSR CSV trace, side by side in one run: idlewise, polars' read_csv and libCacheSim's trace analyser.

    benches/parse.py [ROWS]      20 million by default, about 1.1 GB in a temporary folder

polars and libcachesim come from the package index into a virtual environment under target/; libCacheSim analyses the first
200,000 rows only, as it is slow. "First" is what a program that reads one trace takes; "again" is the median of three more
times in the same process, whose memory is then at hand.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "target" / "bench-venv"
# Seconds that a peer may take.
PATIENCE = 120

POLARS = """
import polars, sys, time
times = []
for _ in range(4):
    began = time.perf_counter()
    rows = polars.read_csv(sys.argv[1], has_header=False).height
    times.append(time.perf_counter() - began)
print(rows / times[0], rows / sorted(times[1:])[1])
"""

LIBCACHESIM = """
import libcachesim as l, os, sys, time
best = 1e9
for _ in range(1):
    parameters = l.ReaderInitParam(has_header=False, has_header_set=True, delimiter=",", obj_id_is_num=True, obj_id_is_num_set=True)
    parameters.time_field, parameters.obj_id_field, parameters.obj_size_field = 1, 5, 6
    reader = l.TraceReader(sys.argv[1], l.TraceType.CSV_TRACE, parameters)
    analyser = l.TraceAnalyzer(reader, os.path.join(os.path.dirname(sys.argv[1]), "analysis"))
    began = time.perf_counter()
    analyser.run()
    best = min(best, time.perf_counter() - began)
    rows = reader.get_num_of_req()
print(rows / best, rows / best)
"""


def make_trace(path, rows):
    """A trace like the MSR Cambridge ones: two volumes, a third of the requests elsewhere than the last."""
    generator = random.Random(1)
    time, offset = 128166372003061629, 0
    with open(path, "w") as file:
        for row in range(rows):
            time += int(generator.expovariate(1 / 30000))
            if generator.random() < 0.3:
                offset = generator.randrange(36_000_000) * 4096
            length = generator.choice((512, 4096, 8192, 16384, 32768, 65536))
            kind = "Read" if generator.random() < 0.6 else "Write"
            file.write(f"{time},usr,{row % 2},{kind},{offset},{length},{generator.randrange(500, 900000)}\n")
            offset += length


def rates_of(code, path):
    """Rows a second of a Python program in a process of its own: the first time, and the median of the next three."""
    python = str(ENVIRONMENT / "bin" / "python")
    try:
        done = subprocess.run([python, "-c", code, str(path)], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return [float(rate) for rate in done.stdout.split()[-2:]]


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
    if not ENVIRONMENT.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(ENVIRONMENT / "bin" / "pip"), "install", "-q", "polars", "libcachesim"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        path, head = pathlib.Path(folder) / "trace.csv", pathlib.Path(folder) / "head.csv"
        print(f"making a trace of {rows} rows ...", file=sys.stderr)
        make_trace(path, rows)
        with open(path) as whole, open(head, "w") as part:
            part.writelines(line for _, line in zip(range(200_000), whole))
        bench = ["cargo", "bench", "--locked", "-q", "-p", "idlewise", "--bench", "parse", "--", str(path)]
        ours = json.loads(subprocess.run(bench, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        peers = [("polars read_csv", rates_of(POLARS, path)), ("libCacheSim traceAnalyzer", rates_of(LIBCACHESIM, head))]
    first, again = ours["rows"] / ours["first_s"], ours["rows"] / ours["read_s"]
    print(f"{'M rows/s':<28} {'first':>8} {'again':>8}")
    print(f"{'idlewise, into columns':<28} {first / 1e6:8.2f} {again / 1e6:8.2f}   {ours['peak_bytes'] / 1e6:.0f} MB of memory at most")
    print(f"{'idlewise, to idle intervals':<28} {'':>8} {ours['rows'] / ours['idle_s'] / 1e6:8.2f}")
    for name, rates in peers:
        if rates is None:
            print(f"{name:<28} did not run, or not to its end in {PATIENCE} s")
        else:
            times = f"idlewise reads {first / rates[0]:.1f} and {again / rates[1]:.1f} times as fast"
            print(f"{name:<28} {rates[0] / 1e6:8.2f} {rates[1] / 1e6:8.2f}   {times}")


if __name__ == "__main__":
    main()
