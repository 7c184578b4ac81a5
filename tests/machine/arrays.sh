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

# The service looks after an array by its members: it is done once, and what is wrong is told.
make_disks md55 3
# shellcheck disable=SC2086
make_array md55 raid5 2 65536 $disks
dd if=/dev/urandom of=/dev/md55 bs=1M oflag=direct 2>/dev/null
damage md55 1 4096 1
cat > /tmp/service.toml <<END
[[disk]]
match = "/dev/md55"
mean_slowdown = "1s"
max_slowdown = "10s"
[[disk]]
match = "*"
ignore = true
END
idlewise daemon --config /tmp/service.toml --state-dir /tmp/service --socket /tmp/control --look-every 1s 2> /tmp/service.said &
daemon=$!
for _ in $(seq 600); do
    grep -q 'the next pass begins' /tmp/service.said && break
    sleep 0.2
done
# Were its scrub not seen to have ended, it would begin again.
sleep 10
kill $daemon
wait $daemon
step service cat /tmp/service.said
