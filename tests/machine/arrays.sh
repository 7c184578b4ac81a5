#!/bin/sh
# Runs in the emulated machine: arrays of each layout, errors put behind their backs while they are written to, and what finds them.
. /lib/steps.sh

modprobe loop
KIB=12288
ERRORS=100

# array NAME LEVEL LAYOUT CHUNK DISK...: starts /dev/NAME without metadata; zeros fit in every layout.
array() {
    name=$1
    echo "$name" > /sys/module/md_mod/parameters/new_array
    md=/sys/block/$name/md
    level=$2 layout=$3 chunk=$4
    shift 4
    echo none > "$md/metadata_version"
    echo "$level" > "$md/level"
    echo $# > "$md/raid_disks"
    [ "$level" = raid1 ] || { echo "$layout" > "$md/layout"; echo "$chunk" > "$md/chunk_size"; }
    echo $KIB > "$md/component_size"
    slot=0
    for member in "$@"; do
        cat "/sys/block/${member#/dev/}/dev" > "$md/new_dev"
        echo $slot > "$md/dev-${member#/dev/}/slot"
        slot=$((slot + 1))
    done
    echo none > "$md/resync_start"
    echo active > "$md/array_state"
}

# Writes into the last fifth of an array, until the file is removed.
write_to() {
    sectors=$(cat "/sys/block/$1/size")
    first=$((sectors / 8 * 4 / 5)) count=$((sectors / 8 / 5 - 16))
    at=7
    while [ -e /tmp/writing ]; do
        at=$(((at * 1103 + 12345) % count))
        dd if=/dev/urandom of="/dev/$1" bs=4k seek=$((first + at)) count=$((at % 16 + 1)) oflag=direct conv=notrunc 2>/dev/null
        sleep 0.02
    done
}

# inject MEMBERS SECTION SEED: where, and what; each place once. The last fifth of each section is written to.
inject() {
    awk -v members="$1" -v section="$2" -v total=$((KIB * 2)) -v errors=$ERRORS -v seed="$3" 'BEGIN {
        srand(seed)
        while (made < errors) {
            member = int(rand() * members)
            sector = int(rand() * (section * 3 / 4)) + section * int(rand() * int(total / section))
            if ((member, sector) in seen) continue
            seen[member, sector] = 1
            print member, sector, made++ % 5
        }
    }'
}

damage() {
    image=/tmp/$1-$2.img
    case $4 in
        # A byte; all of it; what belongs elsewhere; what was there before; half of what was written.
        0) dd if="$image" bs=1 skip=$(($3 * 512 + 77)) count=1 2>/dev/null | tr '\000-\377' '\001-\377\000' |
            dd of="$image" bs=1 seek=$(($3 * 512 + 77)) conv=notrunc 2>/dev/null ;;
        1) dd if=/dev/urandom of="$image" bs=512 seek="$3" count=1 conv=notrunc 2>/dev/null ;;
        2) dd if="$image" of="$image" bs=512 skip=$(($3 + 1)) seek="$3" count=1 conv=notrunc 2>/dev/null ;;
        3) dd if=/dev/zero of="$image" bs=512 seek="$3" count=1 conv=notrunc 2>/dev/null ;;
        4) dd if=/dev/zero of="$image" bs=256 seek=$(($3 * 2)) count=1 conv=notrunc 2>/dev/null ;;
    esac
}

# try NAME LEVEL LAYOUT CHUNK MEMBERS SECTION
try() {
    disks=
    for member in $(seq 0 $(($5 - 1))); do
        truncate -s ${KIB}K "/tmp/$1-$member.img"
        disks="$disks $(losetup -f)"
        losetup "$(losetup -f)" "/tmp/$1-$member.img"
    done
    # shellcheck disable=SC2086
    array "$1" "$2" "$3" "$4" $disks
    dd if=/dev/urandom of="/dev/$1" bs=1M oflag=direct 2>/dev/null
    echo "@@ $1-disks"
    echo "$disks"
    echo "@@ errors"
    echo "@@ exit 0"
    # shellcheck disable=SC2086
    step "$1-clean" idlewise scrub "/dev/$1" $PACE --restart
    inject "$5" "$6" "$5$6" > /tmp/injected
    step "$1-injected" cat /tmp/injected
    while read -r member sector kind; do
        damage "$1" "$member" "$sector" "$kind"
    done < /tmp/injected
    touch /tmp/writing
    write_to "$1" &
    # shellcheck disable=SC2086
    step "$1-found" idlewise scrub "/dev/$1" $PACE --restart
    rm /tmp/writing
    wait
    echo check > "/sys/block/$1/md/sync_action"
    until grep -q idle "/sys/block/$1/md/sync_action"; do sleep 0.2; done
    step "$1-counted" cat "/sys/block/$1/md/mismatch_cnt"
    # Where it is known which member is right, and md takes that one for right.
    if [ "$1" = md12 ] || [ "$1" = md6 ] || [ "$1" = md11 ]; then
        step "$1-repair" idlewise repair "/dev/$1" --md --allow-writes --max-blocks 1000 --state-dir /tmp/states --json
        # shellcheck disable=SC2086
        step "$1-after" idlewise scrub "/dev/$1" $PACE --restart
        step "$1-limits" cat "/sys/block/$1/md/sync_min" "/sys/block/$1/md/sync_max" "/sys/block/$1/md/sync_action"
    fi
    echo clear > "/sys/block/$1/md/array_state"
    for disk in $disks; do losetup -d "$disk"; done
    rm -f /tmp/"$1"-*.img
}

for module in raid1 raid10 raid456; do modprobe $module; done
all=$((KIB * 2))
try md11 raid1 0 0 2 $all
try md12 raid1 0 0 3 $all
try md4 raid4 0 65536 3 $all
try md5 raid5 2 65536 4 $all
try md6 raid6 2 65536 5 $all
try md101 raid10 258 65536 4 $all
try md102 raid10 258 65536 3 $all
try md103 raid10 513 65536 3 $((all / 2))
try md104 raid10 66049 65536 3 $all

# dm-integrity keeps checksums itself: what differs cannot be read.
modprobe crc32c_generic
modprobe dm-integrity
truncate -s 8M /tmp/data.img
truncate -s 2M /tmp/tags.img
data=$(losetup -f)
losetup "$data" /tmp/data.img
tags=$(losetup -f)
losetup "$tags" /tmp/tags.img
sectors=$((8 * 2048))
step integrity-made dmsetup create checked --table "0 $sectors integrity $data 0 4 D 2 internal_hash:crc32c meta_device:$tags"
dd if=/dev/urandom of=/dev/dm-0 bs=64k oflag=direct 2>/dev/null
scrub integrity-clean /dev/dm-0
for sector in 1000 1003 9001; do
    dd if=/dev/zero of=/tmp/data.img bs=512 seek=$sector count=1 conv=notrunc 2>/dev/null
done
scrub integrity-found /dev/dm-0
dmsetup remove checked
