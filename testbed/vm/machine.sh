# shellcheck shell=bash
# The emulated machine: its disks, its command line, and reading its console.

# Turn the disk options into QEMU arguments, and name the drivers that the guest then needs.
disk_arguments() {
    local spec kind file bad n=0 serial scsi=no sata=0 rule sector
    disk_args=()
    for spec in ${disks[@]+"${disks[@]}"}; do
        IFS=: read -r kind file bad <<< "$spec"
        [ -e "$file" ] || truncate -s "$disk_size" "$file"
        rule=
        for sector in ${bad//,/ }; do
            rule+="${rule:+,}{\"event\":\"none\",\"iotype\":\"read\",\"errno\":5,\"sector\":$sector,\"once\":false}"
        done
        # QEMU takes no empty list here.
        [ -z "$rule" ] || rule=",\"inject-error\":[$rule]"
        disk_args+=(-blockdev "{\"driver\":\"file\",\"node-name\":\"file$n\",\"filename\":\"$file\",\"cache\":{\"direct\":false,\"no-flush\":true}}"
                    -blockdev "{\"driver\":\"blkdebug\",\"node-name\":\"disk$n\",\"image\":\"file$n\"$rule}")
        serial=$(printf 'VM%04d' "$n")
        case $kind in
            scsi)
                [ $scsi = yes ] || disk_args+=(-device virtio-scsi-pci,id=scsi,num_queues=1)
                scsi=yes
                disk_args+=(-device "scsi-hd,bus=scsi.0,scsi-id=$n,drive=disk$n,serial=$serial,wwn=$((0x5000c50000000000 + n)),rerror=report,werror=report")
                loaded+=(virtio_pci virtio_scsi sd_mod sg) ;;
            sata)
                # The q35 board has an AHCI controller of its own, bus ide.0 to ide.5.
                disk_args+=(-device "ide-hd,bus=ide.$sata,drive=disk$n,serial=$serial,wwn=$((0x5000c50000000000 + n)),rerror=report,werror=report")
                sata=$((sata + 1))
                loaded+=(ahci sd_mod sg) ;;
            nvme)
                disk_args+=(-device "nvme,drive=disk$n,serial=$serial")
                loaded+=(nvme) ;;
            *) die "unknown kind of disk: $spec" ;;
        esac
        n=$((n + 1))
    done
}

# run_machine DIR: boot, print what the test printed, return its exit code.
run_machine() {
    local dir=$1 code=0 quick
    quick='quiet loglevel=1 panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check nowatchdog'
    quick+=' cryptomgr.notests random.trust_cpu=on audit=0 lsm= rcupdate.rcu_expedited=1 pci=lastbus=1'
    # One thread for all processors: with one each, QEMU 7.2 hangs now and then where the kernel changes its own code, which it does for
    # every tracepoint that is attached.
    timeout --kill-after=5 "$limit" qemu-system-x86_64 \
        -nodefaults -no-user-config -no-reboot -display none \
        -machine q35,usb=off,smbus=off,hpet=off,vmport=off \
        -accel tcg,thread=single,tb-size=128 ${VM_BIOS:+-bios "$VM_BIOS"} \
        -cpu "${VM_CPU:-max}" -smp "$cpus" -m "$memory" \
        -serial "file:$dir/console.log" \
        -kernel "${VM_IMAGE:-$vmlinux}" -initrd "$dir/initramfs" \
        -append "console=ttyS0,115200 vm.disks=${#disks[@]} ${VM_APPEND:-$quick}" \
        "${disk_args[@]}" ${extra[@]+"${extra[@]}"} </dev/null >&2 || code=$?
    rm "$dir/initramfs"
    read_console "$dir" "$code"
}

# read_console DIR QEMU-CODE: split the console log by the marker lines of init.
read_console() {
    local dir=$1 code
    tr -d '\r' < "$dir/console.log" > "$dir/console.txt"
    sed -n '/^@@VM BEGIN@@$/,/^@@VM END /p' "$dir/console.txt" | sed '/^@@VM /d'
    sed -n '/^@@VM KERNEL LOG@@$/,/^@@VM OFF@@$/p' "$dir/console.txt" | sed '/^@@VM /d' > "$dir/dmesg.txt"
    code=$(sed -n 's/^@@VM END \([0-9]*\)@@$/\1/p' "$dir/console.txt")
    if [ -n "$code" ]; then return "$code"; fi
    echo "vm.sh: the test did not end; see $dir/console.txt" >&2
    [ "$2" -eq 124 ] && return 124
    return 125
}
