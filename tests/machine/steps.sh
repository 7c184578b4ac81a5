# What the scripts in the emulated machine share.

PACE="--request-size 256KiB --idle-wait 1ms --state-dir /tmp/states --json --quiet"

# step NAME COMMAND...: its output and its exit code.
step() {
    name=$1
    shift
    echo "@@ $name"
    "$@" 2>/tmp/step.err
    code=$?
    echo "@@ errors"
    cat /tmp/step.err
    echo "@@ exit $code"
}

# scrub NAME DEVICE [OPTION...]
scrub() {
    name=$1
    shift
    # shellcheck disable=SC2086
    step "$name" idlewise scrub "$@" $PACE --restart
}

# until_running DEVICE: until a scrub of it is under way. An emulated machine may be slow.
until_running() {
    for _ in $(seq 240); do
        idlewise status "$1" --state-dir /tmp/states 2>/dev/null | grep -q running && return
        sleep 0.5
    done
}

# sectors_read FOLDER: of the device with this folder in /sys, and of the disks right below it.
sectors_read() { cat "$1/stat" "$1"/slaves/*/stat 2>/dev/null | awk '{ sectors += $3 } END { print sectors }'; }

# scrub_begins DEVICE COMMAND...: starts it, as $scrub, and waits until 2 MiB are read.
scrub_begins() {
    folder=/sys/dev/block/$(stat -L -c '%t %T' "$1" | while read -r major minor; do echo $((0x$major)):$((0x$minor)); done)
    shift
    begins=$(sectors_read "$folder")
    most=$((begins + 4096 * (1 + $(find "$folder/slaves/" -type l | wc -l))))
    "$@" &
    scrub=$!
    for _ in $(seq 600); do
        [ "$(sectors_read "$folder")" -gt $most ] && break
        sleep 0.2
    done
}

# scrub_ends_early DEVICE COMMAND...: the same, and ends it.
scrub_ends_early() {
    scrub_begins "$@"
    kill -TERM $scrub
    wait $scrub
}

# tell NAME NUMBER
tell() {
    echo "@@ $1"
    echo "@@ errors"
    echo "@@ exit $2"
}

# fault_disk NAME OPTION...: starts one, its path in $disk.
fault_disk() {
    name=$1
    shift
    fault-disk --log "/tmp/$name.log" --file "/tmp/$name.img" --name "$name" "$@" > "/tmp/$name.out" 2>&1 &
    for _ in $(seq 100); do
        grep -q ready "/tmp/$name.out" && break
        sleep 0.1
    done
    disk=$(sed -n 's/^ready //p' "/tmp/$name.out")
    [ -b "$disk" ] || cat "/tmp/$name.out"
}

# partitions FILE PLACE...: makes it 64 MiB with partitions, each by its first sector and how many, as bytes for printf.
partitions() {
    file=$1 entry=446
    shift
    truncate -s 64M "$file"
    for place in "$@"; do
        printf "\\000\\000\\000\\000\\203\\000\\000\\000$place" | dd of="$file" bs=1 seek=$entry conv=notrunc 2>/dev/null
        entry=$((entry + 16))
    done
    printf '\125\252' | dd of="$file" bs=1 seek=510 conv=notrunc 2>/dev/null
}

# fault_disk_with_partition NAME OPTION...: one partition of 32 MiB from block 2048 on.
fault_disk_with_partition() {
    partitions "/tmp/$1.img" '\000\010\000\000\000\000\001\000'
    fault_disk "$@"
}

# find_disk MODEL: the path of the disk with this model.
find_disk() {
    for _ in $(seq 50); do
        for folder in /sys/block/sd*; do
            if grep -q "$1" "$folder/device/model"; then
                echo "/dev/${folder##*/}"
                return
            fi
        done
        sleep 0.1
    done
}

# Waits for what runs in the background, but for the disks.
wait_for_jobs() { sleep 2; }

# raid1 NAME KIB DISK DISK: starts /dev/NAME without metadata, so that blocks of the array are those of its members.
raid1() {
    modprobe raid1
    echo "$1" > /sys/module/md_mod/parameters/new_array
    md=/sys/block/$1/md
    echo none > "$md/metadata_version"
    echo raid1 > "$md/level"
    echo 2 > "$md/raid_disks"
    echo "$2" > "$md/component_size"
    shift 2
    slot=0
    for member in "$@"; do
        number=$(cat "/sys/class/block/${member#/dev/}/dev")
        echo "$number" > "$md/new_dev"
        echo $slot > "$md/dev-${member#/dev/}/slot"
        slot=$((slot + 1))
    done
    echo none > "$md/resync_start"
    echo active > "$md/array_state"
}

# service FOLDER DISK...: starts the daemon for these disks alone, with its state in the folder and what it says in FOLDER.said; its process
# is $daemon. What $SERVICE holds is added to its configuration.
service() {
    folder=$1
    shift
    for disk in "$@" '*'; do printf '[[disk]]\nmatch = "%s"\n' "$disk"; done > "$folder.toml"
    printf 'ignore = true\n%s\n' "$SERVICE" >> "$folder.toml"
    idlewise daemon --config "$folder.toml" --state-dir "$folder" --socket /tmp/control --look-every 1s 2> "$folder.said" &
    daemon=$!
}
