#!/bin/sh
# Runs in the emulated machine: arrays, repair, privileges, and a drive that answers from its cache.
. /lib/steps.sh

# Two members of one array are scrubbed one after the other, also while it runs.
dd if=/dev/urandom of=/tmp/left.img bs=1M count=32 2>/dev/null
cp /tmp/left.img /tmp/right.img
fault_disk left --bad 6000-6001
left=$disk
fault_disk right --cache 2ms
right=$disk
raid1 md0 32704 "$left" "$right"
# shellcheck disable=SC2086
step members idlewise scrub "$left" "$right" $PACE
step dry-run idlewise scrub "$left" "$right" $PACE --dry-run

# The medium is rewritten by md, only where it was unreadable.
step md-in-use idlewise repair "$left" --mirror "$right" --allow-writes --state-dir /tmp/states
step md-not-yet grep -E '^(2a|8a) ' /tmp/left.log
step md-repair idlewise repair "$left" --md --allow-writes --state-dir /tmp/states --log /tmp/repairs --json
step md-log cat /tmp/repairs
step md-writes grep -E '^(2a|8a) ' /tmp/left.log
scrub md-again "$left"
cmp /tmp/left.img /tmp/right.img; tell md-same $?

# A mirror whose members are not the same near an unreadable block, and one of whose checks was left where a killed repair had it.
dd if=/dev/urandom of=/tmp/odd.img bs=1M count=16 2>/dev/null
cp /tmp/odd.img /tmp/even.img
dd if=/dev/urandom of=/tmp/odd.img bs=512 seek=1040 count=1 conv=notrunc 2>/dev/null
cp /tmp/odd.img /tmp/odd.before
fault_disk odd --bad 1031
odd=$disk
fault_disk even
even=$disk
raid1 md1 16320 "$odd" "$even"
scrub md-odd "$odd"
step md-differs idlewise repair "$odd" --md --allow-writes --state-dir /tmp/states
step md-differs-writes grep -E '^(2a|8a) ' /tmp/odd.log
cmp /tmp/odd.img /tmp/odd.before; tell md-differs-same $?
# As it was: the same on both. Now a check is left as a killed repair leaves it: a limit, and a note of what was there before.
dd if=/tmp/even.img of="$odd" bs=512 skip=1040 seek=1040 count=1 oflag=direct 2>/dev/null
array=/sys/block/md1/md
echo 0 > $array/sync_min
echo 128 > $array/sync_max
echo check > $array/sync_action
sleep 2
step md-stands cat $array/sync_action
# Nobody's, as far as can be told: it is left alone.
step md-stands-unknown idlewise repair "$odd" --md --allow-writes --state-dir /tmp/states
namespace=$(readlink /proc/self/ns/pid | tr -dc 0-9)
cat > /run/idlewise/99999-1.knobs <<END
{"version": 3, "process": {"pid": 99999, "start_ticks": 1, "pid_namespace": $namespace, "boot_id": "$(cat /proc/sys/kernel/random/boot_id)"}}
{"folder": "/sys/block/md1/md", "action": "check", "begin": 0, "speeds": ["system", "system"], "min": "0", "max": "max"}
END
chmod 600 /run/idlewise/99999-1.knobs
scrub md-stands-scrub "$even"
step md-stands-again cat $array/sync_action $array/sync_max
step md-stands-repair idlewise repair "$odd" --md --allow-writes --state-dir /tmp/states
step md-stands-over cat $array/sync_action $array/sync_max

# A mirror of which one member has larger blocks, and holds something else near an unreadable block.
dd if=/dev/urandom of=/tmp/small.img bs=1M count=8 2>/dev/null
cp /tmp/small.img /tmp/large.img
dd if=/dev/urandom of=/tmp/small.img bs=512 seek=6010 count=1 conv=notrunc 2>/dev/null
cp /tmp/small.img /tmp/small.before
fault_disk small --bad 6000-6001
small=$disk
modprobe scsi_debug dev_size_mb=8 sector_size=4096
large=$(find_disk scsi_debug)
dd if=/tmp/large.img of="$large" bs=1M oflag=direct 2>/dev/null
raid1 md2 8128 "$small" "$large"
scrub mixed-before "$small"
step mixed idlewise repair "$small" --md --allow-writes --state-dir /tmp/states
cmp /tmp/small.img /tmp/small.before; tell mixed-same $?
rm /tmp/small.before /tmp/large.img

