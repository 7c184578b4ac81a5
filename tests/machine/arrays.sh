#!/bin/sh
# Runs in the emulated machine: errors in arrays of md.
. /lib/steps.sh
. /lib/layouts.sh

try md11 raid1 0 0 2 $all
try md12 raid1 0 0 3 $all
try md4 raid4 0 65536 3 $all
try md5 raid5 2 65536 4 $all
try md6 raid6 2 65536 5 $all
try md101 raid10 258 65536 4 $all
try md102 raid10 258 65536 3 $all
try md103 raid10 513 65536 3 $((all / 2))
try md104 raid10 66049 65536 3 $all

# Where nothing uses a mirror its members may differ: it was made from disks of unlike content, as by `mdadm --create --assume-clean`.
modprobe ext4
mkdir -p /tmp/mounted
# unlike NAME LEVEL LAYOUT CHUNK MEMBERS
unlike() {
    make_disks "$1" "$5"
    dd if=/dev/urandom of="/tmp/$1-1.img" bs=1M count=12 conv=notrunc 2>/dev/null
    # shellcheck disable=SC2086
    make_array "$1" "$2" "$3" "$4" $disks
}
# with_files NAME: a file system on it, mounted.
with_files() {
    mke2fs "$1" > /dev/null
    mount -t ext4 "$1" /tmp/mounted
}
# fill NAME: a file of one letter, which is mounted; a sector of it is told: what has changed into that letter.
fill() {
    cp "/tmp/$1-1.img" /tmp/before
    yes U | tr -d '\n' | head -c 1000000 > /tmp/mounted/file
    sync
    cmp -l /tmp/before "/tmp/$1-1.img" | awk '$3 == 125 && ++count == 300000 { print int(($1 - 1) / 512) }'
}
# compare NAME STEP
compare() {
    # shellcheck disable=SC2086
    step "$2" idlewise scrub "/dev/$1" $PACE --restart
}

unlike md20 raid1 0 0 2
with_files /dev/md20
sector=$(fill md20)
step free-sector echo "$sector"
compare md20 free-clean
damage md20 1 "$sector" 1
compare md20 free-used
umount /tmp/mounted
compare md20 free-unmounted
remove_array md20

# With parity it is told all the same.
for each in "raid10 258 65536 4" "raid5 2 65536 3"; do
    # shellcheck disable=SC2086
    unlike md22 $each
    with_files /dev/md22
    compare md22 "free-${each%% *}"
    umount /tmp/mounted
    remove_array md22
done

# The same on volumes: 8 MiB of a file system, behind them 2 MiB of swap space, and 2 MiB that no volume has.
unlike md21 raid1 0 0 2
dmsetup create files --table "0 16384 linear /dev/md21 0"
dmsetup create swap --table "0 4096 linear /dev/md21 16384"
with_files /dev/mapper/files
mkswap /dev/mapper/swap > /dev/null
swapon /dev/mapper/swap
sector=$(fill md21)
compare md21 volumes-clean
damage md21 1 "$sector" 1
compare md21 volumes-used
step volumes-sector echo "$sector"
swapoff /dev/mapper/swap
umount /tmp/mounted
dmsetup remove swap
dmsetup remove files
remove_array md21
