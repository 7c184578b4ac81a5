#!/bin/bash
# What it costs to watch a disk that is used as fast as it can be: benches/watch.sh [SECONDS [DEPTH]]. Root, fio and a loop device in memory.
# It is used alone, beside a scrub, and alone again, each for so long; then once more with the kernel's count of the time in BPF.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
depth=${2:-32}
[ -n "${IDLEWISE:-}" ] || cargo build --release --locked --quiet --workspace
idlewise=${IDLEWISE:-target/release/idlewise}
folder=$(mktemp -d /dev/shm/idlewise-watch.XXXXXX)
# Of pages that are there: else the load reads zeros, and the scrub is the first to make them.
head -c 256M /dev/zero >"$folder/disk"
device=$(losetup -f --show "$folder/disk")
stats=$(sysctl -n kernel.bpf_stats_enabled)
trap 'losetup -d "$device"; rm -rf "$folder"; sysctl -q -w kernel.bpf_stats_enabled="$stats"' EXIT

load() {
    fio --name=load --filename="$device" --direct=1 --rw=randread --bs=4k --ioengine=io_uring --iodepth="$depth" --time_based \
        --runtime="$seconds" --minimal | cut -d';' -f8
}

begin() {
    "$idlewise" scrub "$device" --mean-slowdown 1ms --max-slowdown 50ms --observe 1s --max-rate 1MB/s --restart \
        --state-dir "$folder/state" --quiet --json >"$folder/result" &
    scrub=$!
    sleep 1
}

end() {
    kill -INT "$scrub"
    wait "$scrub" || true
}

ticks() { awk '{ print $14 + $15 }' "/proc/$scrub/stat"; }

alone=$(load)
begin
before=$(ticks)
beside=$(load)
used=$(($(ticks) - before))
end
again=$(load)
sysctl -q -w kernel.bpf_stats_enabled=1
begin
counted=$(load)
# Each program's time and calls; what completes is what was asked for.
time=$(cat /proc/"$scrub"/fdinfo/* | awk '/^run_time_ns/ { time += $2 } END { print time }')
end
awk -v alone="$alone" -v again="$again" -v beside="$beside" -v counted="$counted" -v used="$used" -v time="$time" -v seconds="$seconds" \
    -v hz="$(getconf CLK_TCK)" 'BEGIN {
    mean = (alone + again) / 2
    printf "alone: %d and %d requests a second\n", alone, again
    printf "beside a scrub: %d requests a second (%+.1f %%)\n", beside, 100 * (beside / mean - 1)
    printf "idlewise: %.2f %% of a CPU\n", used / hz / seconds * 100
    printf "in BPF: %.0f ns a request (with the counting of it)\n", time / (counted * seconds) }'
sed -n 's/.*"lost_events": *\([0-9]*\).*/completions that the kernel did not tell of: \1/p' "$folder/result"
