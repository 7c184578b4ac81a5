#!/bin/sh
# Runs in the emulated machine: arrays of which a member is lost or replaced, arrays without a name of their own, a volume that is moved, and
# disks with several paths.
. /lib/steps.sh
. /lib/layouts.sh

modprobe scsi_debug dev_size_mb=64 add_host=2 per_host_store=0 vpd_use_hostno=0 delay=0
# Without metadata arrays have no names of their own: each is another one.
make_disks md55 2
# shellcheck disable=SC2086
make_array md55 raid1 0 0 $disks
make_disks md66 2
# shellcheck disable=SC2086
make_array md66 raid1 0 0 $disks
for name in md55 md66; do
    dd if=/dev/urandom of=/dev/$name bs=1M oflag=direct 2>/dev/null
    scrub $name /dev/$name
done

# member NAME ORDER DISK: has the array do something with a member.
member() { echo "$2" > "/sys/block/$1/md/dev-${3#/dev/}/state"; }

# put_in NAME DISK: adds a member, and waits until it holds what the others do.
put_in() {
    cat "/sys/block/${2#/dev/}/dev" > "/sys/block/$1/md/new_dev"
    echo recover > "/sys/block/$1/md/sync_action"
    for _ in $(seq 300); do
        [ "$(cat "/sys/block/$1/md/degraded")" = 0 ] && [ "$(cat "/sys/block/$1/md/sync_action")" = idle ] && break
        sleep 0.2
    done
}

make_disks md77 3
# shellcheck disable=SC2086
set -- $disks
make_array md77 raid1 0 0 "$1" "$2" "$3"
dd if=/dev/urandom of=/dev/md77 bs=1M oflag=direct 2>/dev/null
damage md77 1 20000 1
scrub wrong /dev/md77
SERVICE='[defaults]
mean_slowdown = "1s"
max_slowdown = "10s"
[notify]
command = ["/bin/sh", "-c", "cat >> /tmp/told"]'
service /tmp/states /dev/md77
until_said() { for _ in $(seq 600); do grep -q "$1" "$2" 2>/dev/null && break; sleep 0.2; done; }
until_said 'cannot be read, or is wrong' /tmp/told
# A good member is lost: nothing can be compared, and what was wrong is so still.
member md77 faulty "$3"
until_said faulty "/sys/block/md77/md/dev-${3#/dev/}/state"
member md77 remove "$3"
idlewise start /dev/md77 --socket /tmp/control > /dev/null
until_said 'were not compared' /tmp/told
sleep 5
step lacking idlewise metrics --socket /tmp/control
# It comes back: only a pass over the members says that all is compared again.
put_in md77 "$3"
step back date +%s
idlewise start /dev/md77 --socket /tmp/control > /dev/null
until_said 'was compared with them' /tmp/told
step compared idlewise status /dev/md77 --state-dir /tmp/states --json
kill $daemon
wait $daemon
step told cat /tmp/told
step said cat /tmp/states.said

# Another disk is put in, and is wrong behind what a pass has read already.
make_disks md88 3
# shellcheck disable=SC2086
set -- $disks
make_array md88 raid1 0 0 "$1" "$2"
dd if=/dev/urandom of=/dev/md88 bs=1M oflag=direct 2>/dev/null
# shellcheck disable=SC2086
scrub_ends_early /dev/md88 idlewise scrub /dev/md88 $PACE --max-rate 1MB/s > /dev/null 2>&1
step begun idlewise status /dev/md88 --state-dir /tmp/states --json
member md88 faulty "$2"
until_said faulty "/sys/block/md88/md/dev-${2#/dev/}/state"
member md88 remove "$2"
put_in md88 "$3"
step rebuilt cat /sys/block/md88/md/degraded
damage md88 2 100 1
# shellcheck disable=SC2086
step replaced idlewise scrub /dev/md88 $PACE

# A volume is moved to another disk, which is wrong where a pass has read the first one: between two runs, and while one is at it.
fault_disk there --bad 100-101
there=$disk
make_disks here 1
# shellcheck disable=SC2086
set -- $disks
sectors=$(cat "/sys/block/${1#/dev/}/size")
lies_on() {
    dmsetup suspend moved
    dmsetup reload moved --table "0 $sectors linear $1 0"
    dmsetup resume moved
}
dmsetup create moved --uuid LVM-abcdef --table "0 $sectors linear $1 0"
volume=$(readlink -f /dev/mapper/moved)
# shellcheck disable=SC2086
scrub_ends_early "$volume" idlewise scrub "$volume" $PACE --max-rate 1MB/s > /dev/null 2>&1
lies_on "$there"
# shellcheck disable=SC2086
step moved idlewise scrub "$volume" $PACE
lies_on "$1"
# shellcheck disable=SC2086
scrub_begins "$volume" idlewise scrub "$volume" $PACE --restart --max-rate 2MB/s > /tmp/meanwhile 2>/tmp/meanwhile.err
lies_on "$there"
wait $scrub
step meanwhile cat /tmp/meanwhile
dmsetup remove moved

