#!/bin/sh
# Runs in the emulated machine: writing.sh [MINUTES]. Arrays of each layout are written to everywhere, all the time, and scrubbed over and
# over: what differs for a moment must never be told as wrong.
. /lib/steps.sh
. /lib/layouts.sh

modprobe dm-raid
minutes=${1:-30}
failed=0

# number FIELD: of the last result.
number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" /tmp/result | head -n 1; }

# beside_writers NAME LEVEL LAYOUT CHUNK MEMBERS
beside_writers() {
    make_disks "$1" "$5"
    # shellcheck disable=SC2086
    make_array "$1" "$2" "$3" "$4" $disks
    path=$(path_of "$1")
    dd if=/dev/urandom of="$path" bs=1M oflag=direct 2>/dev/null
    touch /tmp/writing
    write_by_fio "$path" 0 $(($(blockdev --getsz "$path") / 8)) &
    writer=$!
    passes=0 judged=0 transient=0
    end=$(($(date +%s) + minutes * 60 / ARRAYS))
    while [ "$(date +%s)" -lt $end ]; do
        # shellcheck disable=SC2086
        idlewise scrub "$path" $PACE --restart > /tmp/result 2> /tmp/result.err
        [ $? = 0 ] || { failed=1; cat /tmp/result /tmp/result.err; }
        [ -s /tmp/result ] || exit 1
        passes=$((passes + 1)) judged=$((judged + $(number judged_bytes))) transient=$((transient + $(number transient)))
    done
    echo "$1 ($2, $5 members): $passes passes, $((judged / 1048576)) MiB of each member compared, $transient differences gone at another look"
    rm /tmp/writing
    wait "$writer"
    remove_array "$1"
}

ARRAYS=11
beside_writers md11 raid1 0 0 2
beside_writers md12 raid1 0 0 3
beside_writers md4 raid4 0 65536 3
beside_writers md5 raid5 2 65536 4
beside_writers md6 raid6 2 65536 5
beside_writers md101 raid10 258 65536 4
beside_writers md102 raid10 258 65536 3
beside_writers md103 raid10 513 65536 3
beside_writers md104 raid10 66049 65536 3
beside_writers dm1 raid1 0 0 2
beside_writers dm5 raid5_ls 0 128 4
[ $failed = 0 ] && echo "no false alarm in $minutes minutes"
exit $failed
