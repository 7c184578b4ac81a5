#!/usr/bin/env bash
# Builds what is released for one architecture, in target/packages: a tarball, a .deb, an .rpm, and the debug information of the
# command in a file of its own. Usage: packaging/build.sh [x86_64 | aarch64]. `make dist` installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:-x86_64}
triple=$arch-unknown-linux-gnu
libraries=/usr/lib/$arch-linux-gnu # of libelf.a and libz.a
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target=${CARGO_TARGET_DIR:-target}
out=$target/packages
tree=$out/$arch
declare -A deb=([x86_64]=amd64 [aarch64]=arm64)

[ -e "$libraries/libelf.a" ] || { echo "dist: no $libraries/libelf.a: install libelf-dev:${deb[$arch]} zlib1g-dev:${deb[$arch]}" >&2; exit 1; }
[ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || { echo "dist: no Rust library for $triple: rustup target add $triple" >&2; exit 1; }

# Static against glibc, whose allocator and copying musl has no match for. With --target, build scripts are linked as usual.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export LIBBPF_SYS_LIBRARY_PATH=$libraries
[ "$arch" = "$(uname -m)" ] || export AR=$arch-linux-gnu-ar
RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile dist --workspace --exclude idlewise-python --bin idlewise --features static --target "$triple"
built=$target/$triple/dist/idlewise

rm -rf "$tree"
mkdir -p "$tree/made"
objcopy=objcopy && [ "$arch" = "$(uname -m)" ] || objcopy=$arch-linux-gnu-objcopy
"$objcopy" --only-keep-debug "$built" "$out/idlewise-$version-$arch.debug"
install -D -m 755 "$built" "$tree/usr/bin/idlewise"
"$objcopy" --strip-all --add-gnu-debuglink="$out/idlewise-$version-$arch.debug" "$tree/usr/bin/idlewise"

# The files that the command makes of itself; for another machine, as an emulator runs it.
run=() && [ "$arch" = "$(uname -m)" ] || run=("qemu-$arch-static")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
"${run[@]}" "$tree/usr/bin/idlewise" generate-files "$tree/made" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)"
doc=$tree/usr/share/doc/idlewise
mkdir -p "$tree/usr/share/man/man1"
for page in "$tree"/made/*.1; do
    gzip -9nc "$page" > "$tree/usr/share/man/man1/${page##*/}.gz"
done
install -D -m 644 "$tree/made/idlewise.bash" "$tree/usr/share/bash-completion/completions/idlewise"
install -D -m 644 "$tree/made/_idlewise" "$tree/usr/share/zsh/vendor-completions/_idlewise"
install -D -m 644 "$tree/made/idlewise.fish" "$tree/usr/share/fish/vendor_completions.d/idlewise.fish"
rm -r "$tree/made"
packaging/files.sh "$tree"
gzip -9nc CHANGELOG.md > "$doc/CHANGELOG.md.gz"
{
    cat LICENSE
    printf '\nOn Debian systems the texts of the Apache License and of the GPL are in /usr/share/common-licenses/Apache-2.0 and\n'
    printf '/usr/share/common-licenses/GPL-2. What is inside the command from others is in LICENCES.gz. The MIT license:\n\n'
    cat LICENSE-MIT
} > "$doc/copyright"
packaging/licences.py "$triple" | gzip -9n > "$doc/LICENCES.gz"

name=idlewise-$version-$arch
tar -C "$tree" --transform "s|^\.|$name|" --owner=0 --group=0 --sort=name --mtime="@$SOURCE_DATE_EPOCH" -cf - . | gzip -9n > "$out/$name.tar.gz"
packaging/rpm.sh "$tree" "$version" "$arch" "$out"
packaging/deb.sh "$tree" "$version" "${deb[$arch]}" "$out"
ls -l "$out" | grep -v "^d"
