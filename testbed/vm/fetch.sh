# shellcheck shell=bash
# Fetch the kernel: Debian's package, unpacked and not installed.

# Unpack the kernel package that the meta package $meta names, once, without installing it.
# Sets kernel_root (the unpacked tree), kernel_version and vmlinux (the bare ELF image).
fetch_kernel() {
    local package
    if [ ! -e "$cache/$meta/package" ]; then
        package=$(apt-cache depends "$meta" | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
        [ -n "$package" ] || die "$meta names no kernel; is apt's list up to date?"
        rm -rf "$cache/$meta"
        mkdir -p "$cache/$meta/root"
        echo "fetching $package for the tests in an emulated machine" >&2
        (cd "$cache/$meta" && apt-get download -qq "$package" 2>/dev/null) || die "apt-get cannot download $package"
        dpkg-deb -x "$cache/$meta/$package"_*.deb "$cache/$meta/root"
        rm "$cache/$meta/$package"_*.deb
        # Only the modules and the image are used.
        rm -rf "$cache/$meta/root/usr"
        kernel_version=${package#linux-image-}
        depmod -b "$cache/$meta/root" "$kernel_version"
        extract_vmlinux "$cache/$meta/root/boot/vmlinuz-$kernel_version" "$cache/$meta/vmlinux"
        echo "$package" > "$cache/$meta/package"
    fi
    package=$(< "$cache/$meta/package")
    kernel_version=${package#linux-image-}
    kernel_root=$cache/$meta/root
    vmlinux=$cache/$meta/vmlinux
}

# extract_vmlinux BZIMAGE OUT: the uncompressed kernel, by the boot header's own description.
# Booting it directly saves seconds: under emulation, decompressing is the slowest part of a boot.
extract_vmlinux() {
    local setup_sectors payload length start magic
    setup_sectors=$(number_at "$1" 0x1f1 1)
    payload=$(number_at "$1" 0x248 4)
    length=$(number_at "$1" 0x24c 4)
    start=$(( (setup_sectors + 1) * 512 + payload ))
    magic=$(od -An -tx1 -j "$start" -N 4 "$1" | tr -d ' ')
    # The last 4 bytes are the uncompressed size, not a part of the stream.
    case $magic in
        fd377a58) slice "$1" "$start" $((length - 4)) | xz -dc > "$2" ;;
        28b52ffd) slice "$1" "$start" $((length - 4)) | zstd -dcq > "$2" ;;
        *) die "$1: kernel compressed in an unknown way ($magic)" ;;
    esac
}

# number_at FILE OFFSET SIZE: the little-endian number there.
number_at() { od -An -tu"$3" -j "$(($2))" -N "$3" "$1" | tr -d ' '; }

# slice FILE START LENGTH
slice() { dd if="$1" bs=64K iflag=skip_bytes,count_bytes skip="$2" count="$3" status=none; }
