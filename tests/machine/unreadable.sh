#!/bin/sh
# Runs in the emulated machine: sectors that members of arrays cannot read, and their repair through the array.
. /lib/steps.sh
. /lib/layouts.sh

# unreadable NAME LEVEL LAYOUT MEMBERS: what two members cannot read is rewritten through the array, though others use it.
KIB=8192
unreadable() {
    made=$1
    disks=
    for member in $(seq 0 $(($4 - 1))); do
        bad=
        # Two places of one member, one in the next page of another, one in each of two pages one of which is wrong, and one where both
        # cannot be read.
        [ "$member" != 0 ] || bad='--bad 1000-1001,1500,2000,3000'
        [ "$member" != 1 ] || bad='--bad 1516,2008,3000'
        truncate -s ${KIB}K "/tmp/$made-$member.img"
        # shellcheck disable=SC2086
        fault_disk "$made-$member" $bad
        disks="$disks $disk"
    done
    # shellcheck disable=SC2086
    array "$made" "$2" "$3" 65536 $disks
    dd if=/dev/urandom of=/tmp/"$made".data bs=64k count=16 2>/dev/null
    dd if=/tmp/"$made".data of="/dev/$made" bs=64k seek=100 oflag=direct conv=notrunc 2>/dev/null
    dd if=/dev/urandom of="/tmp/$made-0.img" bs=512 seek=2010 count=1 conv=notrunc 2>/dev/null
    scrub "$made-found" "/dev/$made"
    step "$made-shown" idlewise repair "/dev/$made" --md --state-dir /tmp/states
    step "$made-repair" idlewise repair "/dev/$made" --md --allow-writes --state-dir /tmp/states --log "/tmp/$made.repairs" --json
    step "$made-log" cat "/tmp/$made.repairs"
    scrub "$made-after" "/dev/$made"
    if [ "$made" = md6 ]; then
        step "$made-trusted" idlewise repair "/dev/$made" --md --trust-parities --allow-writes --state-dir /tmp/states --json
        scrub "$made-at-last" "/dev/$made"
    fi
    dd if="/dev/$made" bs=64k skip=100 count=16 iflag=direct 2>/dev/null | cmp - /tmp/"$made".data
    tell "$made-data" $?
    step "$made-limits" cat "$md/sync_min" "$md/sync_max" "$md/sync_action" "$md/suspend_lo" "$md/suspend_hi"
    [ -z "$keeper" ] || kill "$keeper"
    keeper=
    echo clear > "/sys/block/$made/md/array_state"
}
unreadable md1 raid1 0 3
unreadable md5 raid5 2 4
unreadable md6 raid6 2 5
unreadable md10 raid10 258 4

# Places that hold no chunk: three copies on five members, and two places left over.
KIB=8320
make_disks md105 5
# shellcheck disable=SC2086
array md105 raid10 259 65536 $disks
damage md105 2 16520 1
scrub left-over /dev/md105
step left-over-repair idlewise repair /dev/md105 --md --allow-writes --state-dir /tmp/states --json
scrub left-over-after /dev/md105
