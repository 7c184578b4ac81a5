#!/bin/bash
# What comparing with btrfs's checksums costs, beside reading alone: benches/content.sh [MIB]. The rate on the emulated hard disk, and the
# processor's time on a disk in memory, for each algorithm. Root and btrfs-progs.
set -eu
cd "$(dirname "$0")/.."
mib=${1:-2048}
[ -n "${IDLEWISE:-}" ] || cargo build --release --locked --quiet --workspace
idlewise=${IDLEWISE:-target/release/idlewise}
emulated=$(dirname "$idlewise")/emulated-disk
folder=$(mktemp -d /dev/shm/idlewise-content.XXXXXX)
device='' disk=''
end() {
    mountpoint -q "$folder/mounted" && umount "$folder/mounted"
    [ -z "$disk" ] || { kill "$disk" && wait "$disk" 2>/dev/null || true; }
    case $device in "$folder"*) ;; /dev/loop*) losetup -d "$device" 2>/dev/null || true ;; esac
    rm -rf "$folder"
}
trap end EXIT

# fill ALGORITHM MIB: a file system with so much data on the device.
fill() {
    mkfs.btrfs -q -f -d single -m dup --csum "$1" "$device" >/dev/null 2>&1
    mkdir -p "$folder/mounted"
    mount "$device" "$folder/mounted"
    dd if=/dev/urandom of="$folder/mounted/data" bs=1M count="$2" 2>/dev/null
    sync -f "$folder/mounted"
}

# scrub SIZE OPTION...: by requests of this size; prints bytes compared, the seconds it took, and those of the processor.
scrub() {
    local times size=$1
    shift
    times=$({ TIMEFORMAT='%U %S'; time "$idlewise" scrub "$device" --request-size "$size" --idle-wait 1ms --restart --quiet --json \
        --state-dir "$folder/state" "$@" >"$folder/result" 2>/dev/null; } 2>&1)
    python3 - "$folder/result" $times <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
cpu = float(sys.argv[2]) + float(sys.argv[3])
judged = (result.get("content") or {}).get("judged_bytes", 0)
print(judged, result["rate_bytes_per_s"], cpu)
END
}

truncate -s $((mib + 600))M "$folder/image"
device=$(losetup -f --show "$folder/image")
for algorithm in crc32c xxhash sha256 blake2; do
    fill "$algorithm" "$mib"
    for size in 64KiB 1MiB; do
        read -r _ _ alone <<< "$(scrub $size --content none)"
        read -r judged _ with <<< "$(scrub $size)"
        python3 -c "print(f'$algorithm, $size: {($with - $alone) / $judged * 2**31:.2f} s of a processor for 2 GiB compared, beside {$alone:.2f} s for reading alone ({$judged / 2**20:.0f} MiB)')"
    done
    umount "$folder/mounted"
done
losetup -d "$device"
rm "$folder/image"

"$emulated" --size 1GiB >"$folder/emulated" 2>&1 &
disk=$!
for _ in $(seq 100); do grep -q /dev/loop "$folder/emulated" && break; sleep 0.1; done
device=$(grep -o '/dev/loop[0-9]*' "$folder/emulated" | head -1)
fill crc32c 300
for turn in 1 2 3; do
    read -r _ alone _ <<< "$(scrub 1MiB --content none)"
    read -r _ with _ <<< "$(scrub 1MiB)"
    python3 -c "print(f'emulated hard disk, turn $turn: {$alone / 1e6:.1f} MB/s alone, {$with / 1e6:.1f} MB/s compared ({($with / $alone - 1) * 100:+.1f} %)')"
done
umount "$folder/mounted"
