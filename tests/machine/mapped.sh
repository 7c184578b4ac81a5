#!/bin/sh
# Runs in the emulated machine: errors in arrays of device-mapper, and its own checksums.
. /lib/steps.sh
. /lib/layouts.sh

# Device-mapper's, in sectors: what LVM's arrays are.
modprobe dm-raid
try dm1 raid1 0 0 2 $all
try dm12 raid1 0 0 3 $all
try dm5 raid5_ls 0 128 4 $all
try dm6 raid6_zr 0 128 5 $all
try dm10 raid10 0 128 4 $all

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

# One that is read from a cache.
modprobe dm-writecache
dd if=/dev/zero of="$tags" bs=64k count=1 oflag=direct 2>/dev/null
step cache-made dmsetup create cached --table "0 $sectors writecache s $data $tags 4096 0"
scrub cached /dev/mapper/cached
dmsetup remove cached

# dm-verity has a tree of them: here one block of 128, and the sum of that.
modprobe dm-verity
modprobe sha256_generic
truncate -s 1M /tmp/tree.img
dd if=/dev/urandom of=/tmp/verified.img bs=4k count=128 2>/dev/null
for block in $(seq 0 127); do
    dd if=/tmp/verified.img bs=4k skip="$block" count=1 2>/dev/null | sha256sum | cut -c1-64 | xxd -r -p
done > /tmp/sums
root=$(sha256sum < /tmp/sums | cut -c1-64)
dd if=/tmp/sums of=/tmp/tree.img conv=notrunc 2>/dev/null
data=$(losetup -f)
losetup "$data" /tmp/verified.img
tree=$(losetup -f)
losetup "$tree" /tmp/tree.img
step verity-made dmsetup create verified --readonly \
    --table "0 1024 verity 1 $data $tree 4096 4096 128 0 sha256 $root -"
scrub verity-clean /dev/mapper/verified
for sector in 80 803; do
    dd if=/dev/zero of=/tmp/verified.img bs=512 seek=$sector count=1 conv=notrunc 2>/dev/null
done
echo 3 > /proc/sys/vm/drop_caches
scrub verity-found /dev/mapper/verified
dmsetup remove verified
