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

# What differs where nothing uses the array is none: it was made from disks of unlike content, as by `mdadm --create --assume-clean`.
make_disks md20 2
dd if=/dev/urandom of=/tmp/md20-1.img bs=1M count=12 conv=notrunc 2>/dev/null
# shellcheck disable=SC2086
make_array md20 raid1 0 0 $disks
mke2fs /dev/md20 > /dev/null
mkdir -p /tmp/mounted
modprobe ext4
mount -t ext4 /dev/md20 /tmp/mounted
sync
cp /tmp/md20-1.img /tmp/md20.before
yes U | tr -d '\n' | head -c 1000000 > /tmp/mounted/file
sync
# A sector of the file: what has changed into its letter.
sector=$(cmp -l /tmp/md20.before /tmp/md20-1.img | awk '$3 == 125 && ++count == 300000 { print int(($1 - 1) / 512) }')
step free-sector echo "$sector"
# shellcheck disable=SC2086
step free-clean idlewise scrub /dev/md20 $PACE --restart
damage md20 1 "$sector" 1
# shellcheck disable=SC2086
step free-used idlewise scrub /dev/md20 $PACE --restart
umount /tmp/mounted
# shellcheck disable=SC2086
step free-unmounted idlewise scrub /dev/md20 $PACE --restart
remove_array md20
