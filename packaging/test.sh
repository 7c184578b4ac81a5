#!/usr/bin/env bash
# Checks the packages of this machine's architecture in target/packages: manual pages, lintian, and the .deb in a bare system, where
# it is installed, scrubs a file-backed disk, and is removed without a trace. What cannot run here is skipped, which it says.
# Usage: packaging/test.sh [SUITE], a Debian release such as bullseye; stable unless given.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-target}/packages
arch=$(uname -m)
suite=${1:-stable}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
deb=$(ls "$out/idlewise_${version}_$(dpkg --print-architecture).deb")
skip() { echo "SKIPPED: $1"; echo "$passed passed, 0 failed, 1 skipped"; exit 0; }
fail() { echo "FAILED: $1" >&2; exit 1; }
passed=0
ok() { passed=$((passed + 1)); echo "ok: $1"; }

size=$(stat -c %s "$out/$arch/usr/bin/idlewise")
[ "$size" -le 15000000 ] || fail "the command has $size bytes, more than 15 MB"
ok "the command has $size bytes"
! readelf --program-headers "$out/$arch/usr/bin/idlewise" | grep -q INTERP || fail "the command is not static"
ok "the command is static"
for page in "$out/$arch"/usr/share/man/man1/*.gz; do
    said=$(zcat "$page" | mandoc -T lint -W warning 2>&1) || fail "${page##*/}: $said"
done
ok "mandoc has no warning about $(ls "$out/$arch/usr/share/man/man1" | wc -l) manual pages"
said=$(lintian --allow-root --fail-on error "$deb" 2>&1) || fail "lintian: $said"
ok "lintian has no error"
rpm --query --package --list "$out/idlewise-$version-1.$arch.rpm" | grep -q '^/usr/bin/idlewise$' || fail "the .rpm has no command"
ok "the .rpm has the command"

[ "$(id -u)" = 0 ] || skip "a bare system needs root"
# Kept from run to run; what is done in it is done in a copy.
base=$out/bare-$suite
if [ ! -e "$base" ]; then
    rm -rf "$base.new"
    debootstrap --variant=minbase "$suite" "$base.new" > "$base.log" 2>&1 ||
        skip "debootstrap cannot make a bare system here: $(tail -n 1 "$base.log")"
    mv "$base.new" "$base"
fi
root=$(mktemp -d)
disk=$(mktemp)
result=$(mktemp)
device=
clean() {
    umount "$root/dev" 2>/dev/null || true
    umount "$root/proc" "$root/sys" 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device"
    rm -rf --one-file-system "$root" "$disk" "$result"
}
trap clean EXIT
cp -a "$base/." "$root"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind /sys "$root/sys"
inside() { chroot "$root" "$@"; }
# Folders do not count where the package manager notes changes of its own.
listing() { (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/log \) -prune -o -print | sort); }

truncate -s 64M "$disk"
device=$(losetup --find --show "$disk") || skip "no loop device here"
before=$(listing)
cp "$deb" "$root/tmp/idlewise.deb"
inside dpkg --install /tmp/idlewise.deb >/dev/null || fail "the .deb does not install"
rm "$root/tmp/idlewise.deb"
ok "the .deb installs on Debian $(cat "$root/etc/debian_version"): $(inside idlewise --version)"
inside idlewise scrub "$device" --request-size 1MiB --idle-wait 1ms --mean-slowdown 10ms --max-slowdown 100ms --json > "$result" || fail "the scrub ended with $?"
python3 - "$result" <<'PYTHON' || fail "$(cat "$result")"
import json, sys
result = json.load(open(sys.argv[1]))
result = result[0] if isinstance(result, list) else result
assert result["verified_bytes"] == 64 << 20, result
assert result["idlewise"]["command"][1] == "scrub", result
PYTHON
ok "a scrub of a file-backed disk reads all of it"
inside dpkg --purge idlewise >/dev/null
[ "$before" = "$(listing)" ] || fail "left behind: $(diff <(echo "$before") <(listing))"
ok "nothing is left behind"
echo "$passed passed, 0 failed"
