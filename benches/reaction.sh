#!/bin/bash
# How soon a scrub acts, and how often too late: benches/reaction.sh [SECONDS]. Root and FUSE; on a machine with nothing else to do.
# The disk answers at the speed of memory. Somebody reads from it at random times, every 5 ms on average.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
[ -n "${BUILT:-}" ] || cargo build --release --locked --quiet --workspace
built=${BUILT:-target/release}
folder=$(mktemp -d)
"$built/emulated-disk" --size 64GiB --instant >"$folder/disk" &
disk=$!
trap 'kill -INT "$disk"; wait "$disk" || true; rm -rf "$folder"' EXIT
until device=$(grep -o '/dev/loop[0-9]*' "$folder/disk"); do sleep 0.1; done

awk -v seconds="$seconds" 'BEGIN {
    srand(1)
    for (at = 0; at < seconds; at -= 0.005 * log(1 - rand()))
        printf "%d,f,0,Read,%d,4096,0\n", at * 1e7, int(rand() * 1e6) * 4096 }' >"$folder/trace.csv"

for wait in 50us 500us 5ms; do
    "$built/idlewise" replay "$folder/trace.csv" "$device" --json >"$folder/replayed" &
    load=$!
    "$built/idlewise" scrub "$device" --request-size 64KiB --idle-wait "$wait" --for "${seconds}s" --restart \
        --state-dir "$folder/state" --quiet --json >"$folder/result" || true
    wait "$load"
    number() { tr -d ' \n' <"$folder/result" | sed "s/.*\"reaction\":{.*\"$1\":\([0-9.e-]*\).*/\1/"; }
    times() { number "$1\":{[^}]*\"$2"; }
    awk -v wait="$wait" -v requests="$(number requests)" -v late="$(number late_requests)" \
        -v first="$(times started p50_s) $(times started p99_s)" -v later="$(times followed p50_s) $(times followed p99_s)" 'BEGIN {
        split(first, b, " "); split(later, n, " ")
        printf "idle wait %s: from its end to the first request at the device: median %.0f us, 99 %% below %.0f us\n", wait, b[1] * 1e6, b[2] * 1e6
        printf "  from one request to the next: median %.0f us, 99 %% below %.0f us\n", n[1] * 1e6, n[2] * 1e6
        printf "  behind a foreground request that was not known of: %d of %d (%.3f %%)\n", late, requests, 100 * late / requests }'
done
