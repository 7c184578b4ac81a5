#!/bin/bash
# Builds ZFS for the kernel of the emulated machine, into target/zfs: modules, programs and their libraries, of Debian's packages. The test of
# ZFS's scrub needs them. It takes half an hour, gcc and make; apt must know the section contrib.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/testbed/vm/vm.sh" --fetch
version=$(sed 's/^linux-image-//' "$root/target/vm/linux-image-amd64/package")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
die() { echo "zfs.sh: $*" >&2; exit 1; }
# depends PACKAGE PATTERN: those of its dependencies that are called so.
depends() { apt-cache depends "$1" | sed -n 's/^ *Depends: //p' | grep -E "$2"; }
apt-cache show zfs-dkms > /dev/null 2>&1 || die "apt does not know zfs-dkms: its sources lack the section contrib"
mapfile -t built < <(depends "linux-headers-$version" '^linux-(headers-.*-common|kbuild)')
mapfile -t libraries < <(depends zfsutils-linux '^lib(nvpair|uutil|zfs|zpool)')
apt-get download -qq "linux-headers-$version" "${built[@]}" zfs-dkms zfsutils-linux zfs-test "${libraries[@]}" || die "apt-get cannot download"
for package in *.deb; do dpkg-deb -x "$package" unpacked; done
headers=$work/unpacked/usr/src/linux-headers
# As if they were installed.
sed -i "s#/usr/src/#$work/unpacked/usr/src/#" "$headers-$version/Makefile"
cd "$(echo "$work"/unpacked/usr/src/zfs-*)"
chmod +x configure config/* scripts/* 2> /dev/null || true
./configure --quiet --with-config=kernel --with-linux="$headers-${version%-*}-common" --with-linux-obj="$headers-$version"
make --quiet -j"$(nproc)"
to=$root/target/zfs
rm -rf "$to"
mkdir -p "$to"/{modules,sbin,lib}
find module -name '*.ko' -exec sh -c 'strip --strip-debug -o "$0/${1##*/}" "$1"' "$to/modules" {} \;
for program in zpool zfs zinject; do
    cp "$(find "$work/unpacked" -path "*/sbin/$program" -type f | head -n 1)" "$to/sbin/"
done
find "$work/unpacked" -name 'lib*.so.*' -path '*-linux-gnu/*' -exec cp -P {} "$to/lib/" \;
