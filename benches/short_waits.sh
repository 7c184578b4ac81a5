#!/bin/bash
# How soon a scrub acts on a fast device with an idle wait of 50 us, and what that costs: benches/short_waits.sh [SECONDS]. Root, fio and a loop
# device in memory, which is read every millisecond or so.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
[ -n "${IDLEWISE:-}" ] || cargo build --release --locked --quiet --workspace
idlewise=${IDLEWISE:-target/release/idlewise}
folder=$(mktemp -d /dev/shm/idlewise-short.XXXXXX)
# Holes read as zeros, and take no memory.
truncate -s 64G "$folder/disk"
device=$(losetup -f --show "$folder/disk")
trap 'losetup -d "$device"; rm -rf "$folder"' EXIT
fio --name=load --filename="$device" --direct=1 --rw=randread --bs=4k --thinktime=1000 --time_based \
    --runtime="$((seconds + 2))" --minimal >/dev/null 2>&1 &
load=$!
sleep 1
"$idlewise" scrub "$device" --request-size 4KiB --idle-wait 50us --restart --state-dir "$folder/state" --quiet --json \
    --for "${seconds}s" >"$folder/result" &
scrub=$!
sleep "$((seconds - 1))"
used=$(awk '{ print $14 + $15 }' "/proc/$scrub/stat")
wait "$scrub" || true
wait "$load"
python3 - "$folder/result" "$used" "$((seconds - 1))" "$(getconf CLK_TCK)" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
used, seconds, hz = map(int, sys.argv[2:])
for name, what in [("started", "behind the end of its idle wait"), ("followed", "behind its last request")]:
    times = result["reaction"][name]
    print(f"a request {what}: median {times['p50_s'] * 1e6:.0f} us, 99 % {times['p99_s'] * 1e6:.0f} us ({times['count']} times)")
print(f"too late: {result['reaction']['late_requests']} of {result['reaction']['requests']} requests")
print(f"idlewise: {used / hz / seconds * 100:.1f} % of a CPU")
END
