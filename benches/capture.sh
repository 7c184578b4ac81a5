#!/bin/sh
# What recording costs at 50,000 requests a second: benches/capture.sh [SECONDS]. Root, fio and a loop device in memory.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
cargo build --release --locked --quiet -p idlewise-cli
file=$(mktemp /dev/shm/idlewise-bench.XXXXXX)
out=$(mktemp -u /tmp/idlewise-bench.XXXXXX.parquet)
truncate -s 1G "$file"
device=$(losetup -f --show "$file")
trap 'losetup -d "$device"; rm -f "$file" "$out"' EXIT
before=$(sysctl -n kernel.bpf_stats_enabled)
sysctl -q -w kernel.bpf_stats_enabled=1
fio --name=load --filename="$device" --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth=16 --time_based \
    --runtime=$((seconds + 4)) --rate_iops=50000 --minimal >/dev/null &
sleep 2
(sleep $((seconds / 2)); bpftool prog show | awk '/ name on_/ { if ($0 ~ /run_time_ns/) for (i = 1; i < NF; i++) {
    if ($i == "name") name = $(i + 1); if ($i == "run_time_ns") time = $(i + 1); if ($i == "run_cnt") count = $(i + 1) }
    if (count > 0) printf "in the kernel, %s: %.0f ns a call (with the counting of it)\n", name, time / count }') &
command time -f "CPU %U %S" ./target/release/idlewise capture "$device" --for "${seconds}s" --out "$out" --json 2>"$out.time" |
    tee "$out.json"
wait
sysctl -q -w kernel.bpf_stats_enabled="$before"
requests=$(sed -n 's/.*"requests": \([0-9]*\).*/\1/p' "$out.json")
awk -v seconds="$seconds" -v requests="$requests" '/^CPU/ { printf "%.0f requests a second: idlewise used %.2f %% of one CPU\n",
    requests / seconds, ($2 + $3) / seconds * 100 }' "$out.time"
rm -f "$out.time" "$out.json"
