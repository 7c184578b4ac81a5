#!/bin/sh
# Runs in the emulated machine: what XFS learns of blocks that cannot be read, where its kernel can be told (since Linux 7.0).
. /lib/steps.sh

mkdir /xfs
mount -t xfs /dev/vm/2 /xfs; tell mounted $?
tracing=/sys/kernel/tracing
[ -e $tracing/trace ] || mount -t tracefs none $tracing
told=$tracing/events/xfs/xfs_verify_media_error
[ -e $told ]; tell can-be-told $?
[ ! -e $told ] || echo 1 > $told/enable
scrub whole /dev/vm/2
step told grep -o 'daddr 0x[0-9a-f]* bbcount 0x[0-9a-f]* error -[0-9]*' $tracing/trace
step release uname -r