# A member is taken out while the array is scrubbed: what it holds fits still, and is none of the array's.
dd if=/dev/urandom of=/tmp/stays.img bs=1M count=16 2>/dev/null
cp /tmp/stays.img /tmp/goes.img
fault_disk stays --cache 60ms
stays=$disk
fault_disk goes --cache 60ms
goes=$disk
raid1 md3 16320 "$stays" "$goes"
(until_running /dev/md3
state=/sys/block/md3/md/dev-${goes#/dev/}/state
echo faulty > "$state"
until echo remove > "$state"; do sleep 0.1; done) 2>/dev/null &
step member-goes idlewise scrub /dev/md3 --request-size 64KiB --idle-wait 1ms --state-dir /tmp/states --json --quiet
step member-gone cat /sys/block/md3/md/degraded

# An array that gets a place for a third member while it is scrubbed: the pass is not over, and the next one begins anew.
dd if=/dev/urandom of=/tmp/grows.img bs=1M count=4 2>/dev/null
cp /tmp/grows.img /tmp/grown.img
fault_disk grows --cache 150ms
grows=$disk
fault_disk grown --cache 150ms
raid1 md4 3968 "$grows" "$disk"
(until_running /dev/md4
until echo 3 > /sys/block/md4/md/raid_disks; do sleep 0.1; done) 2>/dev/null &
step reshaped idlewise scrub /dev/md4 --request-size 64KiB --idle-wait 1ms --state-dir /tmp/states --json --quiet

# md's own check is waited for; it comes after the repair, as it would have done its work.
echo 200 > /sys/block/md0/md/sync_speed_max
echo check > /sys/block/md0/md/sync_action
# shellcheck disable=SC2086
step md-check idlewise scrub "$right" $PACE --restart --for 5s
step md-check-status idlewise status "$right" --state-dir /tmp/states --json
echo idle > /sys/block/md0/md/sync_action
echo system > /sys/block/md0/md/sync_speed_max

# From a mirror, neither of them in use.
dd if=/dev/urandom of=/tmp/one.img bs=1M count=16 2>/dev/null
cp /tmp/one.img /tmp/two.img
fault_disk one --bad 700-702,9000
one=$disk
fault_disk two --bad 9000
two=$disk
dd if=/dev/zero of=/tmp/one.img bs=512 seek=700 count=3 conv=notrunc 2>/dev/null
scrub mirror-before "$one"
step mirror-without-leave idlewise repair "$one" --mirror "$two" --state-dir /tmp/states
step mirror-cap idlewise repair "$one" --mirror "$two" --allow-writes --max-blocks 3 --state-dir /tmp/states
step mirror-itself idlewise repair "$one" --mirror "$one" --allow-writes --state-dir /tmp/states
! grep -q -E '^(2a|8a) ' /tmp/one.log; tell mirror-not-yet $?
step mirror idlewise repair "$one" --mirror "$two" --allow-writes --state-dir /tmp/states --log /tmp/mirrored --json
scrub mirror-again "$one"
cmp /tmp/one.img /tmp/two.img; tell mirror-same $?
step mirror-log cat /tmp/mirrored

# With a few capabilities instead of root, and with none.
fault_disk capable --ata
chmod 666 "$disk"
mkdir -m 700 /tmp/nobody
chown 65534:65534 /tmp/nobody
# The shell has a setpriv of its own, which can do less.
nobody="/usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups"
# shellcheck disable=SC2086
step nobody $nobody idlewise scrub "$disk" ${PACE%%--state-dir*} --state-dir /tmp/nobody --json
step nobody-ata $nobody idlewise scrub "$disk" ${PACE%%--state-dir*} --state-dir /tmp/nobody --verifier ata
caps=+sys_rawio,+bpf,+perfmon
step capable $nobody --inh-caps "$caps" --ambient-caps "$caps" \
    idlewise scrub "$disk" ${PACE%%--state-dir*} --state-dir /tmp/nobody --json --restart
chmod 666 /dev/ng0n1 /dev/nvme0n1
step nvme-nobody $nobody idlewise scrub /dev/nvme0n1 ${PACE%%--state-dir*} --state-dir /tmp/nobody --verifier nvme
step nvme-capable $nobody --inh-caps +sys_admin --ambient-caps +sys_admin \
    idlewise scrub /dev/nvme0n1 ${PACE%%--state-dir*} --state-dir /tmp/nobody --json
step nobody-status $nobody idlewise status --state-dir /tmp/states --json

# A SATA drive that answers VERIFY from its cache, as the paper found, and a SCSI drive that reads.
fault_disk cached --ata --cache 12ms --size 8
step cached idlewise probe "$disk" --json --switch-read-cache
step cached-commands grep '^85/ef' /tmp/cached.log
fault_disk scsi-cached --cache 12ms --size 8
step scsi-cached idlewise probe "$disk" --json --switch-read-cache
step scsi-cached-commands grep '^55' /tmp/scsi-cached.log
# Killed meanwhile, it leaves a note, and the next one that writes switches it on again.
fault_disk killed --ata --cache 12ms --size 8
idlewise probe "$disk" --json --switch-read-cache > /dev/null 2>&1 &
probe=$!
for _ in $(seq 1800); do
    grep -q '^85/ef' /tmp/killed.log && break
    sleep 0.1
done
kill -KILL $probe
wait $probe
scrub killed-next "$disk"
step killed-commands grep -c '^85/ef' /tmp/killed.log
