# shellcheck shell=bash
# Build the initramfs: busybox, kernel modules, host programs, the test script.

# build_image OUT TEST [ARG...]: also uses programs, files, loaded, modules.
build_image() {
    local image=$1 test=$2 tree entry
    shift 2
    tree=$image.d
    rm -rf "$tree"
    mkdir -p "$tree"/{bin,sbin,usr/bin,usr/sbin,proc,sys,dev,run,tmp,root,etc,lib/modules}
    add_busybox "$tree"
    add_modules "$tree"
    for entry in ${programs[@]+"${programs[@]}"}; do add_program "$tree" "$entry"; done
    for entry in ${files[@]+"${files[@]}"}; do
        mkdir -p "$tree$(dirname "${entry#*:}")"
        cp -L "${entry%%:*}" "$tree${entry#*:}"
    done
    install -m 755 "$here/init" "$tree/init"
    install -m 755 "$test" "$tree/test"
    printf '%q ' "$@" > "$tree/test.args"
    # Uncompressed: the host copies it into memory faster than the guest could decompress it.
    (cd "$tree" && find . -print0 | cpio --null --create --format=newc --quiet) > "$image"
    rm -rf "$tree"
}

# Busybox and a link for each of its applets.
add_busybox() {
    local applet
    cp "$(command -v busybox)" "$1/bin/busybox"
    for applet in $(busybox --list); do
        [ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"
    done
    ln -s /bin/busybox "$1/sbin/modprobe"     # where the kernel itself looks for it
}

# The modules asked for with all that they depend on, and the order in which to load them.
# With the depmod at the end, the test can use `modprobe NAME PARAMETER=VALUE`.
add_modules() {
    local tree=$1 list=$1/lib/modules/load name kind path
    : > "$list"
    mkdir -p "$tree/lib/modules/$kernel_version"
    for name in "${loaded[@]}"; do
        modprobe -d "$kernel_root" -S "$kernel_version" --show-depends "$name" >/dev/null ||
            die "no kernel module $name in $kernel_version"
    done
    # Of those at hand a newer kernel may have some built in, or no longer.
    for name in "${loaded[@]}" ${modules[@]+"${modules[@]}"}; do
        modprobe -d "$kernel_root" -S "$kernel_version" --show-depends "$name" ||
            echo "no kernel module $name in $kernel_version" >&2
    done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' |
        while read -r path; do copy_module "$tree" "$path"; done
    for name in "${loaded[@]}"; do
        modprobe -d "$kernel_root" -S "$kernel_version" --show-depends "$name"
    done | while read -r kind path _; do
        [ "$kind" = insmod ] || continue
        path=/lib/modules/${path##*/lib/modules/}
        echo "${path%.xz}"
    done | awk '!seen[$0]++' > "$list"
    cp "$kernel_root/lib/modules/$kernel_version"/modules.{builtin,builtin.modinfo,order} \
        "$tree/lib/modules/$kernel_version/"
    depmod -b "$tree" "$kernel_version"
}

# use_built ROOT: from now on the kernel's modules are links to them in ROOT, and beside them those in $built.
use_built() {
    local to=$1/lib/modules
    rm -rf "$1"
    mkdir -p "$to"
    cp -rs "$kernel_root/lib/modules/$kernel_version" "$to"
    cp -r "$built" "$to/$kernel_version/extra"
    depmod -b "$1" "$kernel_version"
    kernel_root=$1
}

# copy_module TREE PATH: uncompressed, as busybox and the boot time want it.
copy_module() {
    local to=$1/lib/modules/${2##*/lib/modules/}
    mkdir -p "${to%/*}"
    case $2 in
        *.xz) xz -dc "$2" > "${to%.xz}" ;;
        *) cp "$2" "$to" ;;
    esac
}

# add_program TREE PROG: into /usr/bin, its libraries to the same paths as on the host.
add_program() {
    local tree=$1 path library
    path=$(command -v "$2") || die "no host program $2"
    # Without what only a debugger wants, which is most of it.
    strip --strip-debug -o "$tree/usr/bin/${path##*/}" "$path" 2>/dev/null || install -m 755 "$path" "$tree/usr/bin/"
    # ldd fails on a static program, which needs nothing more.
    { ldd "$path" 2>/dev/null || true; } | grep -o '/[^ )]*' | while read -r library; do
        [ -e "$tree$library" ] && continue
        mkdir -p "$tree${library%/*}"
        cp -L "$library" "$tree$library"
    done
}
