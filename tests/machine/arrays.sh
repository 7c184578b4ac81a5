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
