#!/usr/bin/env bash
# Run a shell script inside a full Debian kernel, emulated by QEMU without KVM.
#
#   vm.sh [options] TEST.sh [ARG...]     boot, run the test script, power off; exit with its code
#   vm.sh --fetch                        only fetch the kernel
#
#   -b PROG              put a host program (with its shared libraries) into the guest; repeatable
#   -f HOST:GUEST        put a host file at the absolute path GUEST; repeatable
#   -l MODULE            load this kernel module before the test starts; repeatable
#   -m MODULE            have this module at hand for `modprobe` in the test; repeatable
#   -k DIR               know the modules in DIR too, built for this kernel, by -l and -m
#   -d KIND:FILE[:BAD]   a disk; KIND is scsi, sata or nvme; BAD lists 512-byte sectors whose reads
#                        fail with EIO, e.g. 5000,5001; a missing FILE is made (64 MiB, sparse)
#   -o DIR               where the logs go (default: a folder under $TMPDIR, named on standard error)
#   -t SECONDS           kill the machine after this long (default 120)
#   -q ARG               one more argument for QEMU; repeatable
#
# Exit code: the test's own; 124 timeout; 125 the machine ended without running the test to its end.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${VM_CACHE:-$here/../../target/vm}
mkdir -p "$cache"
cache=$(realpath "$cache")
meta=${VM_KERNEL:-linux-image-amd64}      # or linux-image-6.12-amd64
memory=${VM_MEMORY:-512}
cpus=${VM_CPUS:-2}
disk_size=64M

# shellcheck source=fetch.sh
. "$here/fetch.sh"
# shellcheck source=image.sh
. "$here/image.sh"
# shellcheck source=machine.sh
. "$here/machine.sh"

die() { echo "vm.sh: $*" >&2; exit 125; }

programs=() files=() loaded=(configfs) modules=() disks=() extra=()
out='' limit=120 fetch_only=no built=''
while [ $# -gt 0 ]; do
    case $1 in
        --fetch) fetch_only=yes; shift ;;
        -b) programs+=("$2"); shift 2 ;;
        -f) files+=("$2"); shift 2 ;;
        -l) loaded+=("$2"); shift 2 ;;
        -m) modules+=("$2"); shift 2 ;;
        -k) built=$2; shift 2 ;;
        -d) disks+=("$2"); shift 2 ;;
        -o) out=$2; shift 2 ;;
        -t) limit=$2; shift 2 ;;
        -q) extra+=("$2"); shift 2 ;;
        -*) die "unknown option $1" ;;
        *) break ;;
    esac
done

fetch_kernel                              # sets kernel_root, kernel_version, vmlinux
[ "$fetch_only" = no ] || exit 0
[ $# -gt 0 ] || die "no test script"
[ -n "$out" ] || out=$(mktemp -d "${TMPDIR:-/tmp}/vm.XXXXXX")
mkdir -p "$out"
rm -f "$out"/{console.log,console.txt,dmesg.txt}     # never take an older run for this one

[ -z "$built" ] || use_built "$out/kernel" # sets kernel_root
disk_arguments                            # sets disk_args; adds the disks' drivers to loaded
build_image "$out/initramfs" "$@"
run_machine "$out"
