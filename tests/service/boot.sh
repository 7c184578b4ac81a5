#!/usr/bin/env bash
# Boots this machine's own systemd as process 1 of a container, over a copy-on-write view of /, without a network but its loopback.
#
#   boot.sh FILES OUT [BLOCKDEV...]
#
# What is in FILES lies on top of /, with units in etc/systemd/system; itest.target wants the test, which writes to /out.txt (OUT) and
# ends by `systemctl exit 0`. The block devices are in /dev as root:disk 0660. Needs root.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
    # Where version 1 of control groups is used as well, version 2 is beside it.
    group=/sys/fs/cgroup/unified
    [ -d "$group" ] || group=/sys/fs/cgroup
    group=$group/idlewise-test.$$
    mkdir "$group"
    base=$(mktemp -d)
    clean() {
        # Whoever is in there has been killed.
        find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
        rmdir "$base" 2>/dev/null || true
    }
    trap clean EXIT
    : > "$2"
    (
        echo "$BASHPID" > "$group/cgroup.procs"
        exec timeout -k 5 "${LIMIT:-480}" unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup \
            bash "$0" --inside "$base" "$@"
    )
    exit
fi

base=$2
files=$(realpath "$3")
out=$(realpath "$4")
shift 4
root=$base/root
mount --make-rprivate /
mount -t tmpfs tmpfs "$base"
mkdir "$base/upper" "$base/work" "$root"
cp -r "$files/." "$base/upper/"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
for place in run tmp var; do mount -t tmpfs tmpfs "$root/$place"; done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
for disk; do
    mknod -m 660 "$root$disk" b $((0x$(stat -c %t "$disk"))) $((0x$(stat -c %T "$disk")))
    chgrp disk "$root$disk"
done
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
touch "$root/out.txt"
mount --bind "$out" "$root/out.txt"
cd "$root"
mkdir -p oldroot
pivot_root . oldroot
umount -l oldroot
exec env -i container=idlewise-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=itest.target --show-status=0 --log-target=console --log-level=notice
