#!/bin/sh
# Runs in the emulated machine: scrubs of disks with faults by each command set. Each result is told between marker lines,
# and asserted by machine.rs.
. /lib/steps.sh

for disk in scsi:0 sata:1 nvme:2; do
    scrub "qemu-${disk%:*}" "/dev/vm/${disk#*:}"
done
scrub qemu-nvme-ioctl /dev/vm/2 --verifier nvme-ioctl

# The file behind the disk and its log show whether anything was written.
fault_disk plain --bad 5000-5001,100000
before=$(sha256sum < /tmp/plain.img)
scrub plain "$disk"
scrub staggered "$disk" --order staggered --regions 16 --visit 64KiB
[ "$before" = "$(sha256sum < /tmp/plain.img)" ]; tell plain-hash $?
writes=$(awk '{ print $5 }' "/sys/block/${disk#/dev/}/stat"); tell plain-writes "$writes"
grep -c -E '^(0a|2a|8a|aa|42|93|41) ' /tmp/plain.log; tell plain-write-commands $(( $? ))

fault_disk ten --bad 5000 --no-verify
scrub verify-10 "$disk"
fault_disk none --bad 5000-5001 --no-verify --no-verify
scrub no-verify "$disk"
fault_disk ata --ata --bad 300-301,99999
scrub ata "$disk"
# What the kernel makes of a SATA disk's "ID not found", by default and in older kernels of a command that timed out, and of one with
# descriptors; and the error of an earlier command.
fault_disk not-found --ata --sense 5000:700005000000000a105140002100000000000000
scrub not-found "$disk"
fault_disk timed-out-5-15 --ata --sense 5000:700005000000000a105140002104000000000000
scrub timed-out-5-15 "$disk"
fault_disk timed-out --ata --sense 5000:720b00000000000e090c000000000000000000000040
scrub timed-out "$disk"
fault_disk deferred --sense 5000:710001000000000a000000000c0100000000
scrub deferred "$disk"
fault_disk descriptor --descriptor-sense --bad 77
scrub descriptor "$disk"
fault_disk short --longest 64 --bad 8000-8003
scrub short "$disk"
fault_disk aborts --abort-every 20 --bad 8000
scrub aborts "$disk"

# A partition that begins at block 2048 of its disk: block 5000 of the disk is its block 2952.
fault_disk_with_partition part --bad 5000
scrub partition "${disk}1"

# A device-mapper device has its own blocks: no command of the disk's own may be sent through it.
fault_disk under
modprobe dm-mod
export DM_DISABLE_UDEV=1
printf '0 8000 linear %s 0\n8000 2 error\n8002 50000 linear %s 8002\n' "$disk" "$disk" | dmsetup create mapped
scrub mapper /dev/mapper/mapped
step mapper-scsi idlewise scrub /dev/mapper/mapped --verifier scsi $PACE

modprobe scsi_debug dev_size_mb=16 opts=2 medium_error_start=4660 medium_error_count=3
debug=$(find_disk scsi_debug)
scrub scsi-debug "$debug" --verifier read

# One device dies, one is taken away; a third is none the worse.
fault_disk dead --fail-all-after 100
dead=$disk
fault_disk gone --cache 10ms
gone=$disk
fault_disk well --cache 5ms --bad 9
well=$disk
(until_running "$gone"
echo 1 > "/sys/block/${gone#/dev/}/device/delete") &
step many idlewise scrub "$dead" "$gone" "$well" $PACE
wait_for_jobs
step status idlewise status --state-dir /tmp/states --json

# A self-test of the disk's own is waited for.
touch /tmp/testing
fault_disk testing --self-test /tmp/testing
(for _ in $(seq 60); do
    idlewise status "$disk" --state-dir /tmp/states --json > /tmp/during 2>/dev/null
    grep -q '"doing": "others"' /tmp/during && break
    sleep 1
done
rm /tmp/testing) &
scrub self-test "$disk"
step self-test-during cat /tmp/during

# Disks that sleep are not woken up before somebody wants it.
touch /tmp/sata-sleeps /tmp/scsi-sleeps
fault_disk sata-sleeper --ata --asleep /tmp/sata-sleeps
sata=$disk
fault_disk scsi-sleeper --asleep /tmp/scsi-sleeps
scsi=$disk
# The kernel has looked for partitions.
touch /tmp/sata-sleeps /tmp/scsi-sleeps
service /tmp/sleepers "$sata" "$scsi"
for _ in $(seq 600); do
    [ "$(grep -c 'sleeps, and there is time' /tmp/sleepers.said)" = 2 ] && break
    sleep 0.1
done
sleep 5
step asleep ls /tmp/sata-sleeps /tmp/scsi-sleeps
idlewise start "$sata" --socket /tmp/control > /dev/null
for _ in $(seq 600); do
    [ -e /tmp/sata-sleeps ] || break
    sleep 0.1
done
step woken ls /tmp/sata-sleeps /tmp/scsi-sleeps
step sleepers-said cat /tmp/sleepers.said
kill $daemon
wait $daemon
