#!/usr/bin/env bash
# Every test, in two rows beside each other, as most tests wait for a disk or a clock. The second row is shown at the end. ALSO
# is a command that tests what is no part of the workspace.
set -uo pipefail
cd "$(dirname "$0")/.."
# More at a time than there are processors, for the same reason.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
all=(cargo test --locked --workspace)
shown=$(mktemp)
trap 'rm -f "$shown"' EXIT
trap 'trap - INT TERM; kill 0' INT TERM
{
    "${all[@]}" --no-fail-fast --lib --bins --examples --test '[mrt]*'
    first=$?
    "${all[@]}" --doc || first=1
    sh -c "${ALSO:-true}" && [ $first = 0 ]
} > "$shown" 2>&1 &
"${all[@]}" --no-fail-fast --test '[!mrt]*'
failed=$?
wait $! || failed=$?
cat "$shown"
exit $failed
