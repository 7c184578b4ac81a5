#!/bin/bash
# Fuzzes everything that idlewise reads, and what its commands do with it: fuzz/run.sh [SECONDS | --runs COUNT] [TARGET...], each
# target for so long, side by side, from fuzz/corpus. What reaches something new is kept in fuzz/found, findings in fuzz/artifacts.
# Needs clang. Coverage comes from the compiler as it is; no nightly toolchain is needed.
set -euo pipefail
cd "$(dirname "$0")"
limit=-max_total_time=30
case ${1:-} in
--runs) limit=-runs=$2 && shift 2 ;;
[0-9]*) limit=-max_total_time=$1 && shift ;;
esac
jobs=${JOBS:-$(nproc)}
host=$(rustc -vV | sed -n 's/^host: //p')
bins=$PWD/target/$host/release
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    CARGO_BUILD_RUSTFLAGS='' cargo build --release --locked --quiet --target "$host" --bins
"$bins/seeds"

# Lines of program and target: without TARGET a program says what it holds.
all() {
    for program in formats files state commands; do
        env -u TARGET "$bins/$program" 2>/dev/null | sed "s/^/$program /"
    done
}

# What most inputs of these targets need: a parser little memory and time, a command that simulates more. The size leaves room
# for some hundred records.
limits() {
    case $1 in
    commands) echo "-rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=20 -max_len=1024" ;;
    files) echo "-rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=10 -max_len=4096" ;;
    *) echo "-rss_limit_mb=512 -malloc_limit_mb=256 -timeout=5 -max_len=4096" ;;
    esac
}

# Runs one target; a line of the table.
one() {
    local program=$1 target=$2 result=ok
    mkdir -p "corpus/$target" "found/$target" "artifacts/$target" logs
    # Temporary files are in memory. Words of limits are options of their own.
    # shellcheck disable=SC2046
    TARGET=$target TMPDIR=/dev/shm RUST_BACKTRACE=0 "$bins/$program" "found/$target" "corpus/$target" "$limit" $(limits "$program") \
        -artifact_prefix="artifacts/$target/" -print_final_stats=1 -verbosity=0 >"logs/$target" 2>&1 || result=FAILED
    [ -z "$(ls -A "artifacts/$target")" ] || result="fuzz/artifacts/$target/$(ls "artifacts/$target" | head -n 1)"
    awk -v target="$target" -v result="$result" '
        { value[$1] = $2 }
        END { printf "%-16s %12d %10d %7d MiB  %s\n", target, value["stat::number_of_executed_units:"],
              value["stat::average_exec_per_sec:"], value["stat::peak_rss_mb:"], result }' "logs/$target"
}
export -f one limits
export bins limit

wanted=" $* "
table=$(all | while read -r program target; do
    [ "$wanted" != "  " ] && [[ $wanted != *" $target "* ]] || echo "$program $target"
done | xargs -r -P "$jobs" -L 1 bash -c 'one "$@"' one)
printf '%-16s %12s %10s %11s  %s\n%s\n' target executions 'a second' memory result "$table"
[ -n "$table" ] && ! grep -qvE '  ok$' <<<"$table"
