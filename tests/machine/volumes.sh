#!/bin/sh
# Runs in the emulated machine: volumes that are stacked on other disks have no requests, so their users are seen by bios.
. /lib/steps.sh

modprobe loop
for module in dm-mod raid1 raid456 dm-crypt; do modprobe $module; done
export DM_DISABLE_UDEV=1

# disk: a new loop device, in $disk.
made=0
disk() {
    made=$((made + 1))
    truncate -s 8M "/tmp/volume-$made.img"
    disk=$(losetup -f)
    losetup "$disk" "/tmp/volume-$made.img"
}

# volume NAME DEVICE: what its users do is recorded, and a scrub of it tells them from itself.
volume() {
    idlewise capture "$2" --for 10min --out "/tmp/$1.csv" > "/tmp/$1.captured" 2>&1 &
    capture=$!
    for _ in $(seq 300); do ls -l /proc/$capture/fd | grep -q bpf_link && break; sleep 0.2; done
    sleep 1
    for at in $(seq 50); do
        dd if="$2" of=/dev/null bs=4k count=1 skip=$((at * 7)) iflag=direct 2>/dev/null
        [ $((at % 2)) = 0 ] || dd if=/dev/zero of="$2" bs=8k count=1 seek=$((at * 5)) oflag=direct conv=notrunc 2>/dev/null
    done
    kill -INT $capture
    wait $capture
    step "$1-recorded" idlewise trace stats "/tmp/$1.csv" --json
    # What it reads itself is nobody else's.
    step "$1-alone" idlewise scrub "$2" $PACE --restart --content none
    idlewise scrub "$2" --request-size 4KiB --idle-wait 5ms --max-rate 400KB/s --state-dir /tmp/states --json --quiet --restart --content none > /tmp/scrubbed &
    until_running "$2"
    for at in $(seq 20); do
        dd if="$2" of=/dev/null bs=4k count=1 skip=$((at * 7)) iflag=direct 2>/dev/null
    done
    wait
    step "$1-beside" cat /tmp/scrubbed
}

disk; left=$disk
disk; right=$disk
raid1 md0 8000 "$left" "$right"
volume mirror /dev/md0
disk
dmsetup create plain --table "0 16000 linear $disk 0"
volume linear /dev/mapper/plain
dmsetup create secret --table "0 16000 crypt aes-xts-plain64 $(printf '%064d' 7) 0 /dev/mapper/plain 0"
volume secret /dev/mapper/secret
