#!/bin/bash
# Makes fuzz/corpus anew from itself and fuzz/found: a few small inputs that reach every place of the code that any of them reaches.
# After fuzz/run.sh, which builds the targets; takes minutes.
set -euo pipefail
cd "$(dirname "$0")"
bins=target/$(rustc -vV | sed -n 's/^host: //p')/release
for program in formats files state commands; do
    for target in $(env -u TARGET "$bins/$program" 2>/dev/null); do
        mkdir -p "found/$target" "corpus/$target" "kept/$target"
        # How often a place is reached would keep many times as many, and long ones are mostly more of the same.
        TARGET=$target TMPDIR=/dev/shm "$bins/$program" -set_cover_merge=1 -use_counters=0 -max_len=1024 \
            "kept/$target" "corpus/$target" "found/$target" 2>&1 | grep MERGE-OUTER || true
    done
done
rm -r corpus
mv kept corpus
