#!/usr/bin/env bash
# docs/commands-in-machine.md: rsync on a disk with a file system, in the emulated machine, whose kernel says for whom it writes later. The
# disk is emulated by this machine, outside of the emulated one, so that its times are those of a disk.
#
#   commands.sh FOLDER [OPTION...]      FOLDER has the built programs; options are those of idlewise-commands
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
built=$1
shift
folder=$(mktemp -d)
"$built/emulated-disk" --size 4GiB > "$folder/disk" &
disk=$!
trap 'kill $disk; wait $disk || true; rm -rf "$folder"' EXIT
until [ -s "$folder/disk" ]; do
    kill -0 $disk
    sleep 0.1
done
mkdir -p "$root/experiments"
cat > "$folder/test" <<'TEST'
#!/bin/sh
mkdir -p /project /sys/fs/cgroup
mount -t 9p -o trans=virtio,version=9p2000.L project /project || exit 1
mount -t cgroup2 none /sys/fs/cgroup
for module in ext4 xfs bfq mq-deadline; do modprobe $module; done
cd /project && exec idlewise-commands "$@"
TEST
chmod +x "$folder/test"
programs=()
for program in "$built/idlewise" "$built/idlewise-commands" rsync mkfs.ext4 mkfs.xfs; do programs+=(-b "$program"); done
for module in ext4 xfs bfq mq-deadline 9p; do programs+=(-m "$module"); done
for module in virtio_pci virtio_blk 9pnet_virtio; do programs+=(-l "$module"); done
export VM_MEMORY=2048 PATH=$PATH:/usr/sbin:/sbin
"$root/testbed/vm/vm.sh" "${programs[@]}" -t 7200 -o "$folder/out" \
    -q -blockdev -q "driver=host_device,node-name=lab,filename=$(cat "$folder/disk"),cache.direct=on,aio=native" \
    -q -device -q virtio-blk-pci,drive=lab \
    -q -virtfs -q "local,path=$root,mount_tag=project,security_model=none" \
    "$folder/test" --disk /dev/vda --out docs/commands-in-machine.md --command rsync "$@"
