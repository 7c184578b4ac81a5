#!/bin/sh
# Runs in the emulated machine: ZFS's own scrub, paused and resumed in the gaps; what is left of it when it is killed. The first argument is
# the folder that ZFS's libraries were in, two are empty disks, and the last one says how often it is killed.
. /lib/steps.sh

export XDG_RUNTIME_DIR=/run
mkdir -p /etc/zfs /tank /usr/lib /usr/sbin /run/udev/data
ln -sf /proc/self/mounts /etc/mtab
# As distributions put them, with libraries that lie elsewhere.
for tool in zpool zfs zinject; do
    mv /usr/bin/$tool /usr/lib/$tool
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/lib exec /usr/lib/%s "$@"\n' "$1" $tool > /usr/sbin/$tool
    chmod +x /usr/sbin/$tool
done
# There is no udevd, and zpool waits for it to know each partition: say that it does.
for minor in $(seq 0 255); do printf 'S:null\nI:1\n' > "/run/udev/data/b8:$minor"; done
: > /run/udev/control
for disk in "$2" "$3"; do printf 'o\nn\np\n1\n\n\nw\n' | fdisk "$disk" > /dev/null 2>&1; done
sleep 1
left=$(readlink -f "$2")1
right=$(readlink -f "$3")1
step made zpool create -f -O compression=off -O atime=off -O primarycache=metadata -m /tank tank mirror "$left" "$right"
[ $code = 0 ] || exit 0
dd if=/dev/urandom of=/tank/data bs=1M count=120 2>/dev/null
sync

WISH="--idle-wait 300ms --mean-slowdown 5s --max-slowdown 5s --state-dir /tmp/states --json --quiet"
own="idlewise owner-scrub $left --allow-writes $WISH"
# slow MILLISECONDS: each request of the left disk takes so long.
slow() { zinject -d "$left" -D "$1:1" tank > /dev/null; }
fast() { zinject -c all > /dev/null; }
scan() { zpool status tank | sed -n 's/^ *scan: //p'; }
# What ZFS counts on a disk.
counted() { zpool status -p -P tank | awk -v disk="$1" '$1 == disk { print $3 + $5 }'; }
until_it() { for _ in $(seq 600); do scan | grep -q "$1" && return; sleep 0.1; done; }

step too-short idlewise owner-scrub "$left" --allow-writes --state-dir /tmp/states
step not-yet idlewise owner-scrub "$left" --max-slowdown 5s --state-dir /tmp/states
step untouched scan
# shellcheck disable=SC2086
step alone $own
step alone-after scan

# Behind the back of ZFS, in the data; the labels lie at both ends.
zpool export tank
dd if=/dev/urandom of="$left" bs=1M seek=20 count=200 oflag=direct conv=notrunc 2>/dev/null
zpool import -d "$left" -d "$right" tank
step damaged-before counted "$left"
# shellcheck disable=SC2086
step damaged $own
step damaged-counted counted "$left"
step damaged-after scan
# shellcheck disable=SC2086
step mended $own

# Beside somebody who reads now and then: it is paused, goes on, and comes to its end.
echo 131072 > /sys/module/zfs/parameters/zfs_vdev_aggregation_limit
slow 15
: > /tmp/read
touch /tmp/reading
(while [ -e /tmp/reading ]; do
    dd if=/tank/data of=/dev/null bs=4k count=1 skip=$((RANDOM % 30000)) 2>/dev/null
    echo 1 >> /tmp/read
    sleep 12
done) &
# shellcheck disable=SC2086
step beside $own
step beside-reads cat /tmp/read
rm /tmp/reading
step beside-after scan

# Ended by --for; it goes on from there.
# shellcheck disable=SC2086
step ended $own --for 6s
step ended-after scan
# shellcheck disable=SC2086
step anew $own --restart
fast
# shellcheck disable=SC2086
step resumed $own
step resumed-after scan

# Somebody else's scrub is left alone; one that somebody else pauses is not let go again.
slow 15
zpool scrub tank
# shellcheck disable=SC2086
step beside-another $own
step another scan
zpool scrub -s tank
# shellcheck disable=SC2086
$own > /tmp/taken.json 2> /tmp/taken.err &
driver=$!
until_it 'in progress'
# Nor is another disk of the pool scrubbed meanwhile.
step other-disk idlewise scrub "$right" --for 1s --content none --state-dir /tmp/states
sleep 4
zpool scrub -p tank
wait $driver
tell taken-away $?
step taken-away-why cat /tmp/taken.err
step taken-away-after scan
zpool scrub -s tank

# Killed, it leaves its scrub at work; whoever comes next has it pause.
: > /tmp/left
: > /tmp/put-back
for _ in $(seq "${4:-5}"); do
    # shellcheck disable=SC2086
    $own > /dev/null 2>&1 &
    driver=$!
    until_it 'in progress'
    sleep "$((RANDOM % 3)).$(printf '%03d' $((RANDOM % 1000)))"
    kill -9 $driver
    wait $driver 2>/dev/null
    scan >> /tmp/left
    idlewise owner-scrub "$left" --max-slowdown 5s --state-dir /tmp/states > /dev/null 2>&1
    scan >> /tmp/put-back
done
step left cat /tmp/left
step put-back cat /tmp/put-back
step notes find /run -name '*.zpool'
zpool scrub -s tank
fast

zpool offline tank "$right"
# shellcheck disable=SC2086
step degraded $own
zpool export tank
# shellcheck disable=SC2086
step exported $own
