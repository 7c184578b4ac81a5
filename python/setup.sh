#!/bin/sh
# What the tests of the Python package need, in target/python. Nothing here may fail a build: machines without a package index exist.
cd "$(dirname "$0")/.." || exit 0
venv=${CARGO_TARGET_DIR:-target}/python
if ! cmp -s python/tests-requirements.txt "$venv/made-of"; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q -r python/tests-requirements.txt &&
        cp python/tests-requirements.txt "$venv/made-of"; } ||
        echo "python: what the tests need cannot be installed here; they will be skipped" >&2
fi
exit 0
