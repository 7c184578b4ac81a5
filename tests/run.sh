#!/usr/bin/env bash
# Every test, in two rows beside each other, as most tests wait for a disk or a clock. The second row is shown at the end. What failed
# is run once more with nothing beside it: on a machine that others use as well, one stands still now and then. ALSO is a command that
# tests what is no part of the workspace; the Python package is tested behind it.
set -uo pipefail
cd "$(dirname "$0")/.."
# More at a time than there are processors, for the same reason.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
all=(cargo test --locked --workspace)
# More than this is no accident.
most=5
shown=$(mktemp -d)
trap 'rm -rf "$shown"' EXIT
trap 'trap - INT TERM; kill 0' INT TERM
{
    "${all[@]}" --no-fail-fast --lib --bins --examples --test '[mrt]*'
    echo $? > "$shown/first"
    "${all[@]}" --doc && sh -c "${ALSO:-true}"
    echo $? > "$shown/also"
    python/test.sh
    echo $? > "$shown/python"
} > "$shown/first-row" 2>&1 &
"${all[@]}" --no-fail-fast --test '[!mrt]*' 2>&1 | tee "$shown/second-row"
second=$?
wait $!
cat "$shown/first-row"
also=$(cat "$shown/also")
[ "$also" = 0 ] || exit "$also"

lines() { cat "$shown/first-row" "$shown/second-row"; }
mapfile -t failed < <(lines | sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' | sort -u)
python=$(cat "$shown/python")
in_python=$(sed -n 's/^FAILED \(tests\/.*::[^ ]*\).*/\1/p' "$shown/first-row")
if [ "$python" != 0 ]; then
    # Pytest says with 1 that tests failed, and nothing worse.
    [ "$python" = 1 ] && [ -n "$in_python" ] && [ "$(wc -l <<< "$in_python")" -le $most ] || exit 1
    echo "Failed beside the others, and run once more alone:" $in_python
    python/test.sh --last-failed tests || exit 1
    echo "Passed alone, having failed beside the others:" $in_python
fi
[ "$second" = 0 ] && [ "$(cat "$shown/first")" = 0 ] && exit 0
# A program of tests that was killed, or was not built, tells no names.
programs=$(lines | grep -c '^error: .*to rerun pass')
told=$(lines | grep -c '^test result: FAILED')
[ ${#failed[@]} -gt 0 ] && [ ${#failed[@]} -le $most ] && [ "$programs" = "$told" ] || exit 1
echo "Failed beside the others, and run once more alone: ${failed[*]}"
"${all[@]}" --quiet --no-fail-fast --lib --bins --examples --test '*' -- --exact --test-threads=1 "${failed[@]}" || exit 1
echo "Passed alone, having failed beside the others: ${failed[*]}"
