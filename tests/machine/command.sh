#!/bin/sh
# Runs in the emulated machine, whose control groups are of version 2 alone: a command whose pages the kernel writes later. The disk has an
# ext4 file system.
# shellcheck disable=SC2016,SC2086
. /lib/steps.sh

mkdir -p /sys/fs/cgroup /mnt/disk
mount -t cgroup2 none /sys/fs/cgroup
modprobe ext4
# Else the journal writes data itself where it comes to them first, and that is nobody's.
mount -t ext4 -o data=writeback /dev/vm/0 /mnt/disk
# What is filled is written a second later, not half a minute.
echo 100 > /proc/sys/vm/dirty_writeback_centisecs
echo 100 > /proc/sys/vm/dirty_expire_centisecs

run="idlewise run --quiet --idle-wait 20ms --mean-slowdown 1s --device /mnt/disk"
step writes $run --json /tmp/writes.json -- sh -c 'dd if=/dev/zero of=/mnt/disk/filled bs=64k count=256 2>/dev/null; sleep 6'
step writes-report cat /tmp/writes.json
step groups sh -c 'ls -d /sys/fs/cgroup/idlewise-run-* 2>/dev/null'

# It can be kept from filling more than so much.
step high $run --memory-high 32MiB sh -c 'cat /sys/fs/cgroup/$(sed s/0::// /proc/self/cgroup)/memory.high'

# Somebody else's, at the same time: none of it is taken for the command's.
sh -c 'sleep 1; for i in 1 2 3 4 5; do dd if=/dev/zero of=/mnt/disk/other bs=64k count=16 conv=fsync 2>/dev/null; sleep 0.3; done' &
step beside $run --json /tmp/beside.json -- sleep 5
step beside-report cat /tmp/beside.json

# Within a group that has processes the kernel gives no controllers to those below: then what it writes later is not known.
mkdir /sys/fs/cgroup/session
step inside sh -c "echo \$\$ > /sys/fs/cgroup/session/cgroup.procs; $run --json /tmp/inside.json -- true"
step inside-report cat /tmp/inside.json

# Killed with the command's processes held.
$run -- sh -c 'echo $$ > /tmp/held; while :; do dd if=/mnt/disk/filled of=/dev/null bs=64k iflag=direct 2>/dev/null; done' &
killed=$!
# A machine that is emulated beside others may take a while to come so far.
for _ in $(seq 600); do
    [ -s /tmp/held ] && break
    sleep 0.1
done
sleep 2
kill -9 $killed
sleep 1
step killed-groups sh -c 'ls -d /sys/fs/cgroup/idlewise-run-* 2>/dev/null'
step killed-free sh -c 'kill -0 $(cat /tmp/held) && kill -9 $(cat /tmp/held)'
sleep 1
umount /mnt/disk; tell unmounted $?
