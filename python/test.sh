#!/bin/sh
# The tests of the Python package, on what `cargo build --workspace` has built. Without a package index they are skipped, and say so.
cd "$(dirname "$0")/.." || exit 1
target=$(realpath "${CARGO_TARGET_DIR:-target}")
venv=$target/python
if ! cmp -s python/tests-requirements.txt "$venv/made-of"; then
    python3 -m venv "$venv" && "$venv/bin/pip" install -q -r python/tests-requirements.txt &&
        cp python/tests-requirements.txt "$venv/made-of" || {
        echo "python: what the tests need cannot be installed here; they are skipped" >&2
        exit 0
    }
fi
ln -sf "$target/debug/libidlewise_python.so" python/idlewise/_native.abi3.so
cd python && exec "$venv/bin/python" -m pytest -q -p no:cacheprovider --doctest-modules "${@:-tests}" idlewise
