#!/bin/sh
# Runs in the emulated machine: md's own check of arrays in which some places cannot be read: many that md rewrites, and one that it cannot; the
# same on volumes of device-mapper; and one that is killed after it has passed such a place.
. /lib/steps.sh
. /lib/layouts.sh

export XDG_RUNTIME_DIR=/run
OWN="--by md-gate --idle-wait 1ms --mean-slowdown 1s --max-slowdown 10s --allow-writes --state-dir /tmp/states --json --quiet"

# The kernel's log names ten in five seconds.
fault_disk many-0 --bad "$(seq 800 160 5600 | tr '\n' ',')20000"
one=$disk
fault_disk many-1 --bad 20000
two=$disk
fault_disk many-2
array md51 raid5 2 65536 "$one" "$two" "$disk"
# shellcheck disable=SC2086
step many idlewise owner-scrub /dev/md51 $OWN
tell rewritten "$(dd if="$one" of=/dev/null bs=512 skip=800 count=4800 iflag=direct 2>&1 | grep -c error)"

# Nor does it name the volume.
modprobe dm-mod
volumes=
for volume in 0 1 2; do
    bad=
    [ $volume = 2 ] || bad="--bad 10000"
    # shellcheck disable=SC2086
    fault_disk mapped-$volume $bad
    dmsetup create mapped-$volume --table "0 $((KIB * 2)) linear $disk 0"
    volumes="$volumes /dev/dm-$(dmsetup info -c --noheadings -o minor mapped-$volume)"
done
# shellcheck disable=SC2086
array md52 raid5 2 65536 $volumes
# shellcheck disable=SC2086
step mapped idlewise owner-scrub /dev/md52 $OWN

# Killed after its place was kept, which is done every half minute.
KIB=65536
members=
for member in 0 1 2; do
    bad=
    [ $member = 2 ] || bad="--bad 2000"
    truncate -s 64M "/tmp/killed-$member.img"
    # shellcheck disable=SC2086
    fault_disk killed-$member --cache 10ms $bad
    members="$members $disk"
done
# shellcheck disable=SC2086
array md53 raid5 2 65536 $members
# shellcheck disable=SC2086
idlewise owner-scrub /dev/md53 $OWN >/dev/null 2>&1 &
pid=$!
for _ in $(seq 3000); do
    [ "$(awk '{ print $1 + 0 }' /sys/block/md53/md/sync_completed)" -gt 6000 ] && break
    sleep 0.02
done
touch /tmp/reading
(while [ -e /tmp/reading ]; do dd if=/dev/md53 of=/dev/null bs=4k skip=9000 count=1 iflag=direct 2>/dev/null; done) &
sleep 40
kill -9 $pid
rm /tmp/reading
step kept sh -c 'cat /tmp/states/*.owner-scrub; echo'
# shellcheck disable=SC2086
step resumed idlewise owner-scrub /dev/md53 $OWN

# One that has come to the end looks at what it could not read in the gaps alone, and goes on with that another time.
idlewise owner-scrub /dev/md53 $OWN --for 1s --restart >/dev/null 2>&1
for place in /tmp/states/*.owner-scrub; do
    sed -i 's/"done":[0-9]*/"done":1099511627776/; s/"unread":[^]]*]/"unread":[{"member":0,"byte":1024000,"bytes":4096},{"member":1,"byte":0,"bytes":4096}]/' "$place"
done
dd if=/dev/md53 of=/dev/null bs=4k skip=9000 count=1000000 iflag=direct 2>/dev/null &
dd=$!
reads() {
    grep -c '^28 2000 ' /tmp/killed-0.log
}
before=$(reads)
# shellcheck disable=SC2086
step held idlewise owner-scrub /dev/md53 ${OWN%--idle-wait*} --idle-wait 100ms ${OWN#*--idle-wait 1ms} --for 3s
tell meanwhile $(($(reads) - before))
kill $dd
# shellcheck disable=SC2086
step looked idlewise owner-scrub /dev/md53 $OWN
tell then $(($(reads) - before))