# One is moved to another place on its disk.
half=$((sectors / 2))
dmsetup create inside --uuid LVM-fedcba --table "0 $half linear $1 0"
volume=$(readlink -f /dev/mapper/inside)
# shellcheck disable=SC2086
scrub_ends_early "$volume" idlewise scrub "$volume" $PACE --max-rate 1MB/s > /dev/null 2>&1
dmsetup suspend inside
dmsetup reload inside --table "0 $half linear $1 $half"
dmsetup resume inside
# shellcheck disable=SC2086
step inside idlewise scrub "$volume" $PACE
dmsetup remove inside

# Snapshots of one come and go, as LVM makes them: its data lie where they lay. An ordinary volume and a scrub of its disk do not run at once.
modprobe dm-snapshot
half_of() { echo "0 $half linear $1 0"; }
dmsetup create origin --uuid LVM-012345 --table "$(half_of "$1")"
volume=$(readlink -f /dev/mapper/origin)
# shellcheck disable=SC2086
scrub_ends_early "$volume" idlewise scrub "$volume" $PACE --max-rate 400kB/s > /dev/null 2>&1
dmsetup create origin-real --uuid LVM-012345-real --table "$(half_of "$1")"
dmsetup suspend origin
dmsetup reload origin --table "0 $half snapshot-origin /dev/mapper/origin-real"
dmsetup resume origin
# shellcheck disable=SC2086
scrub_ends_early "$volume" idlewise scrub "$volume" $PACE --max-rate 400kB/s > /dev/null 2>/tmp/snapshot
step snapshot cat /tmp/snapshot
dmsetup suspend origin
dmsetup reload origin --table "$(half_of "$1")"
dmsetup resume origin
dmsetup remove origin-real
# shellcheck disable=SC2086
step no-snapshot idlewise scrub "$volume" $PACE
# shellcheck disable=SC2086
scrub_begins "$volume" idlewise scrub "$volume" $PACE --restart --max-rate 400kB/s > /dev/null 2>&1
# shellcheck disable=SC2086
step below idlewise scrub "$1" $PACE --restart --for 1s
kill -INT $scrub
wait $scrub
dmsetup remove origin

# Two paths to one disk: who uses the other one is seen.
paths=
for folder in /sys/block/sd*; do
    grep -q scsi_debug "$folder/device/model" && paths="$paths /dev/${folder##*/}"
done
step paths cat $(for path in $paths; do echo "/sys/block/${path#/dev/}/device/wwid"; done)
# shellcheck disable=SC2086
set -- $paths
# read_other_path: until /tmp/reading is gone, a line in /tmp/reads for each.
read_other_path() {
    : > /tmp/reads
    while [ -e /tmp/reading ]; do dd if="$1" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null && echo >> /tmp/reads; sleep 0.01; done
}
# shellcheck disable=SC2086
idlewise scrub "$1" $PACE --max-rate 2MB/s --restart > /tmp/foreground &
scrub=$!
until_running "$1"
touch /tmp/reading
read_other_path "$2" &
wait $scrub
rm /tmp/reading
wait $!
step foreground cat /tmp/foreground
tell foreground-reads "$(wc -l < /tmp/reads)"
# A path that comes while a scrub runs.
echo -1 > /sys/bus/pseudo/drivers/scsi_debug/add_host
sleep 1
# shellcheck disable=SC2086
idlewise scrub "$1" $PACE --max-rate 2MB/s --restart > /tmp/later &
scrub=$!
until_running "$1"
echo 1 > /sys/bus/pseudo/drivers/scsi_debug/add_host
for _ in $(seq 50); do [ -b "$2" ] && break; sleep 0.1; done
touch /tmp/reading
read_other_path "$2" &
reading=$!
wait $scrub
rm /tmp/reading
wait $reading
step later cat /tmp/later
tell later-reads "$(wc -l < /tmp/reads)"
