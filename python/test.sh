#!/bin/sh
# The tests of the Python package, on what `cargo build --workspace --lib --bins` has built. Arguments are those of pytest.
cd "$(dirname "$0")/.." || exit 1
./python/setup.sh
target=$(realpath "${CARGO_TARGET_DIR:-target}")
cmp -s python/tests-requirements.txt "$target/python/made-of" || { echo "the tests of the Python package are skipped"; exit 0; }
ln -sf "$target/debug/libidlewise_python.so" python/idlewise/_native.abi3.so
cd python && exec "$target/python/bin/python" -m pytest -q -o "cache_dir=$target/python/cache" --doctest-modules "${@:-tests}" idlewise
