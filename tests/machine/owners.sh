#!/bin/sh
# Runs in the emulated machine: md's own check, held and let go in the gaps; what is left of it when it is killed, so often as the first
# argument says.
. /lib/steps.sh
. /lib/layouts.sh

export XDG_RUNTIME_DIR=/run
fault_disk slow-0 --cache 3ms
left=$disk
fault_disk slow-1 --cache 3ms
right=$disk
for file in /tmp/slow-0.img /tmp/slow-1.img; do truncate -s 64M "$file"; done
raid1 md0 32704 "$left" "$right"
md=/sys/block/md0/md
knobs() { cat $md/sync_action $md/sync_min $md/sync_max $md/sync_speed_min $md/sync_speed_max; }
step before knobs

OWN="--state-dir /tmp/states --json --quiet"
step not-yet idlewise owner-scrub /dev/md0 --state-dir /tmp/states
step untouched knobs

# Alone: all of it, and what does not match is counted. Behind the backs of both.
dd if=/dev/urandom of=/dev/md0 bs=1M count=31 oflag=direct 2>/dev/null
for sector in 1000 1003 30000; do
    dd if=/dev/urandom of="$left" bs=512 seek=$sector count=1 oflag=direct conv=notrunc 2>/dev/null
done
for by in md-gate md-steps; do
    # shellcheck disable=SC2086
    step "alone-$by" idlewise owner-scrub /dev/md0 --by $by --idle-wait 10ms --mean-slowdown 1s --allow-writes $OWN --restart
    step "alone-$by-after" knobs
done

# Beside somebody who uses the array: it is held, goes on, and comes to its end.
write_now_and_then() {
    : > /tmp/written
    while [ -e /tmp/writing ]; do
        dd if=/dev/urandom of=/dev/md0 bs=4k seek=100 count=1 oflag=direct conv=notrunc 2>/dev/null
        echo 1 >> /tmp/written
        sleep 0.2
    done
}
until_checked() {
    for _ in $(seq 6000); do [ "$(cat "/sys/block/$1/md/sync_action")" = check ] && break; sleep 0.01; done
}
for by in md-gate md-steps; do
    touch /tmp/writing
    write_now_and_then &
    writing=$!
    # What was written before somebody looked is not seen.
    (until_checked md0; : > /tmp/written) &
    # shellcheck disable=SC2086
    step "beside-$by" idlewise owner-scrub /dev/md0 --by $by --idle-wait 20ms --mean-slowdown 1s --allow-writes $OWN --restart
    step "beside-$by-writes" cat /tmp/written
    rm /tmp/writing
    wait $writing
    step "beside-$by-after" knobs
done

# Ended by a signal, and by --for: it goes on from there, and counts nothing twice.
touch /tmp/writing
write_now_and_then &
own="idlewise owner-scrub /dev/md0 --by md-gate --idle-wait 20ms --mean-slowdown 1s --allow-writes $OWN"
# shellcheck disable=SC2086
step ended $own --restart --for 2s
step ended-after knobs
rm /tmp/writing
wait $!
# shellcheck disable=SC2086
step resumed $own

# Ended again and again, it counts each of six windows once, as md does in one go.
for sector in 5000 20000 40000 60000; do
    dd if=/dev/urandom of="$right" bs=512 seek=$sector count=1 oflag=direct conv=notrunc 2>/dev/null
done
echo check > $md/sync_action
for _ in $(seq 600); do [ "$(cat $md/sync_action)" = idle ] && break; sleep 0.1; done
step in-one-go cat $md/mismatch_cnt
own_gate="idlewise owner-scrub /dev/md0 --by md-gate --idle-wait 1ms --mean-slowdown 1s --allow-writes $OWN"
hundredths() { cut -d" " -f1 /proc/uptime | tr -d .; }
began=$(hundredths)
# shellcheck disable=SC2086
$own_gate --restart >/dev/null
whole=$((10 * ($(hundredths) - began)))
turns=0
more=--restart
# The first turns end before the check is over, or has begun, however fast this machine is.
while [ $turns -lt 60 ]; do
    # shellcheck disable=SC2086
    $own_gate --for $((whole / 8 + whole * turns / 25))ms $more > /tmp/again
    grep -q interrupted /tmp/again || break
    turns=$((turns + 1))
    more=
