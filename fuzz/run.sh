#!/bin/sh
# Fuzzes every parser for some seconds each: fuzz/run.sh [SECONDS] [TARGET...]. Needs clang. Coverage comes from the compiler
# as it is; no nightly toolchain is needed.
set -eu
cd "$(dirname "$0")"
seconds=${1:-30}
[ $# -gt 0 ] && shift
targets=${*:-$(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | grep -vE '^(idlewise-fuzz|samples)$')}
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    CARGO_BUILD_RUSTFLAGS='' cargo build --release --quiet --target "$host" --bins
"target/$host/release/samples"
for target in $targets; do
    mkdir -p "corpus/$target" "artifacts/$target"
    echo "== $target"
    "target/$host/release/$target" "corpus/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=65536 -artifact_prefix="artifacts/$target/" -print_final_stats=1 -verbosity=0 2>&1 |
        grep -E "stat::(number_of_executed|peak_rss)|ERROR|panicked|SUMMARY" || true
    if [ -n "$(ls -A "artifacts/$target")" ]; then
        echo "$target: see fuzz/artifacts/$target" >&2
        exit 1
    fi
done
