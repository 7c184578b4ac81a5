#!/bin/sh
# Runs in the emulated machine: a month of the service on 40 disks, with a clock that is sped up, while a disk is taken out and put back at each
# step of it. A line for each day: what the service holds. `make month` runs it.
STEP_MINUTES=50
DAYS=${1:-30}
DISKS=${2:-40}
states=/tmp/states

date -s '2026-06-01 00:00' > /dev/null
modprobe scsi_debug dev_size_mb=8 num_tgts="$DISKS" max_luns=1
# An emulated machine is slow: any goal that it can keep.
cat > /tmp/idlewise.toml <<END
[defaults]
mean_slowdown = "1s"
max_slowdown = "10s"
[[disk]]
match = "/dev/nvme*"
ignore = true
END
idlewise daemon --config /tmp/idlewise.toml --state-dir $states --socket /tmp/control --look-every 1s 2> /tmp/said &
daemon=$!
sleep 5

# Waits for whatever is still being set up.
disks() {
    for folder in /sys/block/sd*; do
        grep -q scsi_debug "$folder/device/model" 2>/dev/null && echo "${folder##*/}"
    done
}
held() {
    echo "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$daemon/status)" \
        "$(find /proc/$daemon/fd -type l | wc -l)" "$(find /proc/$daemon/task -maxdepth 1 -mindepth 1 | wc -l)" \
        "$(awk '{ print $14 + $15 }' /proc/$daemon/stat)" "$(disks | wc -l)" \
        "$(grep -o '"completed_unix_s"' $states/schedule.state 2>/dev/null | wc -l)"
}
rescan() {
    for host in /sys/class/scsi_host/host*; do
        echo '- - -' > "$host/scan"
    done
}

echo 'day rss_kib descriptors threads ticks disks passes'
minutes=0
step=0
while [ $minutes -lt $((DAYS * 1440)) ]; do
    [ $((minutes % 1440)) -ge $STEP_MINUTES ] || echo "$((minutes / 1440)) $(held)"
    rescan
    # shellcheck disable=SC2046
    set -- $(disks)
    shift $((step % $#))
    echo 1 > "/sys/block/$1/device/delete"
    sleep 1
    minutes=$((minutes + STEP_MINUTES))
    step=$((step + 1))
    date -s "@$(($(date +%s) + STEP_MINUTES * 60))" > /dev/null
    kill -0 $daemon || break
done
rescan
sleep 10
echo "$DAYS $(held)"
kill -0 $daemon || echo 'the service has ended'
kill -TERM $daemon
wait $daemon
echo "ended with $?"
echo "overdue: $(grep -c 'is overdue' /tmp/said), failed: $(grep -c 'its scrub failed' /tmp/said)"
idlewise status --state-dir $states --json > /tmp/status.json
echo "status ended with $?: $(grep -c '"identity"' /tmp/status.json) checkpoints, $(grep -c '"state": "complete"' /tmp/status.json) complete"
sed 's/^[^:]*: //; s/[0-9.]\+ *[a-zµ]*/N/g' /tmp/said | sort | uniq -c | sort -rn | head -20