done
step again cat /tmp/again
tell turns $turns

# Somebody else ends it: it says so, and nothing is left.
touch /tmp/writing
write_now_and_then &
# What is said before md has begun is not heard.
(
    until_checked md0
    for _ in $(seq 600); do
        echo idle > $md/sync_action
        [ "$(cat $md/sync_action)" = idle ] && break
        sleep 0.1
    done
) &
# shellcheck disable=SC2086
step taken-away $own --restart
rm /tmp/writing
step taken-away-after knobs

# Killed at any moment: the next start puts all back, and a rebuild that is started then goes through.
killed=0
tries=${1:-24}
at=11
while [ $killed -lt "$tries" ]; do
    by=md-gate
    [ $((killed % 2)) = 0 ] || by=md-steps
    # shellcheck disable=SC2086
    idlewise owner-scrub /dev/md0 --by $by --idle-wait 5ms --mean-slowdown 1s --allow-writes $OWN --restart >/dev/null 2>&1 &
    pid=$!
    at=$(((at * 1103 + 12345) % 977))
    # At any moment, and every other time soon after the check has begun.
    case $((killed / 2 % 2)) in
    0) sleep "$((at / 500)).$(printf '%03d' $((at * 2 % 1000)))" ;;
    1) until_checked md0; sleep "0.$(printf '%03d' $((at / 8)))" ;;
    esac
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    knobs | tr '\n' ' ' >> /tmp/left; echo >> /tmp/left
    # Every third meets a rebuild, which has to pass whatever limit was left.
    if [ $((killed % 3)) = 0 ]; then
        idlewise owner-scrub /dev/md0 --state-dir /tmp/states >/dev/null 2>&1
        echo idle > $md/sync_action 2>/dev/null
        echo faulty > "$md/dev-${right#/dev/}/state"
        for _ in $(seq 50); do
            echo remove > "$md/dev-${right#/dev/}/state" 2>/dev/null
            [ -e "$md/dev-${right#/dev/}" ] || break
            sleep 0.1
        done
        cat "/sys/block/${right#/dev/}/dev" > $md/new_dev
        echo 1 > "$md/dev-${right#/dev/}/slot"
        echo recover > $md/sync_action
        for _ in $(seq 300); do
            [ "$(cat $md/degraded)" = 0 ] && [ "$(cat $md/sync_action)" = idle ] && break
            sleep 0.1
        done
        cat $md/degraded >> /tmp/degraded
    else
        idlewise owner-scrub /dev/md0 --state-dir /tmp/states >/dev/null 2>&1
    fi
    knobs | tr '\n' ' ' >> /tmp/put-back; echo >> /tmp/put-back
    killed=$((killed + 1))
done
step left cat /tmp/left
step put-back cat /tmp/put-back
step degraded cat /tmp/degraded
step notes sh -c 'ls /run/idlewise/*.knobs 2>/dev/null'

# Another array on the same disks: md would have it wait, so the check is ended, and not begun. It looks once a second, and this takes longer.
two_partitions() {
    partitions "/tmp/$1.img" '\000\010\000\000\000\000\001\000' '\000\010\001\000\000\200\000\000'
    fault_disk "$@"
}
two_partitions pair-0 --cache 20ms
left=$disk
two_partitions pair-1 --cache 20ms
right=$disk
raid1 md2 32704 "${left}1" "${right}1"
raid1 md3 16320 "${left}2" "${right}2"
# In KiB a second: it is not over before the next step.
echo 1000 > /sys/block/md3/md/sync_speed_max
(
    until_checked md2
    echo check > /sys/block/md3/md/sync_action
) &
# shellcheck disable=SC2086
step beside-another idlewise owner-scrub /dev/md2 --by md-steps --idle-wait 500ms --mean-slowdown 1s --allow-writes $OWN
step other cat /sys/block/md3/md/sync_action
# shellcheck disable=SC2086
step not-beside idlewise owner-scrub /dev/md2 --by md-steps --allow-writes $OWN
for _ in $(seq 600); do [ "$(cat /sys/block/md3/md/sync_action)" = idle ] && break; sleep 0.1; done
step other-is-over cat /sys/block/md3/md/sync_action
