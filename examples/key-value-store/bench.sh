#!/bin/bash
# Reads of a key-value store on the emulated hard disk: alone, beside the store's own compaction, and beside the same in the gaps, at a
# mean slowdown of 5 %: bench.sh DIRECTORY-OF-PROGRAMS [RUNS]. Needs root and e2fsprogs. Every run begins with the same file system,
# made anew and read by nobody yet.
set -euo pipefail
programs=$1 runs=${2:-6}
# The goal is a share of the mean of so many.
reads=2000
work=$(mktemp -d)
mkdir "$work/mounted" "$work/results"
exec {disk}< <(exec "$programs/emulated-disk" --size 2GiB)
emulator=$!
finish() {
    mountpoint -q "$work/mounted" && umount "$work/mounted"
    kill -INT "$emulator" && tail --pid="$emulator" -f /dev/null
    rm -rf "$work"
}
trap finish EXIT
read -r -u "$disk" device

# Runs a part of the benchmark on a disk as it was in the beginning.
on_fresh_disk() {
    mountpoint -q "$work/mounted" && umount "$work/mounted"
    mkfs.ext4 -q -F -N 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$device"
    mount "$device" "$work/mounted"
    cp -r "$work/store" "$work/mounted/"
    umount "$work/mounted"
    mount "$device" "$work/mounted"
    local part=$1
    shift
    "$programs/idlewise-key-value-store" "$part" "$work/mounted/store" "$@"
}

"$programs/idlewise-key-value-store" fill "$work/store"
steps=("$(on_fresh_disk step 0)" "$(on_fresh_disk step 1)")
# The goal is from reads that are in no run.
goal=$(on_fresh_disk alone 0 $reads | awk 'NR > 1 { sum += $1 } END { printf "%.0f", 0.05 * sum / (NR - 1) }')
echo "Steps of 64 KiB and of 1 MiB take ${steps[0]} ns and ${steps[1]} ns; the goal is a mean slowdown of $goal ns." >&2
for ((seed = 1; seed <= runs; seed++)); do
    echo "Run $seed of $runs, $(date +%T)" >&2
    on_fresh_disk gaps $seed "$goal" "${steps[@]}" >"$work/results/gaps-$seed"
    on_fresh_disk own $seed >"$work/results/own-$seed"
    on_fresh_disk alone $seed "$(($(wc -l <"$work/results/gaps-$seed") - 1))" >"$work/results/alone-$seed"
done
"$programs/idlewise-key-value-store" table "$work/results"
