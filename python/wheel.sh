#!/bin/sh
# Builds the wheel and the source package in target/wheels, and checks both. The wheel is one for all versions from CPython 3.11 on (abi3).
# maturin makes it, as only it reads the version from Cargo.toml and names the wheel by the symbols that are linked. It links with zig,
# which knows the symbols of older glibc: so the wheel also runs on systems of 2014 (glibc 2.17), wherever it is built.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath "${CARGO_TARGET_DIR:-target}")
tools=$target/tools/python
made_of="maturin==1.16.0 ziglang==0.17.1 abi3audit==0.0.26 twine==7.0.0"
if [ "$(cat "$tools/made-of" 2>/dev/null)" != "$made_of" ]; then
    python3 -m venv "$tools"
    # shellcheck disable=SC2086 # a word each
    "$tools/bin/pip" install -q $made_of
    echo "$made_of" > "$tools/made-of"
fi
PATH=$tools/bin:$PATH
rm -rf "$target/wheels"
cd python
echo "Building the wheel: about 6 minutes on 2 cores from nothing."
maturin build --release --zig --compatibility manylinux2014 --out "$target/wheels"
maturin sdist --out "$target/wheels"
abi3audit --strict "$target"/wheels/*.whl
twine check --strict "$target"/wheels/*
# The source package has all that it is built of. Its files count as new: what an older one was built of must not be taken for them.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
tar xzmf "$target"/wheels/idlewise-*.tar.gz -C "$source"
cd "$source"/idlewise-*
CARGO_TARGET_DIR=$target cargo check --quiet --locked --package idlewise-python
