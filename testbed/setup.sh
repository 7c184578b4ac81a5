#!/usr/bin/env bash
# Installs what is missing to build and test: Debian packages, and Rust where there is none that is new enough.
set -euo pipefail
packages=$1
rust_packages=$2
rust_needed=$3

# Whether version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

wanted=()
for package in $packages; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || wanted+=("$package")
done
rust=$(rustc --version 2>/dev/null | cut -d ' ' -f 2 || true)
if [ -z "$rust" ] || ! command -v cargo >/dev/null; then
    for package in $rust_packages; do wanted+=("$package"); done
elif ! at_least "$rust" "$rust_needed"; then
    echo "setup: Rust $rust is too old: $rust_needed is needed (rustup update, or apt-get install $rust_packages)" >&2
    exit 1
fi
[ ${#wanted[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "setup: install these, or what your system calls them: ${wanted[*]}" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    sudo=$(command -v sudo) || { echo "setup: as root, run: apt-get install ${wanted[*]}" >&2; exit 1; }
fi
echo "setup: installing ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null

rust=$(rustc --version | cut -d ' ' -f 2)
if ! at_least "$rust" "$rust_needed"; then
    echo "setup: apt installed Rust $rust, but $rust_needed is needed: enable Debian's security archive, which has it" >&2
    exit 1
fi
